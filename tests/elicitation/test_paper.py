"""The paper's loop: T questions are asked and answered, whatever they are worth."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from pear.arrays import Floats
from pear.elicitation import Settings, SimulatedPerson
from pear.elicitation.paper import PaperLoop
from pear.elicitation.says import costed_question
from pear.errors import InvalidSetting
from pear.planning.learned import WFARE
from pear.planning.planner import Proposals
from pear.planning.tree import TreeSearch
from pear.planning.tree.rules import SavingRules
from pear.preferences import GaussianMixturePrior, Noiseless
from tests.elicitation.small_lender import PERSON, lender, prior
from tests.planning.learned.agents import trained_policy
from tests.planning.small_problems import random_people, small_model, small_problem

PEOPLE = 5


def mcts() -> TreeSearch:
    exact = lender()
    return TreeSearch(exact.problem, exact.black_box, rules=SavingRules())


def loop(seeds=range(PEOPLE), weights: Floats | None = None, **settings) -> PaperLoop:
    planner, believed = mcts(), prior()
    true = believed.sample(1, np.random.default_rng(3))[0][0] if weights is None else weights
    person = SimulatedPerson(true, Noiseless())
    streams = {number: np.random.default_rng([7, seed]) for number, seed in enumerate(seeds)}

    def choose(number, state, plans):
        return person.choose(costed_question(planner.problem, state, plans), streams[number])

    chosen = Settings(response=Noiseless(), n_particles=300, pool="mean", **settings)
    states = np.repeat(planner.problem.state(PERSON)[None], len(streams), axis=0)
    return PaperLoop(
        planner, states, believed, chosen, choose, [np.random.default_rng(s) for s in seeds]
    )


@pytest.mark.slow
def test_ten_questions_are_ten_answers_however_little_they_are_worth():
    # A prior without spread: no question is worth anything, and all ten are asked.
    sure = GaussianMixturePrior(prior().mean()[None], np.full((1, len(prior().mean())), 1e-12))
    led = loop()
    led.people = PaperLoop(
        led.planner,
        np.array([person.start for person in led.people]),
        sure,
        led.settings,
        led.choose,
        [np.random.default_rng(s) for s in range(PEOPLE)],
    ).people
    for _ in range(10):
        led.ask()
    assert led.answered == [10] * PEOPLE
    assert [person.posterior.n_answers for person in led.people] == [10] * PEOPLE


@pytest.mark.parametrize("k", [2, 3])
def test_a_choice_set_holds_k_different_plans_that_work_where_they_are_asked(k):
    led = loop(k=k)
    for _ in range(3):
        for person, plans in zip(led.people, led.choice_sets(led.people), strict=True):
            assert len(plans) == len(set(plans)) == k
            for moves in plans:
                state = person.state[None]
                for move in moves:
                    assert led.planner.problem.actions.allowed(state)[0, move]
                    state = led.planner.problem.actions.apply(state, np.array([move]))
                assert led.planner.black_box.favourable(state)[0]
        led.ask()


def test_the_state_advances_by_the_first_step_chosen_and_returns_once_the_goal_is_reached():
    led = loop()
    seen = []

    def first(number, state, plans):
        seen.append((number, state, plans[0]))
        return 0

    led.choose = first
    for _ in range(6):
        led.ask()
    actions, black_box = led.planner.problem.actions, led.planner.black_box
    for number in range(PEOPLE):
        own = [(state, moves) for who, state, moves in seen if who == number]
        for (state, moves), (following, _) in pairwise(own):
            after = actions.apply(state[None], np.array(moves[:1]))
            reached = black_box.favourable(after)[0]
            assert np.array_equal(following, led.people[number].start if reached else after[0])
    assert len({state.tobytes() for _, state, _ in seen}) > 1


class NobodysChoice(TreeSearch):
    """For the mean weight it meets a plan and one that is dearer for everybody: nothing to ask."""

    mean: Floats
    pair: tuple[tuple[int, ...], ...] = ()

    def propose(self, states, weights, rngs, n):
        found = super().propose(states, weights, rngs, n)
        for i, own in enumerate(weights):
            if np.abs(own - self.mean).max() < 1e-9:
                self.pair = self.pair or self.dominated(states[i], found[i].plans)
                found[i] = Proposals(self.pair, found[i].rows)
        return found

    def dominated(self, state, plans):
        everybody = prior().sample(60, np.random.default_rng(0))[0]
        costs = [
            [self.problem.costs.sequence_cost(state, self.problem.actions, p, w) for w in everybody]
            for p in plans
        ]
        for i, j in permutations(range(len(plans)), 2):
            if (np.array(costs[i]) < np.array(costs[j])).all():
                return plans[i], plans[j]
        raise AssertionError("no plan is dearer than another for everybody")


def test_where_candidates_for_the_mean_teach_nothing_plans_for_the_posterior_are_asked_about():
    led, worth = loop(seeds=range(3)), []
    exact = lender()
    planner = NobodysChoice(exact.problem, exact.black_box, rules=SavingRules())
    led.planner, planner.mean = planner, led.people[0].posterior.mean()
    for person in led.people:
        person.posterior = led.people[0].posterior
    sets = led.choice_sets(led.people)
    for person, plans in zip(led.people, sets, strict=True):
        question = costed_question(planner.problem, person.state, plans)
        costs = question.costs(person.posterior.samples)
        worth.append(costs.mean(axis=0).min() - costs.min(axis=1).mean())
    assert min(worth) > 1.0


def test_what_one_person_is_asked_does_not_depend_on_who_else_is_there():
    together, alone = loop(), loop(seeds=[3])
    for _ in range(3):
        together.ask()
        alone.ask()
    assert np.array_equal(together.people[3].state, alone.people[0].state)
    assert np.array_equal(together.people[3].posterior.samples, alone.people[0].posterior.samples)
    assert together.recommend()[3].moves == alone.recommend()[0].moves


def test_the_end_is_the_plan_for_the_mean_weight_from_the_start():
    led = loop()
    led.ask()
    for person, plan in zip(led.people, led.recommend(), strict=True):
        own = led.planner.plan(person.start, person.posterior.mean())
        assert plan.moves == own.moves


def test_answers_bring_the_plan_nearer_to_the_cheapest_one():
    true = prior().sample(1, np.random.default_rng(3))[0][0]
    led, problem = loop(weights=true), mcts().problem

    def mean_cost() -> float:
        costs = [
            problem.costs.sequence_cost(led.people[0].start, problem.actions, plan.moves, true)
            for plan in led.recommend()
        ]
        return float(np.mean(costs))

    before = mean_cost()
    for _ in range(6):
        led.ask()
    assert mean_cost() <= before


@pytest.mark.slow
def test_searches_for_the_same_weights_propose_different_plans():
    pytest.importorskip("torch")
    problem, rng = small_problem(), np.random.default_rng(2)
    planner = WFARE(trained_policy("wfare"), small_model(problem))
    people, weights = random_people(problem, 12, rng)
    again = [
        planner.propose(people, weights, [np.random.default_rng([s, i]) for i in range(12)], 8)
        for s in range(4)
    ]
    assert any(len({p.plans for p in same}) > 1 for same in zip(*again, strict=True))
    assert all(p.rows > 0 for some in again for p in some)
    one = planner.propose(people[4:5], weights[4:5], [np.random.default_rng([0, 4])], 8)
    assert one[0] == again[0][4]


def test_one_generator_for_each_person_is_asked_for():
    led = loop()
    states = np.array([person.start for person in led.people])
    with pytest.raises(InvalidSetting, match="one generator per person"):
        PaperLoop(led.planner, states, prior(), led.settings, led.choose, [])

"""Same input, same plan: whatever the batch size, the company, or the number of equal plans."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.problem import (
    NO_LIMITS,
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Limits,
    Problem,
    Requirement,
)
from tests.planning.exact.small_problems import cases


def flags(names="abcd", edges=(), max_length=4, requires=(), floor=1.0):
    """Features 0/1 that can each be switched on; move i switches on feature i."""
    space = FeatureSpace(tuple(Feature(name, scale=(0.0, 1.0)) for name in names))
    needs = dict(requires)
    actions = ActionSpace(
        space,
        tuple(
            Action(f"on_{name}", name, "set", (1.0,), requires=needs.get(name, ()))
            for name in names
        ),
    )
    graph = CostGraph(space, tuple(edges), floor=floor)
    return Problem(space, actions, graph, Goal(), max_length=max_length)


def accepts(problem, *targets):
    """Favourable exactly when one of the sets of features is switched on, and nothing else."""
    wanted = np.array([[float(n in target) for n in problem.space.names] for target in targets])
    wanted = wanted.reshape(len(targets), len(problem.space))

    def score(states):
        return np.where((states[:, None] == wanted).all(axis=2).any(axis=1), 0.9, 0.1)

    return BlackBox(score, problem.space, problem.goal, fingerprint="flags")


@pytest.mark.parametrize("first_batch", [1, 2, 64])
def test_of_equal_plans_the_one_with_fewer_steps_is_taken(first_batch):
    problem = flags()
    weights = np.array([2.0, 2.0, 4.0, 9.0])
    planner = ExactPlanner(problem, accepts(problem, "ab", "c"), first_batch=first_batch)
    plan = planner.plan(np.zeros(4), weights)
    assert plan.cost == 4
    assert plan.moves == (2,)


@pytest.mark.parametrize("first_batch", [1, 2, 64])
@pytest.mark.parametrize("targets", list(permutations(["ad", "bc", "bd"])))
def test_of_equal_plans_as_long_the_earlier_actions_are_taken(first_batch, targets):
    problem = flags()
    planner = ExactPlanner(problem, accepts(problem, *targets), first_batch=first_batch)
    assert planner.plan(np.zeros(4), np.full(4, 3.0)).moves == (0, 3)
    limits = Limits(features=("a",))
    assert planner.plan(np.zeros(4), np.full(4, 3.0), limits).moves == (1, 2)


def test_the_order_of_actions_decides_not_the_order_of_the_graph():
    """b is the parent of a, so levels are b, a; the action on a still comes first."""
    problem = flags(edges=(("b", "a"),))
    weights = np.array([2.0, 4.0, 9.0, 9.0, 2.0])
    planner = ExactPlanner(problem, accepts(problem, "a", "b"))
    plan = planner.plan(np.zeros(4), weights)
    assert plan.cost == 4
    assert plan.moves == (0,)


def test_equal_orders_are_taken_by_action_number():
    problem = flags()
    plan = ExactPlanner(problem, accepts(problem, "bd")).plan(np.zeros(4), np.full(4, 3.0))
    assert plan.moves == (1, 3)


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(0, 2**32 - 1))
def test_in_company_everyone_gets_the_plan_they_get_alone(case, seed):
    rng = np.random.default_rng(seed)
    problem, count = case.problem, 4
    states = np.repeat(case.state[None], count, axis=0)
    states[1:, 0] = (states[1:, 0] + rng.integers(0, 3, count - 1)) % 3
    weights = np.round(rng.normal(2, 6, size=(count, problem.costs.n_weights)), 1)
    limits = [case.limits, NO_LIMITS, Limits(max_steps=1), Limits(margin=0.45)]
    planner = ExactPlanner(problem, case.black_box)
    together = planner.plan_many(states, weights, limits)
    for plan, *mine in zip(together, states, weights, limits, strict=True):
        alone = planner.plan(*mine)
        assert plan.moves == alone.moves
        assert plan.certificate.verdict == alone.certificate.verdict
        assert plan.certificate.rows == alone.certificate.rows
        assert plan.certificate.blocking == alone.certificate.blocking


@settings(max_examples=40, deadline=None)
@given(cases(), st.integers(0, 2**32 - 1))
def test_in_company_samples_are_each_persons_own_or_everybodys(case, seed):
    rng = np.random.default_rng(seed)
    problem, count = case.problem, 3
    states = np.repeat(case.state[None], count, axis=0)
    states[1:, 0] = (states[1:, 0] + rng.integers(0, 3, count - 1)) % 3
    samples = np.round(rng.normal(2, 6, size=(count, 4, problem.costs.n_weights)), 1)
    planner = ExactPlanner(problem, case.black_box)
    for theirs, own in ((samples, samples), (samples[:1], [samples[0]] * count)):
        for plan, state, mine in zip(planner.plan_many(states, theirs), states, own, strict=True):
            alone = planner.plan(state, mine)
            assert plan.moves == alone.moves
            assert plan.cost == alone.cost
            assert plan.certificate.verdict == alone.certificate.verdict
            assert plan.certificate.rows == alone.certificate.rows


def test_a_matrix_is_one_row_per_person_and_never_samples():
    problem = flags()
    planner = ExactPlanner(problem, accepts(problem, "bd"))
    for wrong in (np.ones((3, 4)), np.ones((1, 4)), np.ones((3, 2, 4))):
        with pytest.raises(InvalidSetting, match="one per person"):
            planner.plan_many(np.zeros((2, 4)), wrong)
    assert planner.plan_many(np.zeros((0, 4)), np.ones((0, 4))) == []


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(0, 2**32 - 1))
def test_samples_that_are_alike_share_a_front_and_keep_their_optima(case, seed):
    rng = np.random.default_rng(seed)
    near = case.weights + rng.normal(0, 0.05, size=(5, len(case.weights)))
    far = np.round(rng.normal(2, 6, size=(2, len(case.weights))), 1)
    samples = np.concatenate([near, far])
    planner = ExactPlanner(case.problem, case.black_box)
    together = planner.optima(case.state, samples, case.limits)
    for weights, plan in zip(samples, together, strict=True):
        alone = planner.plan(case.state, weights, case.limits)
        assert plan.moves == alone.moves
        assert plan.certificate.verdict == alone.certificate.verdict


def test_fronts_ask_fewer_rows_than_separate_searches():
    problem = flags("abcdefgh", max_length=5)
    black_box = accepts(problem, "acegh", "bdfgh")
    planner = ExactPlanner(problem, black_box)
    rng = np.random.default_rng(0)
    samples = 30 + rng.normal(0, 1, size=(32, problem.costs.n_weights))
    together = planner.optima(np.zeros(8), samples)
    shared = black_box.rows
    alone = [planner.plan(np.zeros(8), weights) for weights in samples]
    assert [plan.moves for plan in together] == [plan.moves for plan in alone]
    assert len({plan.moves for plan in alone}) > 1
    assert shared < (black_box.rows - shared) / 8


def test_a_favourable_state_without_a_legal_order_is_no_plan():
    needs = {
        "a": (Requirement("b", lower=1.0),),
        "b": (Requirement("a", lower=1.0),),
    }
    problem = flags(requires=needs.items())
    plan = ExactPlanner(problem, accepts(problem, "ab")).plan(np.zeros(4), np.ones(4))
    assert plan.certificate.verdict == "infeasible"
    # With c and d open as well, the dearer state that has an order is the plan.
    black_box = accepts(problem, "ab", "cd")
    plan = ExactPlanner(problem, black_box).plan(np.zeros(4), np.array([1.0, 1.0, 9.0, 9.0]))
    assert plan.moves == (2, 3)
    assert plan.certificate.verdict == "optimal"


def test_a_requirement_met_on_the_way_orders_the_steps():
    problem = flags(requires={"a": (Requirement("d", lower=1.0),)}.items())
    plan = ExactPlanner(problem, accepts(problem, "ad")).plan(np.zeros(4), np.full(4, 2.0))
    assert plan.moves == (3, 0)


def test_option_numbers_beyond_sixteen_bits_stay_apart():
    """The cheap options of a feature with many are those of the highest numbers."""
    most = 33_000
    space = FeatureSpace((Feature("x", scale=(0.0, most + 1)), Feature("b", scale=(0.0, 1.0))))
    actions = ActionSpace(
        space,
        (
            Action("lower", "x", "set", tuple(range(1, most + 1))),
            Action("switch", "b", "set", (1.0,)),
        ),
    )
    problem = Problem(space, actions, CostGraph(space, ()), Goal())
    wanted = most - 20

    def score(states):
        return np.where((states[:, 0] == wanted) | (states[:, 1] == 1.0), 0.9, 0.1)

    box = BlackBox(score, space, problem.goal, fingerprint="many options")
    plan = ExactPlanner(problem, box).plan(np.array([most + 1.0, 0.0]), np.array([most + 1.0, 99]))
    assert plan.certificate.verdict == "optimal"
    assert [step.after for step in plan.steps] == [wanted]

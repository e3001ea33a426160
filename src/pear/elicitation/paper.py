"""The paper's own loop: algorithms 1 and 2 as they are written, for many people at once.

Exactly T questions are asked and T answers taken in; after each the state advances by the first
step of the plan chosen, whatever the question was worth; the end is the plan for the mean weight.
Everybody is led in lockstep, so that one search serves all, and each has their own random numbers:
what one is asked does not depend on who else is there. Our own conversation, which stays at the
start and stops when a question is worth nothing, is :class:`~pear.elicitation.session.Session`.

The paper's: the number of questions, the state that advances, candidates by W-FARE for the mean
weight, the greedy choice by EUS, the end. Ours, where the paper is silent: the candidates of a
place are all plans met by a few searches with noise in their prior, and each place has searches of
its own. Where nothing can be learnt from them (one plan is best for everybody the answers leave
possible), plans for samples of the posterior take their places; where a place stays empty, plans
for others and plans met from the start before fill it; where a state leaves fewer than two plans,
the person is asked at the start.

References: paper, algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pear.arrays import Floats
from pear.elicitation.questions import JUDGES, expected_gain, greedy_choice_set, start_posterior
from pear.elicitation.says import costed_question
from pear.elicitation.settings import Settings
from pear.errors import InvalidSetting
from pear.planning.planner import Planner
from pear.preferences import Chosen, GaussianMixturePrior, Posterior
from pear.problem import Plan
from pear.problem.costs import padded
from pear.problem.features import States

SEARCHES = 8
"""Searches, with other noise each, that make the candidates of one place."""
OTHERS = 16
"""Searches for other weights where those for the mean weight meet too few plans."""

WORTHLESS = 1e-9
"""Expected gains below this are none: whatever is answered, nothing is learnt."""

Moves = tuple[int, ...]

Choose = Callable[[int, Floats, Sequence[Moves]], int]
"""Which of some plans from a state ``(d,)`` a person, named by number, picks."""


@dataclass
class Led:
    """One person in the loop: where they are, what is believed of them, how much was asked."""

    start: Floats
    state: Floats
    posterior: Posterior
    rng: np.random.Generator
    answered: int = 0
    rows: int = 0
    met: dict[Moves, None] = field(default_factory=dict)
    """Plans met from the start so far, in the order they were met."""


@dataclass
class _Choices:
    """A choice set in the making: plans known from a state and their costs under m judges."""

    judges: Floats
    weights: Floats
    plans: list[Moves] = field(default_factory=list)
    costs: list[Floats] = field(default_factory=list)
    chosen: tuple[int, ...] = ()

    def worth(self) -> float:
        """What asking about the plans chosen is expected to save, in cost units."""
        return expected_gain(np.concatenate(self.costs).T, self.weights, self.chosen)


class PaperLoop:
    """PEAR with n people: ask everybody a question, as often as wanted, and recommend.

    ``states`` is ``(n, d)``; ``choose`` answers for the people; ``rngs`` is one generator each.
    Of the settings, ``k``, the response model and those of the posterior are used, and ``pool``:
    candidates are for the mean weight, as the paper has it, or for samples of the posterior.
    """

    def __init__(
        self,
        planner: Planner,
        states: States,
        prior: GaussianMixturePrior,
        settings: Settings,
        choose: Choose,
        rngs: Sequence[np.random.Generator],
    ) -> None:
        if len(rngs) != len(states):
            raise InvalidSetting(
                f"'rngs' must hold one generator per person (got {len(rngs)} for {len(states)})"
            )
        self.planner, self.settings, self.choose = planner, settings, choose
        self.people = [
            Led(start, start, start_posterior(prior, settings, rng), rng)
            for start, rng in zip(np.asarray(states, float), rngs, strict=True)
        ]

    @property
    def answered(self) -> list[int]:
        """How many questions each person has answered."""
        return [person.answered for person in self.people]

    def ask(self) -> None:
        """Ask everybody one question and take in the answers (algorithm 1, lines 4 to 11)."""
        sets = self.choice_sets(self.people)
        for number, person in enumerate(self.people):
            if len(sets[number]) < 2 and person.state is not person.start:
                person.state = person.start
                sets[number] = self.choice_sets([person])[0]
            if len(sets[number]) >= 2:
                self._answer(number, person, sets[number])

    def recommend(self) -> list[Plan]:
        """Everybody's plan for the mean weight from the start (algorithm 1, line 13)."""
        starts = np.array([person.start for person in self.people])
        means = np.array([person.posterior.mean() for person in self.people])
        return self.planner.plan_many(starts, means)

    def choice_sets(self, people: Sequence[Led]) -> list[list[Moves]]:
        """SUBMOD-CHOICE for each person, candidates generated anew for each place (algorithm 2)."""
        making = [self._begun(person) for person in people]
        for place in range(self.settings.k):
            offered = self._offered(people, [self._weights(person) for person in people])
            for person, choices, plans in zip(people, making, offered, strict=True):
                self._chosen(person, choices, plans, place + 1)
        for believed in (True, False):
            self._fill(people, making, believed)
        return [[choices.plans[i] for i in choices.chosen] for choices in making]

    def _fill(self, people: Sequence[Led], making: Sequence[_Choices], believed: bool) -> None:
        """Plans for other weights where one place is still empty, or the question is worth nothing:
        those of the posterior; then, for empty places only, any that people have, and those met
        from the start before."""
        size = self.settings.k
        short = [
            i
            for i, choices in enumerate(making)
            if len(choices.chosen) < size or (believed and choices.worth() < WORTHLESS)
        ]
        own = [people[i] for i in short]
        weights = [
            person.posterior.draw(OTHERS, person.rng)
            if believed
            else person.posterior.prior.sample(OTHERS, person.rng)[0]
            for person in own
        ]
        for i, plans in zip(short, self._offered(own, weights), strict=True):
            person = people[i]
            if not believed and person.state is person.start:
                plans = [*plans, *person.met]
            if believed and len(making[i].chosen) == size:
                making[i].chosen = ()
            self._chosen(person, making[i], plans, size)

    def _weights(self, person: Led) -> Floats:
        """What the candidates of one place are searched for, a row per search."""
        mean = person.posterior.mean()[None]
        if self.settings.pool == "mean":
            return np.repeat(mean, SEARCHES, axis=0)
        return np.concatenate([mean, person.posterior.draw(SEARCHES - 1, person.rng)])

    def _offered(self, people: Sequence[Led], weights: Sequence[Floats]) -> list[list[Moves]]:
        """Plans met in searches for everybody's weights ``(s, p)``, all searches in lockstep."""
        if not people:
            return []
        who = np.repeat(np.arange(len(people)), [len(own) for own in weights])
        states = np.array([people[i].state for i in who.tolist()])
        rngs = [
            rng for p, own in zip(people, weights, strict=True) for rng in p.rng.spawn(len(own))
        ]
        n = self.settings.draws
        found = self.planner.propose(states, np.concatenate(weights), rngs, n)
        plans: list[list[Moves]] = [[] for _ in people]
        for i, offered in zip(who.tolist(), found, strict=True):
            people[i].rows += offered.rows
            plans[i] += offered.plans
            if people[i].state is people[i].start:
                people[i].met.update(dict.fromkeys(offered.plans))
        return plans

    def _begun(self, person: Led) -> _Choices:
        samples, weights = person.posterior.samples, person.posterior.weights
        if len(samples) > JUDGES:
            samples = person.posterior.draw(JUDGES, person.rng)
            weights = np.full(JUDGES, 1.0 / JUDGES)
        return _Choices(samples, weights)

    def _chosen(self, person: Led, choices: _Choices, offered: Sequence[Moves], size: int) -> None:
        """Fill a choice set up to a size with plans offered, else with others known from before."""
        new = [moves for moves in dict.fromkeys(offered) if moves and moves not in choices.plans]
        problem = self.planner.problem
        if new:
            choices.plans += new
            choices.costs.append(
                problem.costs.sequence_costs(
                    person.state, problem.actions, padded(new), choices.judges
                )
            )
        if not choices.plans:
            return
        costs = np.concatenate(choices.costs).T
        own = set(offered)
        among = [i for i, moves in enumerate(choices.plans) if moves in own]
        for places in (among, None):
            choices.chosen = greedy_choice_set(costs, choices.weights, size, choices.chosen, places)

    def _answer(self, number: int, person: Led, plans: list[Moves]) -> None:
        problem = self.planner.problem
        picked = self.choose(number, person.state, plans)
        question = costed_question(problem, person.state, plans)
        person.posterior = person.posterior.update(question, Chosen(picked), person.rng)
        person.answered += 1
        first = np.array([plans[picked][0]])
        after = problem.actions.apply(person.state[None], first)
        reached = self.planner.black_box.favourable(after)[0]
        person.rows += 1
        person.state = person.start if reached else after[0]

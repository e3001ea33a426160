"""Which plans do RL, FARE and W-FARE find? A trained policy alone, and the tree search it guides.

References: paper, appendices "Recourse Policy", "FARE" and "Weighted-FARE".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats, Indices
from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.optional import require
from pear.planning.learned.policy import NetworkEvaluator, Policy
from pear.planning.planner import Proposals
from pear.planning.tree.planner import Returns, SearchPlanner, SearchResult
from pear.planning.tree.rules import LengthRules, Rules, SavingRules
from pear.planning.tree.search import search
from pear.planning.tree.trees import (
    Ask,
    Effort,
    Evaluator,
    FoundPlans,
    Noise,
    People,
    SearchOutcome,
)
from pear.problem import Limits
from pear.problem.features import States

REMEMBERED = 4096
"""How many people's plans for the mean weights are kept."""


NOISE = (0.3, 0.3)
"""Share and concentration of the noise in the prior, in training and where plans are to differ
(paper, appendix "FARE")."""


def dirichlet(share: float, concentration: float, rng: np.random.Generator) -> Noise:
    """(1 - ε) P + ε Dirichlet(α) over the legal actions."""

    def mix(prior: Floats, legal: NDArray[np.bool_], who: Indices) -> Floats:
        return mixed(prior, rng.standard_gamma(concentration, prior.shape) * legal, share)

    return mix


def each_own(share: float, concentration: float, streams: Sequence[np.random.Generator]) -> Noise:
    """The same with random numbers of each person's own: plans do not depend on who else is
    there."""

    def mix(prior: Floats, legal: NDArray[np.bool_], who: Indices) -> Floats:
        width = prior.shape[1]
        draws = np.array([streams[i].standard_gamma(concentration, width) for i in who])
        return mixed(prior, draws * legal, share)

    return mix


def mixed(prior: Floats, draws: Floats, share: float) -> Floats:
    """Prior ``(n, actions)`` and a share of the draws, each row of which is made to sum to 1."""
    draws = draws / np.maximum(draws.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray((1.0 - share) * prior + share * draws)


class PolicyPlanner(SearchPlanner):
    """What FARE and W-FARE share: the prior and the values are a policy's.

    Plans are searched for without noise, proposals with it: two searches for the same person then
    find different plans.
    """

    kind = ""
    exploring = False

    def __init__(
        self,
        policy: Policy,
        black_box: BlackBox,
        *,
        simulations: int = 5,
        max_rows: int | None = None,
        searches: int = 8,
        returns: Returns = "best",
    ) -> None:
        super().__init__(
            policy.problem,
            black_box,
            simulations=simulations,
            max_rows=max_rows,
            searches=searches,
            returns=returns,
        )
        if policy.kind != self.kind:
            raise InvalidSetting(
                f"'policy' must have been trained for {self.kind!r} (got one for {policy.kind!r})"
            )
        self.policy = policy

    def evaluator(self) -> Evaluator:
        return NetworkEvaluator(self.policy)

    def search(self, people: People, ask: Ask, effort: Effort) -> SearchOutcome:
        rules, evaluator = self.rules(), self.evaluator()
        noise = each_own(*NOISE, people.streams) if self.exploring else None
        return search(self.problem, ask, people, rules, evaluator, effort, noise)

    def propose(
        self,
        states: States,
        weights: Floats,
        rngs: Sequence[np.random.Generator],
        n: int,
    ) -> list[Proposals]:
        """Everybody's plans found in one search each, with noise from their own generator."""
        explorer = copy(self)
        explorer.exploring = True
        return super(PolicyPlanner, explorer).propose(states, weights, rngs, n)


class FARE(PolicyPlanner):
    """User-agnostic: searches with the mean weights whatever the person's are.

    It returns the shortest plan found (ties: the cheapest under the mean weights); the costs
    it reports are under the weights given.
    """

    method = kind = "fare"

    def rules(self) -> Rules:
        return LengthRules().build()

    def merit(self, found: FoundPlans) -> Floats:
        return -found.lengths.astype(float)

    def search_people(
        self,
        states: States,
        weights: Floats,
        limits: Limits,
        streams: tuple[np.random.Generator, ...],
        max_rows: int | None,
        ask: Ask,
    ) -> SearchResult:
        mean = np.broadcast_to(
            self.policy.mean_weights, (len(states), 1, len(self.policy.mean_weights))
        )
        return super().search_people(states, mean, limits, streams, max_rows, ask)


@dataclass(frozen=True)
class Reference:
    """The plans found for the mean weights from one state, best first, and the rows they took."""

    moves: NDArray[np.intp]
    scores: Floats
    rows: int
    score: float


class WFARE(PolicyPlanner):
    """User-aware: the reward and the observation know what the plan costs this person.

    The plan for the mean weights is searched once per state (and limits) and kept as a
    fallback. Its rows are charged to every plan that uses it, so that the same call is
    always charged the same. ``rules`` are those the policy was trained with, unless given.
    """

    method = kind = "wfare"

    def __init__(
        self,
        policy: Policy,
        black_box: BlackBox,
        *,
        simulations: int = 5,
        max_rows: int | None = None,
        searches: int = 8,
        returns: Returns = "best",
        rules: SavingRules | None = None,
    ) -> None:
        super().__init__(
            policy,
            black_box,
            simulations=simulations,
            max_rows=max_rows,
            searches=searches,
            returns=returns,
        )
        trained = SavingRules(cost_weight=policy.settings.get("cost_weight", 1.0))
        self.settings = trained if rules is None else rules
        self._references: OrderedDict[tuple[bytes, Limits, int | None], Reference] = OrderedDict()

    def rules(self) -> Rules:
        return self.settings.build()

    def search_people(
        self,
        states: States,
        weights: Floats,
        limits: Limits,
        streams: tuple[np.random.Generator, ...],
        max_rows: int | None,
        ask: Ask,
    ) -> SearchResult:
        references = self.references(states, limits, max_rows, ask)
        known, costs, scores = self.fallbacks(states, weights, references)
        charged = np.array([reference.rows for reference in references])
        people = People(states, weights, costs, limits, streams, scores)
        effort = self.effort(None if max_rows is None else max_rows - charged)
        outcome = self.search(people, ask, effort)
        found = FoundPlans.joined([self.kept(outcome), known])
        return SearchResult(found, charged + outcome.rows, scores)

    def fallbacks(
        self, states: States, weights: Floats, references: list[Reference]
    ) -> tuple[FoundPlans, Floats, Floats]:
        """The plans for the mean weights as B people's plans, what the best of them costs each
        ``(B,)`` (NaN: there is none), and the scores of the starts ``(B,)``."""
        known = [FoundPlans.none(self.problem.max_length)]
        costs = np.full(len(states), np.nan)
        alike: dict[int, list[int]] = {}
        for person, reference in enumerate(references):
            if len(reference.moves):
                alike.setdefault(id(reference), []).append(person)
        for people in alike.values():
            plans, own = references[people[0]], weights[people]
            under = self.problem.costs.sequence_costs(
                states[people[0]], self.problem.actions, plans.moves, own.reshape(-1, own.shape[2])
            )
            mean = under.reshape(len(under), len(people), -1).mean(axis=2)
            costs[people] = mean[0]
            known += [
                FoundPlans(np.full(len(plans.moves), person), plans.moves, plans.scores, paid)
                for person, paid in zip(people, mean.T, strict=True)
            ]
        scores = np.array([reference.score for reference in references])
        return FoundPlans.joined(known), costs, scores

    def references(
        self, states: States, limits: Limits, max_rows: int | None, ask: Ask
    ) -> list[Reference]:
        """Everybody's plans for the mean weights, with at most half of the budget each."""
        keys = [(state.tobytes(), limits, max_rows) for state in states]
        absent = {key: place for place, key in enumerate(keys) if key not in self._references}
        fresh: dict[tuple[bytes, Limits, int | None], Reference] = {}
        if absent:
            rows = None if max_rows is None else max_rows - max_rows // 2
            places = list(absent.values())
            searched = self._search_mean(states[places], limits, rows, ask)
            fresh = dict(zip(absent, searched, strict=True))
        known = [fresh[key] if key in fresh else self._references[key] for key in keys]
        self._references.update(fresh)
        while len(self._references) > REMEMBERED:
            self._references.popitem(last=False)
        return known

    def _search_mean(
        self, states: States, limits: Limits, max_rows: int | None, ask: Ask
    ) -> list[Reference]:
        mean = np.broadcast_to(
            self.policy.mean_weights, (len(states), 1, len(self.policy.mean_weights))
        )
        people = People(states, mean, np.full(len(states), np.nan), limits)
        effort, rules, evaluator = self.effort(max_rows), self.rules(), self.evaluator()
        # Always without noise: it is kept, and may not depend on who asked first.
        outcome = search(self.problem, ask, people, rules, evaluator, effort)
        references = []
        for person in range(len(states)):
            mine = outcome.found.where(outcome.found.person == person)
            mine = mine.where(np.argsort(mine.costs, kind="stable"))
            rows, score = int(outcome.rows[person]), float(outcome.scores[person])
            references.append(Reference(mine.moves, mine.scores, rows, score))
        return references


class PolicyOnly(SearchPlanner):
    """Follows the policy greedily until the decision is favourable.

    It ends without a plan when the policy's choice is an action that is not allowed, or
    STOP too early, or at the maximum length. ``masked`` lets it choose among the allowed
    actions only. It takes a policy of any kind; the paper's agent is of kind ``rl``.
    """

    method = "rl"

    def __init__(
        self,
        policy: Policy,
        black_box: BlackBox,
        *,
        max_rows: int | None = None,
        masked: bool = False,
    ) -> None:
        super().__init__(policy.problem, black_box, simulations=1, max_rows=max_rows)
        self.policy = policy
        self.masked = masked

    def people_at_once(self) -> int:
        return 4096

    def search_people(
        self,
        states: States,
        weights: Floats,
        limits: Limits,
        streams: tuple[np.random.Generator, ...],
        max_rows: int | None,
        ask: Ask,
    ) -> SearchResult:
        count, actions = len(states), self.problem.actions
        longest = self.problem.longest(limits)
        required = self.problem.goal.required(limits)
        here = np.array(states)
        moves = np.full((count, longest), -1, np.intp)
        scores = np.full((count, longest + 1), np.nan)
        scores[:, 0] = ask(here)
        rows = np.ones(count, np.int64)
        done = scores[:, 0] > required
        memory = np.zeros((count, 2 * self.policy.agent.shape.hidden), np.float32)
        who = np.flatnonzero(~done)
        for step in range(longest):
            who = who[rows[who] < (max_rows or np.inf)]
            if not len(who):
                break
            allowed = actions.allowed(here[who], limits)
            chosen, memory[who] = self.choose(here[who], weights[who], allowed, memory[who])
            legal = chosen < len(actions)
            legal[legal] = allowed[legal, chosen[legal]]
            who, chosen = who[legal], chosen[legal]
            if not len(who):
                break
            here[who] = actions.apply(here[who], chosen)
            moves[who, step] = chosen
            scores[who, step + 1] = ask(here[who])
            rows[who] += 1
            good = scores[who, step + 1] > required
            done[who[good]] = True
            who = who[~good]
        people = np.flatnonzero(done)
        costs = [
            self.problem.costs.sequence_costs(states[i], actions, moves[[i]], weights[i]).mean()
            for i in people
        ]
        found = FoundPlans(people, moves[people], scores[people], np.array(costs, float))
        return SearchResult(found, rows, scores[:, 0])

    def choose(
        self,
        states: States,
        weights: Floats,
        allowed: NDArray[np.bool_],
        memory: NDArray[np.float32],
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The likeliest action ``(n,)``, the pair of function and argument, and new memory."""
        torch = require("torch")
        agent = self.policy.agent
        if self.policy.kind != "wfare":
            weights = np.broadcast_to(
                self.policy.mean_weights, (len(states), 1, len(self.policy.mean_weights))
            )
        seen = self.policy.observer(
            states, self.problem.costs.all_costs(states, self.problem.actions, weights)
        )
        legal = np.ones((len(states), allowed.shape[1] + 1), bool)
        if self.masked:
            legal[:, :-1], legal[:, -1] = allowed, False
        with torch.inference_mode():
            log_f, log_x, _, after = agent(
                torch.from_numpy(seen), torch.from_numpy(memory), torch.from_numpy(legal)
            )
            chosen = agent.joint(log_f, log_x).argmax(dim=1)
        return chosen.numpy().astype(np.intp), after.numpy()

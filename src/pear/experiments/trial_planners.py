"""How do our planners behave with one thing done as the published program does it?

See :mod:`pear.experiments.trials`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.neighbors import NearestNeighbors

from pear.elicitation import Session
from pear.elicitation.belief import View
from pear.planning.evolution import ON, EvolutionPlanner, Fitness
from pear.planning.learned import FARE, WFARE
from pear.planning.neighbours import NeighboursPlanner, Routes
from pear.planning.sequences import NO_MOVE, Moves
from pear.planning.tree import TreeSearch
from pear.planning.tree.evaluation import Evaluation, Evaluator
from pear.planning.tree.found import FoundPlans
from pear.planning.tree.people import Ask, SearchOutcome
from pear.planning.tree.search import LockstepSearch
from pear.problem import NO_LIMITS, Limits, Problem
from pear.problem.features import States

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

NOISE = 0.3
"""Concentration of the Dirichlet noise that is the published tree search's prior."""
SHARPNESS = 1.3
"""Exponent of the visit counts that the published tree search draws by."""


class RandomSession(Session):
    """Every question holds k plans drawn at random among those in the pool."""

    def _view_from(self, state: Floats) -> View:
        known = state.tobytes() in self._views
        view = super()._view_from(state)
        if not known:
            order = self._rng(self.n_answers, 5).permutation(len(view.pool))
            chosen = tuple(int(column) for column in order[: self.settings.k])
            view = self._views[state.tobytes()] = replace(view, chosen=chosen, gain=1.0)
        return view


class SingleChanges(WFARE):
    """W-FARE that keeps only plans changing each feature at most once."""

    def kept(self, outcome: SearchOutcome) -> FoundPlans:
        found = super().kept(outcome)
        return found.where(changes_once(self.problem, found.moves))

    def _search_mean(
        self, states: States, limits: Limits, max_rows: int | None, ask: Ask
    ) -> list[Any]:
        references = super()._search_mean(states, limits, max_rows, ask)
        single = [changes_once(self.problem, reference.moves) for reference in references]
        return [
            replace(reference, moves=reference.moves[keep], scores=reference.scores[keep])
            for reference, keep in zip(references, single, strict=True)
        ]


def changes_once(problem: Problem, moves: Moves) -> NDArray[np.bool_]:
    """Whether sequences ``(n, L)``, -1 after the end, change no feature twice, ``(n,)``."""
    actions = problem.actions
    columns = np.array([problem.space.index(action.feature) for action in actions.actions])
    changed = np.where(moves >= 0, columns[actions.action_of[moves]], -1)
    ordered = np.sort(changed, axis=1)
    return np.asarray(~((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1))


class SeparateSearch(LockstepSearch):
    """Takes the most visited function and the most visited argument, whether or not they go
    together; a pair that does not ends the search without a plan. With ``drawn`` both are
    drawn in proportion to their visits."""

    drawn = False

    def choose(self, who: Integers, root: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        visits = self.trees.visits[who, root].astype(float)
        count = len(self.problem.actions.actions)
        function_of = np.append(self.problem.actions.action_of, count)
        functions = np.zeros((len(who), count + 1))
        np.add.at(functions.T, function_of, visits.T)
        function, move = functions.argmax(axis=1), visits.argmax(axis=1)
        if self.drawn:
            streams = [self.people.streams[person] for person in who]
            function, move = _draws(functions, streams), _draws(visits, streams)
        return move, (visits.max(axis=1) > 0) & (function_of[move] == function)


class DrawnSearch(SeparateSearch):
    """Function and argument drawn apart from each other."""

    drawn = True


def _draws(counts: Floats, streams: list[np.random.Generator]) -> Integers:
    """One column per row ``(n,)``, in proportion to sharpened counts."""
    chances = counts**SHARPNESS
    chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-12)
    chances[chances.sum(axis=1) == 0, 0] = 1.0
    each = [rng.choice(len(row), p=row) for rng, row in zip(streams, chances, strict=True)]
    return np.array(each, np.intp)


class SeparateFARE(FARE):
    """FARE whose path is chosen by :class:`SeparateSearch`."""

    searching = SeparateSearch


class NoisePrior(FARE):
    """The published MCTS: FARE's network judges new nodes, the prior is noise, the path is
    chosen by :class:`DrawnSearch`."""

    searching = DrawnSearch

    def __init__(self, *args: Any, noise: np.random.Generator, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.noise = noise

    def evaluator(self) -> Evaluator:
        return Noisy(super().evaluator(), self.problem, self.noise)


@dataclass(frozen=True)
class Noisy:
    """An evaluator whose prior is Dirichlet noise over functions times that over arguments."""

    network: Evaluator
    problem: Problem
    rng: np.random.Generator
    playouts: bool = False

    @property
    def memory_width(self) -> int:
        return self.network.memory_width

    def __call__(
        self,
        states: States,
        move_costs: Floats,
        legal: NDArray[np.bool_],
        memory: NDArray[np.float32],
    ) -> Evaluation:
        seen = self.network(states, move_costs, legal, memory)
        count, moves = len(self.problem.actions.actions), legal.shape[1]
        function_of = np.append(self.problem.actions.action_of, count)
        functions = self.rng.dirichlet(np.full(count + 1, NOISE), len(states))
        prior = functions[:, function_of] * self.rng.dirichlet(np.full(moves, NOISE), len(states))
        prior = prior * legal
        return replace(seen, prior=prior / np.maximum(prior.sum(axis=1, keepdims=True), 1e-12))


class DrawnTreeSearch(TreeSearch):
    """MCTS whose path is chosen by :class:`DrawnSearch`."""

    searching = DrawnSearch


class CutNeighbours(NeighboursPlanner):
    """FACE with the nearest of everybody, of whom those who differ in what nobody can change
    are cut off afterwards; ``hops``: points further away than this are not taken (0: all)."""

    def __init__(self, *args: Any, hops: int = 0, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.hops = hops

    def _edges(self, states: States, sparseness: Floats, *, to_itself: bool) -> sparse.csr_array:
        space, wanted = self.problem.space, min(self.k + to_itself, len(self.points))
        nearest = NearestNeighbors(n_neighbors=wanted).fit(space.one_hot(self.points))
        found = nearest.kneighbors(space.one_hot(states), return_distance=False)
        row, column = np.repeat(np.arange(len(states)), wanted), found.ravel()
        same = (states[row][:, self.fixed] == self.points[column][:, self.fixed]).all(axis=1)
        if to_itself:
            same &= row != column
        row, column = row[same], column[same]
        return sparse.csr_array((np.ones(len(row)), (row, column)), (len(states), len(self.points)))

    def routes(self, state: Floats, limits: Limits = NO_LIMITS) -> Routes:
        entry = self._edges(np.atleast_2d(state), np.ones(1), to_itself=False)
        n = len(self.points)
        corner = sparse.csr_array((n, 1))
        last = sparse.hstack([entry, sparse.csr_array((1, 1))])
        whole = sparse.csr_array(sparse.vstack([sparse.hstack([self.graph, corner]), last]))
        distances, previous = csgraph.dijkstra(
            whole, directed=False, indices=n, return_predecessors=True, unweighted=True
        )
        near = distances[:n] <= (self.hops or np.inf)
        good = self.scores > self.problem.goal.bar(limits)
        targets = np.flatnonzero(good & near & np.isfinite(distances[:n]))
        return Routes(targets, distances[targets], previous.astype(np.intp))


class StopEvolution(EvolutionPlanner):
    """CSCF where STOP is one more action, a candidate counts only if STOP is on and comes
    last, and all failures are equally bad."""

    @property
    def n_keys(self) -> int:
        return super().n_keys + 2

    def decode(self, keys: Floats, limits: Limits = NO_LIMITS) -> Moves:
        orders, picks = np.split(keys, 2, axis=1)
        moves = super().decode(np.concatenate([orders[:, :-1], picks[:, :-1]], axis=1), limits)
        stop = orders[:, -1]
        before = np.where(orders[:, :-1] <= ON, orders[:, :-1], -1.0).max(axis=1)
        ends = (stop <= ON) & (stop > before)
        return np.where(ends[:, None], moves, NO_MOVE)

    def fitness(
        self, starts: States, moves: Moves, weights: Floats, limits: Limits = NO_LIMITS
    ) -> Fitness:
        worth = super().fitness(starts, moves, weights, limits)
        failed = np.where(worth.feasible, 0.0, 100.0)
        return Fitness(worth.objectives, np.column_stack([failed, np.zeros(len(failed))]))

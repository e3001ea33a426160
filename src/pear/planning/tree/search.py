"""What does the tree search find? Selection, expansion, evaluation, backup, for everybody at once.

One call of the black box and one of the evaluator per simulation serve all people. Plain MCTS
values a node by random moves from it; the others by what their policy says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Flags, Floats, Indices
from pear.planning.tree.rules import FAILURE, Rules
from pear.planning.tree.trees import (
    NONE,
    Ask,
    Effort,
    Evaluator,
    FoundPlans,
    Noise,
    People,
    SearchOutcome,
    Trees,
)
from pear.problem import Limits, Problem
from pear.problem.features import States


def search(
    problem: Problem,
    ask: Ask,
    people: People,
    rules: Rules,
    evaluator: Evaluator,
    effort: Effort,
    noise: Noise | None = None,
) -> SearchOutcome:
    """Search everybody's tree in lockstep, ``effort.simulations`` per real step."""
    return LockstepSearch(problem, ask, people, rules, evaluator, effort, noise).run()


class LockstepSearch:
    """The state of one call of :func:`search`."""

    def __init__(
        self,
        problem: Problem,
        ask: Ask,
        people: People,
        rules: Rules,
        evaluator: Evaluator,
        effort: Effort,
        noise: Noise | None = None,
    ) -> None:
        self.problem, self.ask, self.people, self.rules = problem, ask, people, rules
        self.evaluator, self.effort, self.noise = evaluator, effort, noise
        steps = people.limits.max_steps
        self.longest = problem.max_length if steps is None else min(problem.max_length, steps)
        self.required = problem.goal.required(people.limits)
        self.stop_at_success = problem.costs.least >= 0
        count = len(people.states)
        self.rows = np.zeros(count, np.int64)
        cap = np.iinfo(np.int64).max if effort.max_rows is None else effort.max_rows
        self.max_rows = np.broadcast_to(np.asarray(cap, np.int64), (count,))
        nodes = 1 + min(effort.simulations * self.longest, int(self.max_rows.max()))
        self.trees = Trees.empty(
            count, nodes, len(problem.space), len(problem.actions) + 1, evaluator.memory_width
        )
        self.found: list[FoundPlans] = [FoundPlans.none(problem.max_length)]
        self.draws = np.zeros((0, 0, 0))
        if evaluator.playouts:
            shape = (effort.simulations * self.longest, self.longest)
            self.draws = np.array([stream.random(shape) for stream in people.streams])

    def run(self) -> SearchOutcome:
        everybody = np.arange(len(self.people.states))
        self.plant(everybody)
        root = np.zeros(len(everybody), np.intp)
        going = self.trees.legal[:, 0].any(axis=1) & ~self.settled(everybody, root)
        for step in range(self.longest):
            self.add_noise(np.flatnonzero(going), root)
            for number in range(self.effort.simulations):
                who = np.flatnonzero(going & (self.rows < self.max_rows))
                if not len(who):
                    break
                self.simulate(who, root[who], step * self.effort.simulations + number)
            going = self.advance(going, root)
            if not going.any():
                break
        moves, scores = self.trees.way_to(everybody, root, self.problem.max_length)
        return SearchOutcome(
            executed=moves,
            path=FoundPlans(everybody, moves, scores, self.trees.cost[everybody, root]).where(
                self.trees.favourable[everybody, root]
            ),
            found=self.all_found(),
            rows=self.rows,
            scores=self.trees.score[:, 0],
            trees=self.trees,
        )

    def settled(self, who: Indices, nodes: Indices) -> Flags:
        """Favourable nodes below which nothing can be cheaper: only STOP is left there."""
        return np.asarray(self.trees.favourable[who, nodes]) & self.stop_at_success

    def plant(self, who: Indices) -> None:
        """The start of every tree."""
        self.trees.states[:, 0] = self.people.states
        if self.people.scores is None:
            self.trees.score[:, 0] = self.ask(self.people.states)
            self.rows += 1
        else:
            self.trees.score[:, 0] = self.people.scores
        memory = np.zeros((len(who), self.evaluator.memory_width), np.float32)
        self.trees.size[:] = 1
        self.open(who, np.zeros(len(who), np.intp), memory)

    def open(self, who: Indices, nodes: Indices, memory: NDArray[np.float32]) -> Floats:
        """Fill in the branches of scored nodes; their values, shape ``(n,)``."""
        trees, actions = self.trees, self.problem.actions
        states, depth = trees.states[who, nodes], trees.depth[who, nodes]
        good = trees.score[who, nodes] > self.required
        trees.favourable[who, nodes] = good
        legal = np.zeros((len(who), len(actions) + 1), bool)
        legal[:, :-1] = actions.allowed(states, self.people.limits)
        legal[:, :-1] &= (depth < self.longest)[:, None]
        legal[:, :-1] &= ~self.settled(who, nodes)[:, None]
        legal[:, -1] = good
        weights, reference = self.people.weights[who], self.people.reference[who]
        move_costs = self.problem.costs.all_costs(states, actions, weights)
        length, cost = depth.astype(float), trees.cost[who, nodes]
        evaluation = self.evaluator(states, move_costs, legal, memory)
        trees.legal[who, nodes] = legal
        trees.prior[who, nodes] = evaluation.prior
        trees.memory[who, nodes] = evaluation.memory
        trees.bonus[who, nodes] = self.rules.bonus(move_costs, length, cost, reference)
        value = np.where(legal.any(axis=1), evaluation.value, FAILURE)
        return np.where(good, self.rules.reward(length, cost, reference), value)

    def add_noise(self, who: Indices, root: Indices) -> None:
        if self.noise is not None and len(who):
            here = who, root[who]
            prior, legal = self.trees.prior[here], self.trees.legal[here]
            self.trees.prior[here] = self.noise(prior, legal, who)

    def simulate(self, who: Indices, root: Indices, number: int) -> None:
        """One simulation for each of ``who``."""
        nodes, actions, last = self.descend(who, root)
        rows = np.arange(len(who))
        end, action = nodes[rows, last], actions[rows, last]
        value = np.full(len(who), FAILURE)
        stopped = action == self.trees.stop
        at = who[stopped], end[stopped]
        value[stopped] = self.rules.reward(
            self.trees.depth[at].astype(float),
            self.trees.cost[at],
            self.people.reference[who[stopped]],
        )
        new = (action != NONE) & ~stopped
        if new.any():
            value[new] = self.expand(who[new], end[new], action[new], number)
        self.back_up(who, nodes, actions, value)

    def descend(self, who: Indices, root: Indices) -> tuple[Indices, Indices, Indices]:
        """Follow the selection rule to a new branch, STOP or a dead end.

        Nodes and actions ``(n, L + 1)`` with -1 after the end, and the last place ``(n,)``;
        the last action is -1 in a dead end.
        """
        trees, n = self.trees, len(who)
        nodes = np.full((n, self.longest + 1), NONE, np.intp)
        actions = np.full((n, self.longest + 1), NONE, np.intp)
        last = np.zeros(n, np.intp)
        rows, here = np.arange(n), root
        for place in range(self.longest + 1):
            at = who[rows], here
            nodes[rows, place], last[rows] = here, place
            legal = trees.legal[at]
            merit = self.rules.select(
                trees.totals[at],
                trees.visits[at],
                trees.prior[at],
                trees.bonus[at],
                trees.node_visits(*at),
            )
            chosen = np.where(legal, merit, -np.inf).argmax(axis=1)
            chosen = np.where(legal.any(axis=1), chosen, NONE)
            actions[rows, place] = chosen
            child = np.where(chosen >= 0, trees.child[who[rows], here, chosen], NONE)
            rows, here = rows[child >= 0], child[child >= 0].astype(np.intp)
            if not len(rows):
                break
        return nodes, actions, last

    def expand(self, who: Indices, parents: Indices, moves: Indices, number: int) -> Floats:
        """Add one node per person below ``parents``; their values, shape ``(n,)``."""
        trees, before = self.trees, self.trees.states[who, parents]
        weights = self.people.weights[who]
        nodes = trees.size[who]
        trees.size[who] += 1
        trees.child[who, parents, moves] = nodes
        trees.parent[who, nodes] = parents
        trees.move[who, nodes] = moves
        trees.depth[who, nodes] = trees.depth[who, parents] + 1
        graph, actions = self.problem.costs, self.problem.actions
        paid = graph.costs(before, actions, moves, weights).mean(axis=1)
        trees.cost[who, nodes] = trees.cost[who, parents] + paid
        states = actions.apply(before, moves)
        trees.states[who, nodes] = states
        if not self.evaluator.playouts:
            trees.score[who, nodes] = self.ask(states)
            self.rows[who] += 1
            return self.open(who, nodes, trees.memory[who, parents])
        left = self.max_rows[who] - self.rows[who] - 1
        room = np.minimum(self.longest - trees.depth[who, nodes], left)
        walks = random_playouts(
            self.problem, states, weights, room, self.people.limits, self.draws[who, number]
        )
        walked = walks.moves >= 0
        scores = self.ask(np.concatenate([states, walks.states[walked]]))
        self.rows[who] += 1 + walks.lengths
        trees.score[who, nodes] = scores[: len(who)]
        value = self.open(who, nodes, trees.memory[who, parents])
        later = np.full(walks.moves.shape, np.nan)
        later[walked] = scores[len(who) :]
        open_here = trees.legal[who, nodes].any(axis=1) & ~trees.favourable[who, nodes]
        played = self.play_out(who, nodes, walks, later)
        return np.where(open_here, played, value)

    def play_out(self, who: Indices, nodes: Indices, walks: Playouts, scores: Floats) -> Floats:
        """Rewards of playouts, shape ``(n,)``; those that succeed are kept as plans."""
        good = scores > self.required
        first = np.where(good.any(axis=1), good.argmax(axis=1), NONE)
        value = np.full(len(who), FAILURE)
        rows = np.flatnonzero(good.any(axis=1) & ~self.settled(who, nodes))
        if not len(rows):
            return value
        people, ends = who[rows], nodes[rows]
        depth, steps = self.trees.depth[people, ends], first[rows] + 1
        within = np.arange(walks.moves.shape[1]) < steps[:, None]
        cost = self.trees.cost[people, ends] + (walks.costs[rows] * within).sum(axis=1)
        reference = self.people.reference[people]
        value[rows] = self.rules.reward((depth + steps).astype(float), cost, reference)
        moves, path_scores = self.trees.way_to(people, ends, self.problem.max_length)
        plan, step = np.nonzero(within)
        moves[plan, depth[plan] + step] = walks.moves[rows[plan], step]
        path_scores[plan, depth[plan] + step + 1] = scores[rows[plan], step]
        self.found.append(FoundPlans(people, moves, path_scores, cost))
        return value

    def back_up(self, who: Indices, nodes: Indices, actions: Indices, value: Floats) -> None:
        """Add each simulation's reward to every branch on its way."""
        row, place = np.nonzero(actions >= 0)
        at = who[row], nodes[row, place], actions[row, place]
        self.trees.visits[at] += 1
        self.trees.totals[at] += value[row]

    def advance(self, going: Flags, root: Indices) -> Flags:
        """Take everybody's chosen move; whoever has none, or nothing behind it, is done."""
        who = np.flatnonzero(going)
        chosen, possible = self.choose(who, root[who])
        child = self.trees.child[who, root[who], chosen]
        moved = possible & (child >= 0)
        root[who[moved]] = child[moved]
        still = np.zeros(len(going), bool)
        arrived = who[moved]
        more = self.trees.legal[arrived, root[arrived]].any(axis=1)
        still[arrived] = more & ~self.settled(arrived, root[arrived])
        return still

    def choose(self, who: Indices, root: Indices) -> tuple[Indices, Flags]:
        """The most visited move of each (then higher value, then smaller number), and who has
        one."""
        visits, totals = self.trees.visits[who, root], self.trees.totals[who, root]
        most = (visits == visits.max(axis=1, keepdims=True)) & (visits > 0)
        chosen = np.where(most, totals / np.maximum(visits, 1), -np.inf).argmax(axis=1)
        return chosen, most.any(axis=1)

    def all_found(self) -> FoundPlans:
        """Every favourable node as a plan, and the successful playouts."""
        who, nodes = np.nonzero(self.trees.favourable)
        moves, scores = self.trees.way_to(who, nodes, self.problem.max_length)
        inside = FoundPlans(who, moves, scores, self.trees.cost[who, nodes])
        return FoundPlans.joined([inside, *self.found])


@dataclass(frozen=True)
class Playouts:
    """Random continuations of n states, at most L moves each.

    ``moves`` ``(n, L)`` with -1 after the end, ``states`` ``(n, L, d)`` after each move,
    ``costs`` ``(n, L)`` of each move, ``lengths`` ``(n,)``.
    """

    moves: Indices
    states: States
    costs: Floats
    lengths: Indices


def random_move(legal: Flags, uniforms: Floats) -> Indices:
    """One legal move per row, all as likely; -1 where none is legal, shape ``(n,)``.

    >>> random_move(np.array([[False, True, True], [False, False, False]]), np.array([0.9, 0.5]))
    array([ 2, -1])
    """
    count = legal.sum(axis=1)
    wanted = np.minimum((uniforms * count).astype(np.intp), count - 1)
    place = np.argmax(np.cumsum(legal, axis=1) > wanted[:, None], axis=1)
    return np.where(count > 0, place, -1)


def random_playouts(
    problem: Problem,
    states: States,
    weights: Floats,
    longest: Indices,
    limits: Limits,
    uniforms: Floats,
) -> Playouts:
    """Walk at most ``longest`` ``(n,)`` random legal moves from each state; nothing is scored."""
    n, steps = uniforms.shape
    walked = np.zeros((n, steps, states.shape[1]))
    moves = np.full((n, steps), -1, np.intp)
    costs = np.zeros((n, steps))
    here = np.array(states)
    going = np.arange(n)
    for step in range(steps):
        going = going[step < longest[going]]
        if not len(going):
            break
        chosen = random_move(problem.actions.allowed(here[going], limits), uniforms[going, step])
        going, chosen = going[chosen >= 0], chosen[chosen >= 0]
        paid = problem.costs.costs(here[going], problem.actions, chosen, weights[going])
        costs[going, step] = paid.mean(axis=1)
        here[going] = problem.actions.apply(here[going], chosen)
        moves[going, step] = chosen
        walked[going, step] = here[going]
    return Playouts(moves, walked, costs, (moves >= 0).sum(axis=1))

"""Searches with an evaluator simple enough to follow by hand, shared by the tests."""

from dataclasses import dataclass

import numpy as np

from pear.planning.tree.rules import LengthRules, SavingRules
from pear.planning.tree.search import search
from pear.planning.tree.trees import Effort, Evaluation, People, UniformPrior
from pear.problem.costs import as_samples


@dataclass(frozen=True)
class HandEvaluator:
    """Prior 1 / (1 + action number) over the legal ones; value (income - debt) / 10."""

    memory_width: int = 1
    playouts: bool = False

    def __call__(self, states, move_costs, legal, memory):
        prior = legal / (1.0 + np.arange(legal.shape[1]))
        prior = prior / np.maximum(prior.sum(axis=1, keepdims=True), 1e-12)
        return Evaluation(prior, (states[:, 1] - states[:, 2]) / 10, memory + 1)


def hand_search(problem, black_box, states, weights, *, simulations, max_rows=None, kind="wfare"):
    """A search of each kind: ``mcts`` with playouts, ``fare`` and ``wfare`` by hand."""
    streams = tuple(np.random.default_rng(7).spawn(len(states)))
    reference = np.full(len(states), 50.0)
    reference[0] = np.nan
    people = People(states, as_samples(weights, len(states)), reference, streams=streams)
    rules = SavingRules().build() if kind == "wfare" else LengthRules().build()
    evaluator = UniformPrior() if kind == "mcts" else HandEvaluator()
    effort = Effort(simulations, max_rows)
    return search(problem, black_box.score, people, rules, evaluator, effort)


def tree_as_data(trees, person):
    """One person's tree as plain data, branches that were visited only."""
    nodes = []
    for node in range(int(trees.size[person])):
        visited = np.flatnonzero(trees.visits[person, node])
        nodes.append(
            {
                "parent": int(trees.parent[person, node]),
                "move": int(trees.move[person, node]),
                "cost": round(float(trees.cost[person, node]), 6),
                "score": round(float(trees.score[person, node]), 6),
                "branches": {
                    str(action): [
                        int(trees.visits[person, node, action]),
                        round(float(trees.totals[person, node, action]), 6),
                        int(trees.child[person, node, action]),
                    ]
                    for action in visited
                },
            }
        )
    return nodes

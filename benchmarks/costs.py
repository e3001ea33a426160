"""How much faster are costs over arrays than in a plain Python loop?

Costs of 10,000 (state, action) pairs of the loan book under 1,000 samples of the weights,
against two loops over the same pairs and samples, timed on a part of the pairs and scaled
up: one that evaluates the paper's equation for each pair and sample, and one that computes
what depends on the state only once per pair. Both loops must agree with the arrays.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pear.datasets import loan_book_problem, loan_book_table
from pear.problem import Problem

PAIRS, SAMPLES = 10_000, 1_000


class PlainProblem:
    """The problem in plain Python lists, so that the loops pay nothing for array access."""

    def __init__(self, problem: Problem) -> None:
        features, actions, graph = problem.space.features, problem.actions, problem.costs
        self.levels = [f.levels or [1.0] * len(f.categories) for f in features]
        self.categorical = [f.is_categorical for f in features]
        self.scales = [f.scale for f in features]
        self.columns, self.adds = actions.feature_of.tolist(), actions.adds.tolist()
        self.arguments = actions.argument_of.tolist()
        self.parents, self.offset = graph.parents, graph.offset
        self.zero_change, self.least = graph.zero_change, graph.least

    def seen(self, column: int, value: float) -> float:
        """One value as costs see it: scaled and clipped, or the level of a category."""
        if self.categorical[column]:
            return self.levels[column][int(value)]
        scale = self.scales[column]
        if scale is None:
            return value
        return min(1.0, max(0.0, (value - scale[0]) / (scale[1] - scale[0])))

    def change(self, state: list[float], move: int) -> float:
        """|s'_k - s_k| of a move."""
        column, argument = self.columns[move], self.arguments[move]
        if self.categorical[column]:
            return 1.0
        after = state[column] + argument if self.adds[move] else argument
        size = abs(self.seen(column, after) - self.seen(column, state[column]))
        return self.zero_change if size == 0.0 and self.zero_change is not None else size

    def cost(self, state: list[float], move: int, weights: list[float]) -> float:
        """The cost of one move in one state under one weight vector (paper, eqn. cost)."""
        column = self.columns[move]
        cost = weights[column] * self.change(state, move)
        for parent, position in self.parents[column]:
            cost += weights[position] * (self.offset + self.seen(parent, state[parent]))
        return max(self.least, cost)


def loop(problem: PlainProblem, states: Any, moves: Any, weights: Any) -> list[list[float]]:
    """The plain loop: the equation for each pair and each sample."""
    return [
        [problem.cost(state, move, sample) for sample in weights]
        for state, move in zip(states, moves, strict=True)
    ]


def hoisted_loop(problem: PlainProblem, states: Any, moves: Any, weights: Any) -> list[list[float]]:
    """The loop with what depends on the state computed only once per pair."""
    table = []
    for state, move in zip(states, moves, strict=True):
        column, change = problem.columns[move], problem.change(state, move)
        parents = [
            (position, problem.offset + problem.seen(parent, state[parent]))
            for parent, position in problem.parents[column]
        ]
        row = []
        for sample in weights:
            cost = sample[column] * change
            for position, factor in parents:
                cost += sample[position] * factor
            row.append(max(problem.least, cost))
        table.append(row)
    return table


def timed(function: Callable[[], Any], repetitions: int) -> tuple[float, Any]:
    """The fewest seconds a call takes, and its result."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    repetitions, part = (5, 5) if options.quick else (20, 40)

    problem = loan_book_problem()
    rng = np.random.default_rng(0)
    people = problem.space.encode(loan_book_table(PAIRS, 0))
    moves = rng.integers(0, len(problem.actions), PAIRS)
    weights = rng.normal(20.0, 30.0, (SAMPLES, problem.costs.n_weights))

    arrays, costs = timed(
        lambda: problem.costs.costs(people, problem.actions, moves, weights), repetitions
    )
    chosen = np.sort(rng.choice(PAIRS, part, replace=False))
    few = people[chosen].tolist(), moves[chosen].tolist(), weights.tolist()
    listed = PlainProblem(problem)
    plain, plain_costs = timed(lambda: loop(listed, *few), 3)
    hoisted, hoisted_costs = timed(lambda: hoisted_loop(listed, *few), 3)
    for other in (plain_costs, hoisted_costs):
        if not np.allclose(other, costs[chosen], rtol=1e-9):
            raise SystemExit("the loop and the arrays disagree")
    plain, hoisted = plain * PAIRS / part, hoisted * PAIRS / part

    figures = {
        "costs.seconds": arrays,
        "costs.loop_seconds": plain,
        "costs.speedup": plain / arrays,
        "costs.hoisted_loop_seconds": hoisted,
        "costs.hoisted_speedup": hoisted / arrays,
    }
    print(f"{PAIRS:,} pairs under {SAMPLES:,} samples, {problem.costs.n_weights} weights")
    print(f"arrays         {arrays:9.3f} s")
    print(f"plain loop     {plain:9.1f} s   {plain / arrays:7.0f} times slower")
    print(f"hoisted loop   {hoisted:9.1f} s   {hoisted / arrays:7.0f} times slower")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

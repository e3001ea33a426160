"""A sample of ``benchmarks/brute_force.py``: the exact planner and the prover agree."""

import numpy as np
import pytest
from benchmarks.brute_force import fault, proven, random_case

from pear.problem.plan import near_misses


def brute_force(case):
    """Least cost over all sequences of moves, from the arrays that the searches use."""
    problem, actions = case.problem, case.problem.actions
    longest = min(problem.max_length, case.limits.max_steps or problem.max_length)
    best, stack = np.inf, [(case.start, 0.0, ())]
    while stack:
        state, cost, used = stack.pop()
        ends = np.concatenate([state[None], near_misses(actions, case.start, state[None])[0]])
        if (case.black_box.score(ends) > problem.goal.required(case.limits)).all():
            best = min(best, cost)
        if len(used) == longest:
            continue
        for move in np.flatnonzero(actions.allowed(state[None], case.limits)[0]):
            column = int(actions.feature_of[move])
            if used.count(column) < case.repeats:
                step = problem.costs.costs(state[None], actions, np.array([move]), case.weights)
                after = actions.apply(state[None], np.array([move]))[0]
                stack.append((after, cost + step.mean(), (*used, column)))
    return best


def test_the_prover_finds_what_brute_force_over_all_sequences_finds():
    for seed in range(150):
        case = random_case(seed)
        _, proof = proven(case)
        assert proof.cost == pytest.approx(brute_force(case), rel=1e-9, abs=0.0), seed


@pytest.mark.slow
def test_the_exact_planner_is_never_wrong():
    wrong = {seed: fault(random_case(seed)) for seed in range(500)}
    assert {seed: message for seed, message in wrong.items() if message} == {}

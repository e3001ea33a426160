"""Small random problems, and brute force over all sequences of moves on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from pear.decision import BlackBox
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

NAMES = "abcd"


@dataclass(frozen=True)
class Case:
    """A problem, its model, one person and their weights ``(p,)`` or samples ``(s, p)``."""

    problem: Problem
    black_box: BlackBox
    state: np.ndarray
    weights: np.ndarray
    limits: Limits = NO_LIMITS


@st.composite
def cases(draw, samples=1, max_features=4, requirements=True, with_limits=True):
    """Random graphs, weights of both signs, floors, offsets, modes, requirements, limits."""
    seed = draw(st.integers(0, 2**32 - 1))
    floor = draw(st.sampled_from([1.0, 1.0, 0.0, None]))
    offset = draw(st.sampled_from([0.0, 1.0]))
    zero_change = draw(st.sampled_from([1.0, None]))
    count = draw(st.integers(2, max_features))
    length = draw(st.integers(1, 3))
    share = draw(st.sampled_from([0.05, 0.2, 0.5]))
    rng = np.random.default_rng(seed)
    features, actions = [], []
    for name in NAMES[:count]:
        kind = rng.choice(["numeric", "categorical", "ordered"])
        if kind == "numeric":
            features.append(Feature(name, lower=0.0, scale=(0.0, 4.0)))
            start = None
            steps = rng.choice([-2.0, -1.0, 1.0, 2.0, 3.0], size=rng.integers(1, 4), replace=False)
            direction = str(rng.choice(["any", "any", "increase"]))
            requires = _requirement(rng, features[:-1]) if requirements else ()
            actions.append(Action(f"add_{name}", name, "add", tuple(steps), direction, requires))
        else:
            ordered = kind == "ordered"
            features.append(
                Feature(name, "categorical", categories=("x", "y", "z"), ordered=ordered)
            )
            size = rng.integers(1, 4)
            values = tuple(str(v) for v in rng.choice(["x", "y", "z"], size=size, replace=False))
            requires = _requirement(rng, features[:-1]) if requirements else ()
            actions.append(Action(f"set_{name}", name, "set", values, requires=requires))
    space = FeatureSpace(tuple(features))
    order = rng.permutation(count)
    edges = tuple(
        (NAMES[order[i]], NAMES[order[j]])
        for i in range(count)
        for j in range(i + 1, count)
        if rng.random() < 0.6
    )
    graph = CostGraph(space, edges, floor=floor, offset=offset, zero_change=zero_change)
    problem = Problem(space, ActionSpace(space, tuple(actions)), graph, Goal(), max_length=length)
    start = np.array(
        [rng.integers(0, 3) if f.is_categorical else rng.integers(0, 5) for f in features], float
    )
    shape = (samples, graph.n_weights) if samples > 1 else graph.n_weights
    weights = np.round(rng.normal(2, 6, size=shape), 1)
    limits = _limits(rng, problem) if with_limits and rng.random() < 0.4 else NO_LIMITS
    return Case(problem, random_model(problem, start, share, seed), start, weights, limits)


def random_model(problem, start, share, seed):
    """Favourable on a random share of states, never at the start: nothing to exploit."""
    mixing = np.random.default_rng(seed + 1).normal(size=len(start)) * 37.7

    def score(states):
        noise = np.sin(states @ mixing * 12.9898) * 43758.5453
        scores = np.where(noise - np.floor(noise) < share, 0.9, 0.1)
        return np.where((states == start).all(axis=1), 0.1, scores)

    return BlackBox(score, problem.space, problem.goal, fingerprint="random")


def brute_force(case: Case, max_changes_per_feature=1, max_length=None):
    """Least (mean floored) cost over all legal sequences, infinity if there is none."""
    problem, actions = case.problem, case.problem.actions
    weights = np.atleast_2d(case.weights)
    longest = max_length or problem.max_length
    if case.limits.max_steps:
        longest = min(longest, case.limits.max_steps)
    best, required = np.inf, problem.goal.required(case.limits)
    stack = [(case.state, 0.0, ())]
    while stack:
        state, cost, used = stack.pop()
        if used and case.black_box.score(state[None])[0] > required:
            best = min(best, cost)
        if len(used) == longest:
            continue
        for move in np.flatnonzero(actions.allowed(state[None], case.limits)[0]):
            column = int(actions.feature_of[move])
            if used.count(column) < max_changes_per_feature:
                step = problem.costs.costs(state[None], actions, np.array([move]), weights).mean()
                after = actions.apply(state[None], np.array([move]))[0]
                stack.append((after, cost + step, (*used, column)))
    return best


def _requirement(rng, earlier):
    if not earlier or rng.random() < 0.6:
        return ()
    other = earlier[rng.integers(len(earlier))]
    if other.is_categorical:
        return (Requirement(other.name, values=(str(rng.choice(["x", "y", "z"])),)),)
    return (Requirement(other.name, lower=float(rng.integers(0, 4))),)


def _limits(rng, problem):
    feature = problem.space.features[rng.integers(len(problem.space))]
    action = problem.actions.actions[rng.integers(len(problem.actions.actions))]
    return [
        Limits(features=(feature.name,)),
        Limits(actions=(action.name,), max_steps=2),
        Limits(values=((feature.name, feature.value(1.0)),)),
        Limits(max_steps=1),
    ][rng.integers(4)]

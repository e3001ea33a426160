"""People for whom the cheapest states, in their order, lead nowhere for long."""

import numpy as np
import pytest

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner, ScoreMemory
from pear.planning.exact.heuristics import Explorer
from pear.planning.exact.kernel import bounds_of
from pear.planning.exact.options import Layout, options_of
from pear.problem import (
    NO_LIMITS,
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Problem,
)
from tests.planning.exact.test_ties_and_batches import flags

DECOYS = "abcdefghijkl"
VALUES = tuple(float(value) for value in range(1, 10))


def with_decoys(dear: str, length: int) -> Problem:
    """Some dear features of nine values, and twelve cheap ones that may be switched on."""
    space = FeatureSpace(tuple(Feature(name, scale=(0.0, 9.0)) for name in dear + DECOYS))
    actions = [Action(f"set_{name}", name, "set", VALUES) for name in dear]
    actions += [Action(f"on_{name}", name, "set", (9.0,)) for name in DECOYS]
    return Problem(
        space, ActionSpace(space, tuple(actions)), CostGraph(space), Goal(), max_length=length
    )


def plateau(problem: Problem, dear: int) -> BlackBox:
    """The same score everywhere, except where all the dear features are raised to 4 or more."""

    def score(states):
        return np.where((states[:, :dear] >= 4).all(axis=1), 0.9, 0.29)

    return BlackBox(score, problem.space, problem.goal, fingerprint=f"plateau of {dear}")


def weights_of(dear: int) -> np.ndarray:
    return np.array([90.0] * dear + [9.0] * len(DECOYS))


def test_neighbours_change_one_feature_or_swap_one_change_and_may_cost_less():
    problem = flags(edges=(("a", "b"),))
    weights = np.array([[[2.0, 3.0, 4.0, 5.0, 1.5]]])
    options = options_of(Layout.of(problem), np.zeros(4), weights, [NO_LIMITS], 3)
    here = np.array([1, 0, 0, 1])
    found = Explorer(options, 0, 0.5, None).cheaper_neighbours(here, 7.0)
    states = [tuple(state) for state in options.states(found)]
    # From (1, 0, 0, 1): leave one out, or leave one out and take another instead.
    assert states == [(1, 0, 0, 0), (0, 0, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0)]
    assert bounds_of(options, found)[:, 0].tolist() == pytest.approx([2.0, 5.0, 6.0, 6.5])


def test_a_first_plan_that_follows_the_score_is_made_cheaper():
    """The beam raises x as far as the score rises; less of it is enough, and cheaper."""
    problem = with_decoys("xy", 6)

    def score(states):
        pair = states[:, :2]
        return 0.1 + 0.15 * (pair >= 4).sum(axis=1) + 0.011 * pair.sum(axis=1)

    black_box = BlackBox(score, problem.space, problem.goal, fingerprint="tempting")
    planner = ExactPlanner(problem, black_box, max_rows=600, first_batch=4)
    plan = planner.plan(np.zeros(14), weights_of(2))
    assert plan.certificate.verdict == "bounded"
    assert plan.cost == pytest.approx(100)  # the beam's own plan costs 110


def test_a_plan_is_found_where_the_score_tells_no_direction():
    """A beam sees a flat score, and the cheap decoys come first in the order of cost."""
    problem = with_decoys("xyz", 6)
    planner = ExactPlanner(problem, plateau(problem, 3), max_rows=8_000)
    plan = planner.plan(np.zeros(15), weights_of(3))
    assert plan.certificate.verdict == "bounded"
    assert plan.cost == pytest.approx(120)  # 3 * 90 * 4/9, which no plan undercuts
    again = planner.plan(np.zeros(15), weights_of(3))
    assert again.moves == plan.moves


def test_a_memory_keeps_plans_that_were_not_met_in_the_order_of_cost():
    problem = with_decoys("xyz", 6)
    planner = ExactPlanner(problem, plateau(problem, 3), max_rows=8_000)
    found = planner.candidates(np.zeros(15), weights_of(3), 1, max_rows=8_000)
    [plan] = planner.candidates(
        np.zeros(15), weights_of(3), 1, memory=found.memory, max_rows=100
    ).plans
    assert plan.cost == pytest.approx(120)


def test_a_memory_knows_scores_by_state_and_keeps_the_first():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (3_000, 6)).astype(float)
    values[rng.random(values.shape) < 0.1] = np.nan
    scores = rng.random(3_000)
    memory = ScoreMemory()
    assert np.isnan(memory.scores(values)).all()
    for part in np.array_split(np.arange(3_000), 7):
        memory.add(values[part], scores[part])
    expected = {}
    for row, score in zip(map(str, values.tolist()), scores, strict=True):
        expected.setdefault(row, score)
    assert len(memory) == len(expected)
    told = memory.scores(values)
    assert told.tolist() == [expected[str(row)] for row in values.tolist()]
    assert np.isnan(memory.scores(values + 0.5)[~np.isnan(values).all(axis=1)]).all()
    good, good_scores = memory.favourable(0.9)
    assert len(good) == sum(score > 0.9 for score in expected.values())
    assert memory.scores(good).tolist() == good_scores.tolist()


def test_values_that_differ_in_the_last_bit_are_two_states():
    memory = ScoreMemory()
    memory.add(np.array([[0.3], [0.1 + 0.2], [-0.0]]), np.array([0.9, 0.1, 0.5]))
    assert memory.scores(np.array([[0.1 + 0.2], [0.3], [0.0]])).tolist() == [0.1, 0.9, 0.5]

"""What one front holds as proven, and when it is done."""

import numpy as np
import pytest

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner
from pear.planning.exact.assignments import Rows
from pear.planning.exact.front import Front, Incumbent, Lane
from pear.planning.exact.options import build_tables
from pear.planning.exact.polish import neighbours
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


def front_with(*costs):
    front = Front(0, [Lane(number) for number in range(len(costs))])
    for lane, cost in zip(front.lanes, costs, strict=True):
        if cost is not None:
            lane.take(Incumbent(cost, 2, (5,), (0, 1), 0.9))
    front.refresh()
    return front


def rows(*bounds):
    count = len(bounds)
    words = (np.arange(count, dtype=np.int64),)
    steps = np.full(count, 2, np.int16)
    return Rows(np.zeros(count, np.intp), words, np.array(bounds, float), steps)


def test_a_front_is_done_only_when_all_below_its_dearest_incumbent_is_scored():
    front = front_with(4.0, 10.0)
    for complete, done in ((3.0, False), (9.9999, False), (10.0, False), (10.001, True)):
        front.complete = complete
        assert front.close_if_done() is done


def test_a_front_without_a_plan_for_some_lane_goes_on_to_the_end():
    front = front_with(4.0, None)
    front.complete = 1e9
    assert not front.close_if_done()
    front.exhausted = True
    assert front.close_if_done()


def test_the_lower_bound_is_the_first_assignment_not_scored():
    front = front_with(None)
    front.begin(np.array([2.0, 3.0, np.inf]), 1.0)
    assert front.lower_bound(front.lanes[0]) == pytest.approx(1.0, abs=1e-6)
    front.receive(rows(2.0, 2.5, 3.0), 3, threshold=4.0, cut=True)
    assert front.lower_bound(front.lanes[0]) == pytest.approx(2.0, abs=1e-6)
    front.scored(2)
    assert front.lower_bound(front.lanes[0]) == pytest.approx(3.0, abs=1e-6)
    front.scored(1)
    assert front.lower_bound(front.lanes[0]) == pytest.approx(4.0, abs=1e-6)


def test_the_lower_bound_of_a_lane_is_never_above_its_own_incumbent():
    front = front_with(4.0, 10.0)
    front.complete = 8.0
    cheap, dear = front.lanes
    assert front.lower_bound(cheap) == 4.0
    assert front.lower_bound(dear) == pytest.approx(8.0, abs=1e-6)


def test_batches_end_at_the_dearest_incumbent_and_are_not_scored_twice():
    front = front_with(4.0, 10.0)
    front.receive(rows(2.0, 3.0, 9.0, 10.0, 11.0), 5, threshold=12.0, cut=True)
    assert front.next_batch(2).bounds.tolist() == [2.0, 3.0]
    front.scored(2)
    assert front.next_batch(64).bounds.tolist() == [9.0, 10.0]
    front.scored(2)
    assert not front.pending_left


def test_a_tie_is_pending_only_for_fewer_steps_or_earlier_actions():
    front = front_with(10.0)
    assert front.improves(10.0, 1, (9,))
    assert front.improves(10.0, 2, (4,))
    assert not front.improves(10.0, 2, (5,))
    assert not front.improves(10.0, 3, (0,))
    assert front.improves(9.99, 5, (9,))
    assert not front.improves(10.01, 1, (0,))


def test_a_shell_too_large_is_narrowed_and_at_last_given_up():
    front = front_with(None)
    front.begin(np.array([5.0, 6.0, np.inf]), 1.0)
    before = front.next_threshold()
    rounds = 0
    while not front.decided:
        front.narrow(front.next_threshold())
        rounds += 1
        assert rounds < 60
    assert rounds > 5
    assert front.stopped
    assert front.next_threshold() < before
    assert front.lower_bound(front.lanes[0]) == pytest.approx(1.0, abs=1e-6)


def test_neighbours_of_a_plan_change_one_feature_and_may_cost_less():
    problem = flags(edges=(("a", "b"),))
    weights = np.array([[[2.0, 3.0, 4.0, 5.0, 1.5]]])
    tables = build_tables(problem, np.zeros((1, 4)), weights, [NO_LIMITS], 3)
    lane = Lane(0)
    lane.take(Incumbent(7.0, 2, (0,), (0, 3), 0.9))
    found = neighbours(tables, lane)
    states = tables.states(found.lanes, found.words)
    here = np.array([1.0, 0.0, 0.0, 1.0])
    assert ((states != here).sum(axis=1) == 1).all()
    assert [tuple(state) for state in states] == [(1, 0, 0, 0), (0, 0, 0, 1)]
    assert found.bounds.tolist() == [2.0, 5.0]


def test_a_first_plan_that_follows_the_score_is_made_cheaper():
    """The beam raises x as far as the score rises; less of it is enough, and cheaper."""
    decoys = "abcdefghijkl"
    space = FeatureSpace(tuple(Feature(name, scale=(0.0, 9.0)) for name in "xy" + decoys))
    values = tuple(float(value) for value in range(1, 10))
    actions = [Action(f"set_{name}", name, "set", values) for name in "xy"]
    actions += [Action(f"on_{name}", name, "set", (9.0,)) for name in decoys]
    action_space = ActionSpace(space, tuple(actions))
    problem = Problem(space, action_space, CostGraph(space), Goal(), max_length=6)

    def score(states):
        pair = states[:, :2]
        return 0.1 + 0.15 * (pair >= 4).sum(axis=1) + 0.011 * pair.sum(axis=1)

    black_box = BlackBox(score, space, problem.goal, fingerprint="tempting")
    weights = np.array([90.0] * 2 + [9.0] * 12)
    planner = ExactPlanner(problem, black_box, max_rows=600, first_batch=4)
    plan = planner.plan(np.zeros(14), weights)
    assert plan.certificate.verdict == "bounded"
    assert plan.cost == pytest.approx(100)  # the beam's own plan costs 110

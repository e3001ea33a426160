"""What one front holds as proven, and when it is done."""

import numpy as np
import pytest

from pear.planning.exact.assignments import Rows
from pear.planning.exact.front import Front, Incumbent, Lane


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

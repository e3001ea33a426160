"""The tests and intervals of an audit hold their level, and test the number that is shown."""

import numpy as np
import pytest

from pear.statistics import amount_test, paired_test, share_estimate


@pytest.mark.slow
def test_equal_means_of_other_spread_are_not_taken_as_different():
    rng = np.random.default_rng(0)
    found = np.array(
        [amount_test(rng.normal(50, 30, 40), rng.normal(50, 8, 600)) for _ in range(200)]
    )
    # A report of 60 tests asks for 0.05 / 60; more than 2 of 200 happen once in a thousand times.
    assert (found <= 0.05 / 60).sum() <= 2
    assert (found <= 0.05).mean() <= 0.1


def test_equal_means_of_skewed_amounts_and_other_spread_keep_the_level():
    rng = np.random.default_rng(1)
    found = np.array(
        [amount_test(rng.gamma(4, 12.5, 60), rng.gamma(40, 1.25, 540)) for _ in range(200)]
    )
    assert (found <= 0.05).mean() <= 0.1
    assert (found <= 0.005).sum() <= 5


def test_unequal_means_of_other_spread_are_still_found():
    rng = np.random.default_rng(2)
    assert amount_test(rng.normal(75, 30, 40), rng.normal(50, 8, 600)) < 0.001
    assert amount_test(rng.normal(55, 8, 40), rng.normal(50, 30, 4_000)) < 0.02
    assert amount_test(np.full(40, 3.0), np.full(60, 2.0)) < 1e-6


def test_the_mean_difference_of_the_same_people_is_what_is_tested():
    # Most are a little cheaper and some much dearer: ranks say cheaper, the mean says dearer.
    rng = np.random.default_rng(3)
    mixed = np.concatenate([-rng.uniform(0.5, 1.5, 80), rng.uniform(4, 13, 20)])
    assert mixed.mean() > 0
    assert paired_test(mixed) > 0.01
    assert paired_test(np.abs(mixed)) < 1e-9
    assert paired_test(np.ones(40)) == pytest.approx(2.0**-39)
    assert paired_test(np.concatenate([np.zeros(500), np.ones(6)])) == pytest.approx(2 / 64)


@pytest.mark.slow
def test_the_level_holds_for_lopsided_differences_of_mean_zero():
    rng = np.random.default_rng(4)
    found = np.array([paired_test(rng.gamma(2, 1, 100) - 2) for _ in range(200)])
    assert (found <= 0.05).mean() <= 0.11


@pytest.mark.parametrize("n", [30, 400])
def test_shares_of_nobody_or_everybody_are_not_certain(n):
    none, all_of_them = share_estimate(np.zeros(n, bool)), share_estimate(np.ones(n, bool))
    assert (none.low, all_of_them.high) == (0.0, 1.0)
    assert none.high == pytest.approx(3.84 / (n + 3.84), rel=0.01)
    assert all_of_them.low == pytest.approx(1 - none.high)
    assert share_estimate(np.zeros(0, bool)) is None

"""Choice sets against their definitions: Monte Carlo, exhaustive search, submodularity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pear.elicitation import (
    exhaustive_choice_set,
    expected_gain,
    expected_utility,
    expected_utility_of_selection,
    greedy_choice_set,
)
from pear.errors import InvalidSetting
from pear.preferences import Logistic, Noiseless

pools = st.tuples(st.integers(2, 8), st.integers(2, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(0, 100))
)


def uniform(costs):
    return np.full(len(costs), 1 / len(costs))


def normalised(costs, chosen):
    """f(O) = E[B - min over O of C], f of nothing 0, B the dearest of all."""
    if not chosen:
        return 0.0
    return costs.max() + expected_utility_of_selection(costs[:, list(chosen)], uniform(costs))


@pytest.mark.parametrize("response", [Noiseless(), Logistic(0.3)])
def test_eus_is_the_mean_utility_of_what_simulated_people_pick(response):
    rng = np.random.default_rng(0)
    costs = rng.uniform(0, 10, size=(40, 3))
    weights = rng.dirichlet(np.ones(40))
    people = rng.choice(40, size=200_000, p=weights)
    chances = np.exp(response.log_probabilities(costs))[people]
    picked = (rng.random(len(people))[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    utility = -costs[people, np.minimum(picked, 2)]
    exact = expected_utility_of_selection(costs, weights, response)
    assert exact == pytest.approx(utility.mean(), abs=5 * utility.std() / np.sqrt(len(people)))


def test_expected_utility_is_minus_the_mean_cost():
    costs, weights = np.array([[1.0, 5.0], [3.0, 1.0]]), np.array([0.25, 0.75])
    assert expected_utility(costs, weights).tolist() == [-(0.25 * 1 + 0.75 * 3), -2.0]


@given(pools)
def test_adding_a_plan_never_makes_a_choice_set_worse(costs):
    everything = range(costs.shape[1])
    for plan in everything:
        rest = [other for other in everything if other != plan]
        assert normalised(costs, everything) >= normalised(costs, rest) - 1e-9


@given(pools, st.data())
def test_a_plan_adds_less_to_a_larger_set(costs, data):
    plans = list(range(costs.shape[1]))
    large = data.draw(st.sets(st.sampled_from(plans), max_size=len(plans) - 1))
    small = {plan for plan in large if data.draw(st.booleans())}
    new = data.draw(st.sampled_from([plan for plan in plans if plan not in large]))
    gain_small = normalised(costs, [*small, new]) - normalised(costs, list(small))
    gain_large = normalised(costs, [*large, new]) - normalised(costs, list(large))
    assert gain_large <= gain_small + 1e-9


@given(pools, st.integers(1, 4))
def test_greedy_reaches_its_guarantee(costs, k):
    greedy = greedy_choice_set(costs, uniform(costs), k)
    best = exhaustive_choice_set(costs, uniform(costs), k)
    assert normalised(costs, greedy) >= (1 - np.exp(-1)) * normalised(costs, best) - 1e-9


@given(pools, st.data())
def test_a_choice_set_keeps_what_is_in_it_and_takes_the_rest_from_where_it_may(costs, data):
    plans = list(range(costs.shape[1]))
    among = data.draw(st.lists(st.sampled_from(plans), unique=True))
    chosen = greedy_choice_set(costs, uniform(costs), 3, (plans[-1],), among)
    assert chosen[0] == plans[-1]
    assert set(chosen[1:]) <= set(among) - {plans[-1]}
    assert len(chosen) == min(3, 1 + len(set(among) - {plans[-1]}))


@given(pools, st.integers(2, 3))
def test_sets_asked_before_are_passed_over_until_none_of_two_plans_is_left(costs, k):
    asked, first = [], greedy_choice_set(costs, uniform(costs), 1)[0]
    while len(chosen := greedy_choice_set(costs, uniform(costs), k, asked=asked)) > 1:
        assert frozenset(chosen) not in asked
        asked.append(frozenset(chosen))
    assert chosen == (first,)
    assert len(asked) >= costs.shape[1] - 1


@given(pools)
def test_the_first_plan_is_the_one_of_least_expected_cost(costs):
    first = greedy_choice_set(costs, uniform(costs), 1)[0]
    assert costs[:, first].mean() == pytest.approx(costs.mean(axis=0).min())


@given(pools)
@settings(max_examples=50)
def test_exhaustive_is_no_worse_than_any_set(costs):
    best = exhaustive_choice_set(costs, uniform(costs), 2)
    values = [
        expected_utility_of_selection(costs[:, [i, j]], uniform(costs))
        for i in range(costs.shape[1])
        for j in range(i)
    ]
    assert expected_utility_of_selection(costs[:, list(best)], uniform(costs)) >= max(values) - 1e-9


def test_gain_is_what_knowing_the_answer_saves():
    # Plan 0 costs 4 for sure, plan 1 costs 0 or 10: asking saves E[4] - E[min(4, 0 or 10)] = 2.
    costs = np.array([[4.0, 0.0], [4.0, 10.0]])
    assert expected_gain(costs, np.array([0.5, 0.5]), (0, 1)) == pytest.approx(2.0)


def test_too_many_choice_sets_are_refused_with_a_remedy():
    with pytest.raises(InvalidSetting, match="greedy_choice_set"):
        exhaustive_choice_set(np.ones((2, 100)), np.full(2, 0.5), 4)
    with pytest.raises(InvalidSetting, match="'k'"):
        greedy_choice_set(np.ones((2, 2)), np.full(2, 0.5), 0)

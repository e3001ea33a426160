"""The response models against their definitions, and against each other in the limit."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pear.errors import InvalidSetting
from pear.preferences.response import (
    Logistic,
    Noiseless,
    PerSampleLogistic,
    UnknownSharpness,
    response_from_dict,
)

costs = arrays(float, st.tuples(st.integers(1, 5), st.integers(2, 4)), elements=st.floats(0, 1e4))
models = [Logistic(0.9), Noiseless(), UnknownSharpness(0.9, 1.0)]


@given(costs)
@pytest.mark.parametrize("model", models)
def test_probabilities_sum_to_one(model, costs):
    assert np.allclose(np.exp(model.log_probabilities(costs)).sum(axis=-1), 1.0)


@given(costs)
@pytest.mark.parametrize("model", models)
def test_a_cheaper_plan_is_never_less_likely(model, costs):
    probabilities = np.exp(model.log_probabilities(costs))
    order = np.argsort(costs, axis=-1)
    assert (np.diff(np.take_along_axis(probabilities, order, axis=-1), axis=-1) <= 1e-12).all()


@given(costs)
@pytest.mark.parametrize("model", models)
def test_the_chosen_plan_alone_is_judged_as_among_all(model, costs):
    together = model.log_probabilities(costs)[:, 0]
    alone = model.log_choice(costs[:, 0], costs[:, 1:].T)
    assert np.allclose(np.exp(alone), np.exp(together), atol=1e-12)


def test_logistic_matches_its_equation():
    # exp(-0.5 * 2) / (exp(-0.5 * 2) + exp(-0.5 * 4)) = 1 / (1 + e^-1)
    [[first, _]] = np.exp(Logistic(0.5).log_probabilities(np.array([[2.0, 4.0]])))
    assert first == pytest.approx(1 / (1 + np.exp(-1)))


def test_a_hopeless_choice_has_a_finite_log_probability():
    # log of 1 / (1 + e^2000) is -2000 although e^2000 is no floating point number.
    model = Logistic(1.0)
    assert model.log_choice(np.array([2000.0]), np.array([[0.0]])) == pytest.approx(-2000)
    assert model.log_probabilities(np.array([[2000.0, 0.0]]))[0, 0] == pytest.approx(-2000)


@given(costs)
def test_a_careful_logistic_person_is_noiseless(costs):
    gaps = np.diff(np.sort(costs, axis=-1), axis=-1)
    costs = costs[((gaps == 0) | (gaps > 1e-3)).all(axis=-1)]
    sharp = np.exp(Logistic(1e6).log_probabilities(costs))
    assert np.allclose(sharp, np.exp(Noiseless().log_probabilities(costs)), atol=1e-9)


def test_noiseless_splits_ties_evenly():
    [p] = np.exp(Noiseless().log_probabilities(np.array([[3.0, 1.0, 1.0]])))
    assert p.tolist() == [0.0, 0.5, 0.5]


def test_a_difference_of_rounding_is_a_tie():
    same = np.array([[0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1]])
    assert same[0, 0] != same[0, 1]
    assert np.exp(Noiseless().log_probabilities(same)).tolist() == [[0.5, 0.5]]


def test_sharpness_are_log_normal():
    model = UnknownSharpness(median=2.0, spread=0.5)
    # z = -1, 0, 1: 2 e^-0.5, 2, 2 e^0.5
    expected = [2 * np.exp(-0.5), 2.0, 2 * np.exp(0.5)]
    assert model.sharpness(np.array([-1.0, 0.0, 1.0])) == pytest.approx(expected)


def test_an_unknown_sharpness_is_averaged_over():
    model = UnknownSharpness(median=0.5, spread=0.7)
    draws = model.sharpness(np.random.default_rng(0).standard_normal(200_000))
    # P(first of costs 1, 3) = 1 / (1 + exp(-2 sharpness))
    direct = (1 / (1 + np.exp(-2 * draws))).mean()
    [[first, _]] = np.exp(model.log_probabilities(np.array([[1.0, 3.0]])))
    assert first == pytest.approx(direct, abs=2e-3)


def test_each_sample_answers_with_its_own_sharpness():
    model = UnknownSharpness(median=1.0, spread=1.0).given(np.array([0.0, 1.0]))
    costs = np.array([[1.0, 2.0], [1.0, 2.0]])
    careless, careful = np.exp(model.log_probabilities(costs))[:, 0]
    assert careless == pytest.approx(1 / (1 + np.exp(-1)))
    assert careful == pytest.approx(1 / (1 + np.exp(-np.e)))
    assert np.exp(model.log_choice(costs[:, 0], costs[:, 1:].T)) == pytest.approx(
        [careless, careful]
    )


@pytest.mark.parametrize("model", models)
def test_a_model_survives_json(model):
    assert response_from_dict(json.loads(json.dumps(model.to_dict()))) == model


def test_per_sample_sharpness_survive_json():
    stored = PerSampleLogistic(np.array([0.5, 2.0]), np.zeros(2)).to_dict()
    read = response_from_dict(json.loads(json.dumps(stored)))
    costs = np.array([[1.0, 2.0], [1.0, 2.0]])
    assert np.exp(read.log_probabilities(costs))[1, 0] == pytest.approx(1 / (1 + np.exp(-2)))


def test_a_model_with_settings_it_does_not_have_is_refused():
    with pytest.raises(InvalidSetting, match=r"'logistic' cannot be read.*heat"):
        response_from_dict({"model": "logistic", "heat": 1.0})


def test_an_unknown_model_is_refused_with_the_known_ones():
    with pytest.raises(InvalidSetting, match=r"logistic, noiseless.*got 'psychic'"):
        response_from_dict({"model": "psychic"})


@pytest.mark.parametrize("sharpness", [0.0, -1.0, float("nan"), float("inf"), "hot"])
def test_a_sharpness_that_is_not_positive_is_refused_with_a_remedy(sharpness):
    with pytest.raises(InvalidSetting, match="Noiseless"):
        Logistic(sharpness)
    with pytest.raises(InvalidSetting, match=r"'median'.*Noiseless"):
        UnknownSharpness(median=sharpness)


@pytest.mark.parametrize("spread", [0.0, -1.0, float("nan")])
def test_a_spread_that_is_not_positive_is_refused_with_a_remedy(spread):
    with pytest.raises(InvalidSetting, match="Logistic"):
        UnknownSharpness(spread=spread)


def test_what_earlier_versions_called_temperature_is_read_as_sharpness():
    assert response_from_dict({"model": "logistic", "temperature": 0.4}) == Logistic(0.4)
    stored = {"model": "unknown_temperature", "median": 0.5, "spread": 2.0}
    assert response_from_dict(stored) == UnknownSharpness(0.5, 2.0)


def test_with_lapses_no_answer_says_more_than_a_slip_would():
    costs = np.array([[0.0, 1e6]])
    model = UnknownSharpness(1.0, 1e-6, lapses=0.2)
    assert np.exp(model.log_probabilities(costs)) == pytest.approx(np.array([[0.9, 0.1]]))
    given = model.given(np.zeros(1))
    assert np.exp(given.log_probabilities(costs)) == pytest.approx(np.array([[0.9, 0.1]]))
    assert np.exp(given.log_choice(costs[:, 1], costs[None, :, 0])) == pytest.approx([0.1])
    assert response_from_dict(model.to_dict()) == model
    with pytest.raises(InvalidSetting, match="'lapses'"):
        UnknownSharpness(lapses=1.0)


def test_the_odds_of_a_lapse_fall_with_the_sharpness():
    model = UnknownSharpness(2.0, 1.0, lapses=0.2)
    # Odds of 1 to 4 at the median, times e at a sharpness e times smaller.
    given = model.given(np.array([-1.0, 0.0, 1.0]))
    odds = np.array([np.e, 1.0, 1 / np.e]) / 4
    assert given.lapses == pytest.approx(odds / (1 + odds))
    costs = np.array([[0.0, 1e6]])
    nodes = np.random.default_rng(0).standard_normal(200_000)
    [[slip]] = np.exp(model.log_probabilities(costs))[:, 1:]
    assert slip == pytest.approx(model.given(nodes).lapses.mean() / 2, abs=1e-3)

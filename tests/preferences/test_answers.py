"""Costs of questions and likelihoods of answers, each against its equation."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pear.errors import ConversationError, InvalidSetting
from pear.preferences.answers import (
    AboutTheSame,
    Chosen,
    NoneOfThese,
    Question,
    answer_from_dict,
    answer_to_dict,
)
from pear.preferences.response import Logistic, Noiseless


@st.composite
def questions(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    width = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    plans = [rng.normal(size=(length, width)) for length in lengths]
    return plans, draw(st.sampled_from([None, 0.0, 1.0])), rng.normal(size=(3, width))


@given(questions())
def test_a_plan_costs_the_sum_of_its_floored_steps(case):
    plans, floor, samples = case
    expected = [
        [
            sum(
                float(step @ weights) if floor is None else max(floor, float(step @ weights))
                for step in plan
            )
            for plan in plans
        ]
        for weights in samples
    ]
    assert np.allclose(Question.from_plans(plans, floor).costs(samples), expected)


@given(questions())
def test_a_question_survives_json(case):
    plans, floor, samples = case
    question = Question.from_plans(plans, floor)
    read = Question.from_dict(json.loads(json.dumps(question.to_dict())))
    assert np.array_equal(read.costs(samples), question.costs(samples))


def test_padding_costs_nothing_even_with_a_floor():
    # One step of cost 3; the floor of 1 must not be paid for the two padded steps.
    question = Question(np.array([[[3.0], [7.0], [9.0]]]), np.array([1]), floor=1.0)
    assert question.costs(np.array([[1.0]])).tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("plans", "what"),
    [([], "plans"), ([np.ones((1, 2)), np.ones((1, 3))], "plans"), ([np.ones(3)], "plans")],
)
def test_plans_that_do_not_fit_together_are_refused(plans, what):
    with pytest.raises(InvalidSetting, match=what):
        Question.from_plans(plans)


def test_an_empty_plan_is_refused():
    with pytest.raises(InvalidSetting, match="leave out empty plans"):
        Question.from_plans([np.ones((1, 2)), np.ones((0, 2))])


def test_a_feature_that_is_no_number_is_refused():
    with pytest.raises(InvalidSetting, match="'features' must be finite"):
        Question.from_plans([[[np.nan]]])


COSTS = np.array([[10.0, 14.0], [20.0, 20.0]])
WEIGHTS = np.array([0.5, 0.5])


def test_a_choice_has_the_response_models_probability():
    assert Chosen(1).log_likelihood(COSTS, Logistic(0.5))[0] == pytest.approx(
        -np.log(1 + np.exp(2))
    )
    assert np.exp(Chosen(1).log_likelihood(COSTS, Noiseless())).tolist() == [0.0, 0.5]


def test_about_the_same_falls_off_with_the_difference():
    # A difference of 4 with a tolerance of 2: exp(-(4 / 2)^2 / 2) = exp(-2); none: 1.
    answer = AboutTheSame(tolerance=2.0)
    assert answer.log_likelihood(COSTS, Noiseless()) == pytest.approx([-2.0, 0.0])


def test_the_tolerance_is_a_tenth_of_the_expected_cost():
    # Cheapest plans cost 10 and 20, 15 on average.
    assert AboutTheSame().resolve(COSTS, WEIGHTS) == AboutTheSame(1.5)
    assert AboutTheSame(3.0).resolve(COSTS, WEIGHTS) == AboutTheSame(3.0)


def test_none_of_these_is_likelier_the_dearer_the_cheapest_plan():
    # Reservation 15, scale 5: 1 / (1 + exp((15 - 10) / 5)) and 1 / (1 + exp((15 - 20) / 5)).
    likelihood = np.exp(NoneOfThese(15.0, 5.0).log_likelihood(COSTS, Logistic(1.0)))
    assert likelihood == pytest.approx([1 / (1 + np.e), 1 / (1 + 1 / np.e)])


def test_the_reservation_follows_from_what_is_expected():
    # Cheapest plans cost 10 and 20: mean 15, standard deviation 5.
    assert NoneOfThese().resolve(COSTS, WEIGHTS) == NoneOfThese(15.0, 5.0)
    assert NoneOfThese(40.0).resolve(COSTS, WEIGHTS) == NoneOfThese(40.0, 5.0)


def test_what_was_left_open_is_usable_when_nothing_is_uncertain():
    flat = np.zeros((3, 2))
    even = np.full(3, 1 / 3)
    for answer in (AboutTheSame(), NoneOfThese()):
        value = answer.resolve(flat, even).log_likelihood(flat, Noiseless())
        assert np.isfinite(value).all()


@pytest.mark.parametrize(
    "answer",
    [Chosen(2), AboutTheSame(), AboutTheSame(1.0), NoneOfThese(3.0, 1.0)],
)
def test_an_answer_survives_json(answer):
    assert answer_from_dict(json.loads(json.dumps(answer_to_dict(answer)))) == answer


def test_an_unknown_answer_is_refused_with_the_known_ones():
    with pytest.raises(ConversationError, match=r"chosen, about_the_same.*got 'maybe'"):
        answer_from_dict({"kind": "maybe"})


QUESTION = Question.from_plans([np.ones((1, 2)), np.ones((3, 2))])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Chosen(2), "one of the 2 plans"),
        (Chosen(-1), "one of the 2 plans"),
        (AboutTheSame(0.0), "'tolerance' must be a positive"),
        (NoneOfThese(1.0, -1.0), "'spread' must be a positive"),
        (NoneOfThese(float("nan"), 1.0), "'reservation' must be a cost"),
        (NoneOfThese("much", 1.0), "'reservation' must be a cost"),
        (AboutTheSame("a lot"), "'tolerance' must be a positive"),
        (Chosen(True), "one of the 2 plans"),
        (Chosen(0.5), "one of the 2 plans"),
        (Chosen("a"), "one of the 2 plans"),
    ],
)
def test_an_answer_to_another_question_is_refused(answer, message):
    with pytest.raises((ConversationError, InvalidSetting), match=message):
        answer.check(QUESTION)

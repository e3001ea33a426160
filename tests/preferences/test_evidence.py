"""All answers at once must judge as all answers one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pear.preferences.answers import (
    AboutTheSame,
    Chosen,
    Evidence,
    NoneOfThese,
    Relaxation,
    violation,
)
from pear.preferences.response import Logistic, Noiseless, UnknownSharpness

from .people import log_likelihood, random_question

WIDTH = 3


@st.composite
def conversations(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    answered = []
    for _ in range(draw(st.integers(1, 6))):
        plans = draw(st.integers(1, 4))
        floor = draw(st.sampled_from([None, 0.3, 0.3, 0.6]))
        question = random_question(rng, WIDTH, plans=plans, floor=floor)
        kinds = [Chosen(draw(st.integers(0, plans - 1))), AboutTheSame(0.5), NoneOfThese(1.0, 0.3)]
        answered.append((question, draw(st.sampled_from(kinds))))
    return tuple(answered), rng.normal(0.5, 1.0, (7, WIDTH))


def responses():
    standard = np.linspace(-1, 1, 7)
    return [Noiseless(), Logistic(0.9), UnknownSharpness().given(standard)]


@pytest.mark.parametrize("response", responses())
@given(conversations())
def test_all_at_once_is_one_by_one(response, conversation):
    answered, samples = conversation
    evidence = Evidence(answered)
    value = evidence.log_likelihood(evidence.project(samples), response)
    assert np.allclose(np.exp(value), np.exp(log_likelihood(answered, samples, response)))


@pytest.mark.parametrize("response", responses()[1:])
@given(conversations(), st.floats(0, 1))
def test_a_relaxed_last_answer_leaves_the_others_as_they_are(response, conversation, exponent):
    answered, samples = conversation
    evidence = Evidence(answered)
    value = evidence.log_likelihood(evidence.project(samples), response, Relaxation(exponent))
    question, answer = answered[-1]
    last = answer.log_likelihood(question.costs(samples), response)
    expected = log_likelihood(answered[:-1], samples, response) + exponent * last
    assert np.allclose(np.exp(value), np.exp(expected))


def test_slack_allows_a_dearer_plan():
    costs = np.array([[5.0, 3.0], [5.0, 4.5], [1.0, 2.0]])
    assert violation(costs, 0).tolist() == [2.0, 0.5, 0.0]
    value = Relaxation(slack=1.0).log_likelihood(costs, Chosen(0), Noiseless())
    assert value.tolist() == [-np.inf, 0.0, 0.0]

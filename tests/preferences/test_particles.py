"""The particle posterior: what an answer does to it, and what must never happen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.errors import ConversationError, InvalidSetting
from pear.preferences import (
    AboutTheSame,
    Chosen,
    GaussianMixturePrior,
    Logistic,
    Noiseless,
    NoneOfThese,
    ParticlePosterior,
    Question,
    UnknownSharpness,
)
from pear.preferences.posterior import _allocation, _reweighted

from .people import choice, importance_reference, random_question

WIDTH = 4
PRIOR = GaussianMixturePrior([[2.0] * WIDTH, [6.0, 0.0, 3.0, 1.0]], np.full((2, WIDTH), 1.0))
FIRST_OR_SECOND = Question.from_plans([[[1.0, 0, 0, 0]], [[0, 1.0, 0, 0]]])


def converse(posterior, answered, seed=0):
    for number, (question, answer) in enumerate(answered):
        posterior = posterior.update(question, answer, np.random.default_rng([seed, number]))
    return posterior


def begin(response, prior=PRIOR, n_particles=400, seed=0, **settings):
    rng = np.random.default_rng(seed)
    return ParticlePosterior.start(prior, response, rng, n_particles=n_particles, **settings)


@pytest.mark.parametrize("response", [Noiseless(), Logistic(2.0), UnknownSharpness(2.0, 0.5)])
def test_a_conversation_agrees_with_weighted_draws_of_the_prior(response):
    rng = np.random.default_rng(1)
    truth, _ = PRIOR.sample(1, rng)
    questions = [random_question(rng, WIDTH, plans=2 + n % 3, floor=1.0) for n in range(6)]
    answered = [(question, choice(question, truth[0], response, rng)) for question in questions]
    answered.insert(3, (random_question(rng, WIDTH), AboutTheSame(1.0)))
    answered.append((random_question(rng, WIDTH), NoneOfThese(3.0, 1.0)))
    posterior = converse(begin(response, n_particles=4000), answered)
    if isinstance(response, UnknownSharpness):
        # The same sharpness must have given all the answers: average over it outside.
        draws, components = PRIOR.sample(400_000, rng)
        given_sharpness = response.given(rng.standard_normal(len(draws)))
        weights = np.exp(
            sum(a.log_likelihood(q.costs(draws), given_sharpness) for q, a in answered)
        )
        weights /= weights.sum()
        mean = weights @ draws
        deviation = np.sqrt(weights @ (draws - mean) ** 2)
        shares = np.bincount(components, weights)
        sharpness = weights @ given_sharpness.sharpness
        estimate = posterior.weights @ posterior.sharpness
        assert estimate == pytest.approx(sharpness, rel=0.1)
    else:
        mean, deviation, shares, _ = importance_reference(PRIOR, answered, response, 400_000, rng)
    assert posterior.rejuvenations >= 1
    assert (np.abs(posterior.mean() - mean) < 0.1 * deviation).all()
    assert np.allclose(posterior.standard_deviation(), deviation, rtol=0.1)
    assert posterior.component_shares() == pytest.approx(shares, abs=0.05)


def test_an_answer_leaves_the_posterior_it_was_given_to_alone():
    before = begin(Noiseless())
    samples, weights = before.samples.copy(), before.weights.copy()
    after = before.update(FIRST_OR_SECOND, Chosen(0), np.random.default_rng(0))
    assert np.array_equal(before.samples, samples)
    assert np.array_equal(before.weights, weights)
    assert (before.n_answers, after.n_answers) == (0, 1)


def test_the_same_seed_gives_the_same_posterior():
    answered = [(random_question(np.random.default_rng(n), WIDTH), Chosen(n % 2)) for n in range(5)]
    first, second = (converse(begin(Logistic(5.0)), answered) for _ in range(2))
    assert first.rejuvenations > 0
    assert np.array_equal(first.samples, second.samples)
    assert np.array_equal(first.weights, second.weights)


def test_noiseless_answers_hold_for_every_particle():
    rng = np.random.default_rng(3)
    truth = np.array([2.5, 1.0, 3.0, 2.0])
    questions = [random_question(rng, WIDTH, plans=3) for _ in range(8)]
    answered = [(question, choice(question, truth, Noiseless(), rng)) for question in questions]
    posterior = converse(begin(Noiseless()), answered)
    alive = posterior.samples[posterior.weights > 0]
    for question, answer in answered:
        assert (question.costs(alive).argmin(axis=1) == answer.plan).all()
    assert posterior.health.contradiction is None
    assert posterior.health.good


def test_an_answer_few_expected_is_reached_in_steps():
    # Weight 0 exceeds weight 1 by 6 on average, with variance 2: the opposite has a probability
    # of about 1e-5, and there is no background to explain it.
    prior = GaussianMixturePrior([[6.0, 0.0]], [[1.0, 1.0]], background_weight=0.0)
    question = Question.from_plans([[[1.0, 0.0]], [[0.0, 1.0]]])
    posterior = begin(Noiseless(), prior, n_particles=2000)
    posterior = posterior.update(question, Chosen(0), np.random.default_rng(0))
    # Given w0 <= w1: the sum stays at 6, the difference is a normal tail beyond 0.
    difference = posterior.samples[:, 1] - posterior.samples[:, 0]
    assert posterior.health.bridges > 5
    assert posterior.health.contradiction is None
    assert (difference >= 0).all()
    # Mean of N(-6, 2) beyond 0, by its inverse Mills ratio: -6 + sqrt(2) h(6 / sqrt(2)).
    assert posterior.weights @ difference == pytest.approx(0.3034, abs=0.05)
    assert posterior.weights @ posterior.samples.sum(axis=1) == pytest.approx(6.0, abs=0.15)


def test_a_contradiction_falls_back_to_noise_and_says_so():
    answered = [(FIRST_OR_SECOND, Chosen(0)), (FIRST_OR_SECOND, Chosen(1))]
    posterior = converse(begin(Noiseless()), answered)
    health = posterior.health
    assert health.contradiction == 1
    assert isinstance(posterior.response, Logistic)
    assert health.fallback_sharpness == posterior.response.sharpness
    assert "answer 2 contradicts earlier ones" in str(health)
    assert posterior.weights.sum() == pytest.approx(1.0)
    assert health.effective_sample_size > 100
    # Both answers count the same now: neither weight is believed the larger.
    mean, deviation, _, _ = importance_reference(
        PRIOR, answered, posterior.response, 400_000, np.random.default_rng(0)
    )
    assert (np.abs(posterior.mean() - mean) < 0.2 * deviation).all()


def test_after_a_contradiction_the_conversation_goes_on():
    third = Question.from_plans([[[0, 0, 1.0, 0]], [[0, 0, 0, 1.0]]])
    answered = [
        (FIRST_OR_SECOND, Chosen(0)),
        (FIRST_OR_SECOND, Chosen(1)),
        (third, Chosen(1)),
    ]
    posterior = converse(begin(Noiseless()), answered)
    assert posterior.n_answers == 3
    assert posterior.health.contradiction == 1
    assert posterior.mean()[3] < posterior.mean()[2]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=6),
    st.sampled_from([Noiseless(), Logistic(1e3), Logistic(0.5), UnknownSharpness()]),
)
def test_no_conversation_empties_the_posterior(script, response):
    posterior = begin(response, n_particles=100, reservoir=1)
    for number, (subject, word) in enumerate(script):
        rng = np.random.default_rng(subject)
        question = random_question(rng, WIDTH, plans=2, floor=0.5)
        said = [Chosen(0), Chosen(1), Chosen(0), AboutTheSame(), NoneOfThese()]
        posterior = posterior.update(question, said[word], np.random.default_rng(number))
        assert np.isfinite(posterior.samples).all()
        assert posterior.weights.min() >= 0
        assert posterior.weights.sum() == pytest.approx(1.0)
        assert posterior.draw(7, np.random.default_rng(0)).shape == (7, WIDTH)


def test_a_person_unlike_anyone_before_is_found_in_the_background():
    prior = GaussianMixturePrior([[0.0, 50.0], [50.0, 0.0]], np.ones((2, 2)))
    truth = np.array([70.0, 68.0])
    rng = np.random.default_rng(0)
    posterior = begin(Noiseless(), prior, n_particles=2000)
    for _ in range(12):
        question = random_question(rng, 2, plans=3, longest=2)
        answer = choice(question, truth, Noiseless(), rng)
        posterior = posterior.update(question, answer, rng)
    assert posterior.component_shares()[prior.background] > 0.9
    assert posterior.health.contradiction is None


def test_a_rare_component_keeps_particles():
    prior = GaussianMixturePrior(
        [[0.0] * 2, [9.0] * 2], np.ones((2, 2)), [0.999, 0.001], background_weight=0.0
    )
    posterior = begin(Logistic(), prior, n_particles=1000, reservoir=1)
    assert (posterior.components == 1).sum() > 100
    assert posterior.component_shares() == pytest.approx([0.999, 0.001])
    assert posterior.mean() == pytest.approx([0.009] * 2, abs=0.1)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda shares: sum(shares) > 1e-3),
    st.integers(60, 300),
)
def test_every_component_that_is_possible_gets_particles(shares, n):
    shares = np.array(shares) / sum(shares)
    counts = _allocation(shares, n, None)
    assert counts.sum() == n
    assert (counts[shares > 1e-5] >= 1).all()
    assert (counts[shares == 0] == 0).all()


def test_draws_follow_the_weights():
    posterior = begin(Logistic(1.0)).update(FIRST_OR_SECOND, Chosen(0), np.random.default_rng(0))
    draws = posterior.draw(20_000, np.random.default_rng(0))
    assert np.allclose(draws.mean(axis=0), posterior.mean(), atol=0.02)


def test_the_mean_of_no_answers_is_the_priors():
    posterior = begin(Noiseless(), n_particles=5000)
    assert np.allclose(posterior.mean(), PRIOR.mean(), atol=0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_particles": 20}, "'n_particles' must be at least 10 for each of the 3"),
        ({"sweeps": 0}, "'sweeps' must be at least 1"),
        ({"reservoir": 0}, "'reservoir' must be at least 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        begin(Noiseless(), **settings)


def test_a_question_about_other_weights_is_refused():
    other = Question.from_plans([[[1.0, 0.0]], [[0.0, 1.0]]])
    with pytest.raises(InvalidSetting, match=r"features of 4 weights, as the prior has \(got 2"):
        begin(Noiseless()).update(other, Chosen(0), np.random.default_rng(0))
    with pytest.raises(ConversationError, match="one of the 2 plans"):
        begin(Noiseless()).update(FIRST_OR_SECOND, Chosen(2), np.random.default_rng(0))


def test_a_particle_that_is_out_stays_out_however_well_it_explains_an_answer():
    # Among the particles an earlier answer ruled out are those nearest to a tie.
    [gone, *left] = _reweighted(np.array([0.0, 0.5, 0.5]), np.array([0.0, -2000.0, -2001.0]))
    assert gone == 0.0
    assert left == pytest.approx([1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))])


def test_where_the_way_to_an_answer_is_cut_short_the_rest_is_taken_at_once(monkeypatch):
    monkeypatch.setattr("pear.preferences.posterior.MAX_BRIDGES", 1)
    prior = GaussianMixturePrior([[5.0, 5.0]], [[1.0, 1.0]], background_weight=0.0)
    question = Question.from_plans([[[1.0, 0.0]], [[0.0, 0.2]]])
    response, answered = Logistic(3.0), [(question, Chosen(0))]
    rng = np.random.default_rng(0)
    after = ParticlePosterior.start(prior, response, rng).update(question, Chosen(0), rng)
    assert after.bridges == 1
    mean, deviation, _, size = importance_reference(
        prior, answered, response, 1_000_000, np.random.default_rng(1)
    )
    assert size > 50
    assert (np.abs(after.mean() - mean) < 0.5 * deviation).all()

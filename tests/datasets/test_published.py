"""Our own definitions of the paper's problems against the published set-up."""

import numpy as np
import pytest

from pear.datasets import adult_problem, credit_problem, paper_prior_means
from pear.datasets.published import (
    published_classifier,
    published_outcomes,
    published_prior_means,
    published_problem,
    published_users,
)
from pear.decision.blackbox import probe_states
from pear.errors import InvalidSetting

OURS = {"adult": adult_problem, "givemecredit": credit_problem}


@pytest.mark.published
@pytest.mark.parametrize("name", OURS)
def test_features_grid_and_graph_are_the_published_ones(name, bench):
    ours, published = OURS[name](), published_problem(name)
    for feature, other in zip(ours.space.features, published.space.features, strict=True):
        same = ("name", "kind", "categories", "scale", "immutable", "protected", "levels")
        assert [getattr(feature, key) for key in same] == [getattr(other, key) for key in same]
    assert [a.name for a in ours.actions.actions] == [a.name for a in published.actions.actions]
    assert np.array_equal(ours.actions.argument_of, published.actions.argument_of)
    assert ours.weight_names == published.weight_names
    assert ours.max_length == published.max_length
    settings = ("floor", "offset", "zero_change")
    assert [getattr(ours.costs, key) for key in settings] == [
        getattr(published.costs, key) for key in settings
    ]


@pytest.mark.published
@pytest.mark.parametrize("name", OURS)
def test_what_is_allowed_and_what_it_costs_is_the_same(name, bench):
    ours, published = OURS[name](), published_problem(name)
    rng = np.random.default_rng(0)
    states = probe_states(published.space, 500, rng)
    assert np.array_equal(ours.actions.allowed(states), published.actions.allowed(states))
    moves = rng.integers(0, len(ours.actions), 500)
    weights = rng.normal(0, 60, (20, ours.costs.n_weights))
    assert np.array_equal(
        ours.costs.costs(states, ours.actions, moves, weights),
        published.costs.costs(states, published.actions, moves, weights),
    )


@pytest.mark.published
@pytest.mark.parametrize("name", OURS)
def test_the_prior_is_the_published_one(name, bench):
    assert np.array_equal(paper_prior_means(name), published_prior_means(name))
    assert [a.mean for a in OURS[name]().archetypes] == [
        tuple(mean) for mean in published_prior_means(name)
    ]


@pytest.mark.published
def test_the_published_classifier_reproduces_the_published_scores(bench):
    problem = adult_problem()
    users = published_users(problem)
    scores = published_classifier(problem).score(users.states)
    assert len(scores) == 300
    assert np.abs(scores - users.scores).max() < 1e-6


@pytest.mark.published
def test_the_published_weights_come_from_the_prior(bench):
    users = published_users(adult_problem())
    means = paper_prior_means("adult")
    # Identity covariance: 300 x 32 standard normal deviations stay well within 6.
    assert np.abs(users.weights - means[users.component]).max() < 6


def test_a_prior_of_another_data_set_is_refused():
    with pytest.raises(InvalidSetting, match="'name' must be one of adult, givemecredit"):
        paper_prior_means("compas")


@pytest.mark.parametrize("name", OURS)
def test_the_problems_stand_without_the_published_files(name, monkeypatch):
    monkeypatch.delenv("PEAR_BENCH", raising=False)
    problem = OURS[name]()
    assert len(problem.archetypes) == 6
    assert problem.costs.n_weights == len(problem.archetypes[0].mean)


@pytest.mark.published
@pytest.mark.parametrize("users", ["all", "hard"])
@pytest.mark.parametrize("classifier", ["network", "logistic", "tree"])
@pytest.mark.parametrize("name", ["adult", "givemecredit"])
def test_every_published_classifier_gives_its_users_their_published_scores(
    bench, name, classifier, users
):
    problem = published_problem(name)
    known = published_users(problem, name, classifier, users)
    scores = published_classifier(problem, name, classifier).score(known.states)
    assert len(scores) == 300
    assert np.abs(scores - known.scores).max() < 2e-7


@pytest.mark.published
def test_published_outcomes_hold_the_papers_cell(bench):
    outcomes = published_outcomes()
    chosen = (outcomes["dataset"] == "adult") & (outcomes["classifier"] == "network")
    chosen &= (outcomes["users"] == "all") & (outcomes["method"] == "pear_nl")
    chosen &= (outcomes["k"] == 2) & (outcomes["questions"] == 10) & outcomes["recourse"]
    each = outcomes[chosen].groupby("user")["cost"]
    assert each.mean().mean() == pytest.approx(142.23, abs=0.01)
    assert np.sqrt(each.var(ddof=1).mean()) == pytest.approx(61.75, abs=0.01)

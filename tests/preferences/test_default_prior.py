"""The prior of a problem that comes without one."""

import numpy as np
import pytest

from pear.preferences import default_prior
from pear.problem import Action, ActionSpace, Archetype, CostGraph, Feature, FeatureSpace, Problem


def problem(**settings):
    space = FeatureSpace(
        (
            Feature("income", scale=(0.0, 10.0), lower=0.0, upper=10.0),
            Feature("debt", scale=(0.0, 10.0), lower=0.0, upper=10.0),
        )
    )
    actions = ActionSpace(space, (Action("earn", "income", "add", (1.0,)),))
    costs = CostGraph(space, (("income", "debt"),))
    return Problem(space, actions, costs, **settings)


def test_nine_people_in_ten_lie_within_the_experts_range():
    asked = problem(weight_range={"income": (10.0, 30.0), "debt": (-5.0, 5.0)})
    prior = default_prior(asked, background_weight=0.0)
    samples, _ = prior.sample(100_000, np.random.default_rng(0))
    low, high = asked.weight_ranges.T
    within = ((samples > low) & (samples < high)).mean(axis=0)
    assert prior.n_weights == len(asked.weight_names) == 3
    assert within == pytest.approx([0.9] * 3, abs=0.005)
    assert prior.mean() == pytest.approx((low + high) / 2)


def test_somebody_unlike_the_experts_range_is_expected_too():
    prior = default_prior(problem())
    assert prior.background == 1
    assert (prior.factors[1] > prior.factors[0]).all()


def test_archetypes_are_components_and_the_ranges_their_background():
    kinds = (
        Archetype("careful", (1.0, 2.0, 3.0), (0.5, 0.5, 0.5), share=3.0),
        Archetype("busy", (9.0, 8.0, 7.0), (1.0, 2.0, 3.0), share=1.0),
    )
    asked = problem(archetypes=kinds)
    prior = default_prior(asked, background_weight=0.2)
    assert prior.means.tolist() == [[1.0, 2.0, 3.0], [9.0, 8.0, 7.0]]
    assert prior.covariances.tolist() == [[0.25] * 3, [1.0, 4.0, 9.0]]
    assert prior.shares == pytest.approx([0.6, 0.2, 0.2])
    assert prior.centres[2] == pytest.approx(asked.weight_ranges.mean(axis=1))
    wide = (asked.weight_ranges[:, 1] - asked.weight_ranges[:, 0]) / 2
    assert prior.factors[2] * 1.645 == pytest.approx(wide, rel=1e-3)

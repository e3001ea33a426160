"""The ensemble slice sampler on densities that are known."""

import numpy as np
import pytest
from scipy.stats import norm

from pear.preferences.slices import Clusters, _global_directions, sample_ensemble

COVARIANCE = np.array([[1.0, 0.9], [0.9, 1.0]]) * np.array([[1.0, 10.0], [10.0, 100.0]])
PRECISION = np.linalg.inv(COVARIANCE)
CENTRE = np.array([3.0, -20.0])


def gaussian(points):
    difference = points - CENTRE
    return -0.5 * np.einsum("ni,ij,nj->n", difference, PRECISION, difference)


@pytest.mark.parametrize("global_share", [0.0, 0.5])
def test_a_stretched_gaussian_is_sampled_as_it_is(global_share):
    rng = np.random.default_rng(0)
    chain = sample_ensemble(
        gaussian,
        CENTRE + rng.normal(size=(20, 2)),
        rng,
        burn_in=100,
        steps=400,
        global_share=global_share,
    )
    points = chain.points.reshape(-1, 2)
    assert points.mean(axis=0) == pytest.approx(CENTRE, rel=0.05)
    assert np.allclose(np.cov(points.T), COVARIANCE, rtol=0.15)
    assert np.allclose(chain.log_densities.ravel(), gaussian(points))


def test_a_hard_edge_is_never_crossed():
    # A standard normal cut off at 0, beside an independent one: mean of the first sqrt(2 / pi).
    def half(points):
        return np.where(points[:, 0] >= 0, -0.5 * (points**2).sum(axis=1), -np.inf)

    rng = np.random.default_rng(1)
    walkers = np.abs(rng.normal(size=(20, 2)))
    points = sample_ensemble(half, walkers, rng, burn_in=50, steps=500).points
    assert points[..., 0].min() >= 0
    assert points[..., 0].mean() == pytest.approx(np.sqrt(2 / np.pi), abs=0.05)


def test_global_moves_find_the_weight_of_two_modes():
    # Three quarters at -6, one quarter at 6, unit variance; walkers start half and half.
    def two(points):
        modes = (
            np.log(0.75) + norm.logpdf(points[:, 0], -6),
            np.log(0.25) + norm.logpdf(points[:, 0], 6),
        )
        return np.logaddexp(*modes) + norm.logpdf(points[:, 1])

    rng = np.random.default_rng(2)
    walkers = rng.normal(size=(20, 2)) + np.where(np.arange(20) % 2, 6, -6)[:, None] * [1, 0]
    points = sample_ensemble(two, walkers, rng, burn_in=40, steps=200).points
    assert (points[..., 0] < 0).mean() == pytest.approx(0.75, abs=0.08)


def test_lines_between_clusters_are_as_tight_as_the_reference_says():
    # Karamanis and Beutler, algorithm 4: twice the difference of one point of each cluster,
    # drawn with 0.001 of its covariance; within a cluster twice the scale times a full draw.
    clusters = Clusters(np.array([[0.0], [100.0]]), np.full((2, 1, 1), 3.0))
    lines = _global_directions(clusters, 40_000, 0.5, np.random.default_rng(0))[:, 0]
    between = np.abs(lines[np.abs(lines) > 100])
    assert between.mean() == pytest.approx(2 * 100, rel=1e-3)
    assert between.std() == pytest.approx(2 * np.sqrt(2 * 0.001) * 3, rel=0.03)
    assert len(between) / len(lines) == pytest.approx(0.5, abs=0.01)
    assert lines[np.abs(lines) < 100].std() == pytest.approx(2 * 0.5 * 3, rel=0.03)


def test_the_same_seed_gives_the_same_chain():
    walkers = CENTRE + np.random.default_rng(0).normal(size=(10, 2))
    chains = [
        sample_ensemble(gaussian, walkers, np.random.default_rng(7), burn_in=10, steps=5)
        for _ in range(2)
    ]
    assert np.array_equal(chains[0].points, chains[1].points)
    assert chains[0].scale == chains[1].scale

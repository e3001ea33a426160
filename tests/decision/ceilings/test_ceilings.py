"""Ceilings: never below a score that a completion reaches, and exact where nothing is left."""

from itertools import product

import numpy as np
import pytest
from benchmarks._draws import KINDS, draws, lacking, random_black_box, random_person

from pear.decision.ceilings import ceiling, fix


@pytest.fixture(scope="module", params=KINDS)
def black_box(request):
    package = lacking(request.param)
    if package:
        pytest.skip(f"{package} is not installed")
    return random_black_box(request.param, np.random.default_rng([7, KINDS.index(request.param)]))


def test_the_model_can_be_looked_into(black_box):
    assert black_box.inside is not None


@pytest.mark.slow
def test_no_completion_scores_above_its_ceiling(black_box):
    rng = np.random.default_rng(1)
    counts = np.array([draws(black_box, rng, 30, 10) for _ in range(4)])
    assert counts[:, 0].sum() == 1_200
    assert counts[:, 1].sum() == 0


def test_a_full_assignment_has_its_own_margin(black_box):
    rng = np.random.default_rng(2)
    start, values = random_person(black_box, rng)
    special = black_box.inside.specialise(start, range(5), values, 0.5)
    for _ in range(20):
        chosen = [int(rng.integers(len(options))) for options in values]
        for feature, option in enumerate(chosen):
            fix(special, feature, feature, option)
        margin = ceiling(special, 5, np.ones(special.gains.shape, bool), 0)
        state = np.array([[options[o] for options, o in zip(values, chosen, strict=True)]])
        score = black_box.inside.link.score(np.array([margin]))
        assert score == pytest.approx(black_box.score(state), abs=1e-5)


def test_linear_ceilings_are_exact():
    black_box = random_black_box("logistic", np.random.default_rng(3))
    rng = np.random.default_rng(4)
    start, values = random_person(black_box, rng)
    values = [options[:4] for options in values]
    special = black_box.inside.specialise(start, range(5), values, 0.5)
    open_options = rng.random(special.gains.shape) < 0.6
    open_options[:, 0] = True
    reached = max(
        black_box.inside.link.score(
            black_box.inside.model.margins(
                black_box.inside.encode(
                    np.array([[o[i] for o, i in zip(values, chosen, strict=True)]])
                )
            )
        )[0]
        for chosen in product(range(4), repeat=5)
        if np.count_nonzero(chosen) <= 2
        and all(open_options[feature, option] for feature, option in enumerate(chosen))
    )
    margin = ceiling(special, 0, open_options, 2)
    assert black_box.inside.link.score(np.array([margin]))[0] == pytest.approx(reached, abs=1e-12)

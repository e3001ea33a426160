"""Ceilings of several models: nothing that enough of them accept is ruled out, much else is."""

from itertools import product

import numpy as np
import pytest
from benchmarks._draws import random_black_box, random_person

from pear.decision import BlackBox, several
from pear.decision.ceilings import ceiling, fix


def models(kind, n=5):
    """Models about the same features and the same decision."""
    drawn = [random_black_box(kind, np.random.default_rng([5, number])) for number in range(4 * n)]
    return [model for model in drawn if model.goal.favourable == (1,)][:n]


@pytest.mark.slow
@pytest.mark.parametrize(("agree", "required"), [(1.0, 0.3), (0.8, 0.5), (0.4, 0.95)])
def test_no_favourable_assignment_is_above_the_ceiling(agree, required):
    black_box = several(models("logistic"), agree)
    rng = np.random.default_rng(2)
    ruled_out = favourable = 0
    for _ in range(15):
        start, values = random_person(black_box, rng)
        values = [options[:4] for options in values]
        special = black_box.inside.specialise(start, range(5), values, required)
        open_options = np.ones(special.gains.shape, bool)
        chosen = list(product(*(range(len(options)) for options in values)))
        states = np.array([[v[i] for v, i in zip(values, c, strict=True)] for c in chosen])
        yes = black_box.score(states) > required
        for assignment, accepted in zip(chosen, yes, strict=True):
            for feature, option in enumerate(assignment):
                fix(special, feature, feature, option)
            possible = ceiling(special, 5, open_options, 0) > special.required
            assert possible or not accepted
            ruled_out += not possible
        favourable += int(yes.sum())
    assert ruled_out > 0
    assert favourable > 0


def test_where_all_must_agree_any_kind_of_model_rules_out():
    black_box = several([*models("logistic", 2), *models("forest", 1)])
    assert black_box.inside.doubters == 1
    start, values = random_person(black_box, np.random.default_rng(0))
    assert black_box.inside.specialise(start, range(5), values, 0.5) is not None


def test_too_few_models_that_can_be_read_say_nothing():
    one = models("logistic", 1)[0]
    closed = BlackBox(lambda states: np.full(len(states), 0.9), one.space, one.goal)
    assert several([one, closed], 0.5).inside is None
    assert several([one, closed]).inside is not None

"""Plans under a prior: of least expected cost, whoever makes them."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting, PearError
from pear.planning.exact import ExactPlanner
from pear.portfolio import Everyone, Search, plan_portfolio
from pear.portfolio.beliefs import prior_draws, stated, weights_from
from pear.preferences import GaussianMixturePrior
from pear.problem import walk
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, black_box, people, write

SEARCH = Search(together=16)
PRIOR = GaussianMixturePrior([WEIGHTS], [np.full(6, 100.0)])


def plan(source, output, weights, workers=1, **settings):
    return plan_portfolio(
        PROBLEM, black_box(), source, output, weights, workers=workers, search=SEARCH, **settings
    )


@pytest.fixture
def table(tmp_path):
    return write(people(), tmp_path / "people.parquet")


def everything(longest=3):
    """All sequences of moves that change no feature twice."""
    moves = range(len(PROBLEM.actions.feature_of))
    for length in range(1, longest + 1):
        for found in itertools.permutations(moves, length):
            if len({PROBLEM.actions.feature_of[move] for move in found}) == length:
                yield found


def test_under_the_prior_no_plan_has_less_mean_floored_cost(tmp_path):
    kinds = np.stack([WEIGHTS, WEIGHTS[[1, 0, 2, 3, 4, 5]], WEIGHTS * [1, 1, -3, 1, 1, -2]])
    prior = GaussianMixturePrior(kinds, np.full(kinds.shape, 9.0))
    given = Everyone.under(prior, 12)
    assert given.weights.shape == (12, 6)
    table = write(people(30), tmp_path / "people.parquet")
    plan(table, tmp_path / "plans.parquet", given)
    written = pd.read_parquet(tmp_path / "plans.parquet")
    model, costs, sequences = black_box(), PROBLEM.costs, list(everything())
    states = PROBLEM.space.encode(people(30).drop(columns="id"))
    differs = 0
    for state, row in zip(states, written.itertuples(), strict=True):
        if row.decision == "approved":
            continue
        best, at_mean = np.inf, (np.inf, np.inf)
        for moves in sequences:
            try:
                end = walk(state, PROBLEM.actions, moves)[-1]
                features = costs.sequence_features(state, PROBLEM.actions, moves)
            except PearError:
                continue
            if model.favourable(end[None])[0]:
                mean = np.maximum(features @ given.weights.T, costs.floor).sum(axis=0).mean()
                flat = np.maximum(features @ prior.mean(), costs.floor).sum()
                best, at_mean = min(best, mean), min(at_mean, (flat, mean))
        assert row.success == np.isfinite(best)
        if row.success:
            assert row.verdict == "optimal"
            assert row.cost == pytest.approx(best, abs=1e-9)
            assert row.lower_bound == pytest.approx(best, abs=1e-9)
            assert sum(s["cost"] for s in json.loads(row.steps)) == pytest.approx(best, abs=1e-9)
            differs += at_mean[1] > best + 1e-9
    assert differs, "the mean weights would give the same plans: nothing is tested"


@pytest.mark.slow
def test_samples_give_the_same_plans_alone_and_with_any_number_of_workers(tmp_path, table):
    given = Everyone.under(PRIOR, 8)
    plan(table, tmp_path / "one.parquet", given)
    plan(table, tmp_path / "two.parquet", given, workers=2)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    planner = ExactPlanner(PROBLEM, black_box())
    states = PROBLEM.space.encode(people().drop(columns="id"))
    for state, row in zip(
        states, pd.read_parquet(tmp_path / "one.parquet").itertuples(), strict=True
    ):
        alone = planner.plan(state, given.weights)
        assert row.rows_asked == alone.certificate.rows
        assert row.cost == pytest.approx(alone.cost, abs=1e-9) or not alone.success
        assert [s["after"] for s in json.loads(row.steps)] == [s.after for s in alone.steps]


def test_an_unfinished_run_with_other_samples_is_refused(tmp_path, table):
    output = tmp_path / "plans.parquet"
    with pytest.raises(ZeroDivisionError):
        plan(table, output, Everyone.under(PRIOR, 8), progress=lambda p: 1 / (p.done == 0))
    for other in (Everyone.under(PRIOR, 9), Everyone.under(PRIOR, 1), Everyone(WEIGHTS)):
        with pytest.raises(InvalidSetting, match="differs in weights"):
            plan(table, output, other)
    assert plan(table, output, Everyone.under(PRIOR, 8)).resumed == 4


def test_draws_of_a_prior_keep_its_mean_and_spread():
    rng = np.random.default_rng(0)
    prior = GaussianMixturePrior(rng.normal(20, 9, (3, 6)), np.full((3, 6), 4.0), [0.5, 0.25, 0.25])
    draws = prior_draws(prior.with_background(0), 32)
    assert np.array_equal(draws, prior_draws(prior.with_background(0), 32))
    assert not np.array_equal(draws, prior_draws(prior.with_background(0), 32, seed=1))
    assert draws.mean(axis=0) == pytest.approx(prior.with_background(0).mean(), abs=1e-5)
    within = draws[:16] - draws[:16].mean(axis=0)
    assert np.sqrt((within**2).sum() / (15 * 6)) == pytest.approx(2.0, rel=0.2)


def test_stated_weights_are_read_back_or_refused():
    draws = prior_draws(PRIOR, 4)
    assert np.array_equal(weights_from(stated(draws), 6, PRIOR), draws)
    assert weights_from("[1, 2]", 2, None).tolist() == [[1, 2]]
    assert weights_from("[[1, 2], [3, 4]]", 2, None).tolist() == [[1, 2], [3, 4]]
    for text in ("", "[1]", "[[[1, 2]]]", '{"seed": 1}', '["a", "b"]', "nan"):
        with pytest.raises(InvalidData, match="not weights"):
            weights_from(text, 2, None)
    with pytest.raises(InvalidSetting, match="made under a prior"):
        weights_from(stated(draws), 6, None)
    other = GaussianMixturePrior([WEIGHTS + 1e-3], [np.full(6, 100.0)])
    with pytest.raises(FingerprintMismatch, match="another prior"):
        weights_from(stated(draws), 6, other)

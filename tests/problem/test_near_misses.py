"""Where people end who miss a step by a little, and plans that hold for all of it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pear.decision import from_callable
from pear.errors import InvalidProblem
from pear.planning.exact import ExactPlanner
from pear.planning.verify import verify
from pear.problem import Action, Feature, Problem
from pear.problem.files import load_problem, write_problem
from pear.problem.plan import lowest_within, near_misses

STEPS = tuple(float(step) for step in range(100, 1_001, 100))


def problem_of(tolerance, **more):
    features = [Feature("income", lower=0.0, upper=2_600.0), Feature("debt", lower=0.0, **more)]
    return Problem(
        features,
        [
            Action("earn", "income", "add", STEPS, tolerance=tolerance),
            Action("repay", "debt", "add", tuple(-step for step in STEPS), tolerance=50.0),
        ],
    )


def test_ends_are_within_bounds_and_never_behind_the_start():
    actions = problem_of(200.0).actions
    start = np.array([2_000.0, 300.0])
    found, owners = near_misses(actions, start, np.array([[2_500.0, 300.0], [2_100.0, 0.0]]))
    # 2,500 - 200 and no more than 2,600; 2,100 - 200 would be less than at the start.
    assert found[owners == 0].tolist() == [[2_300.0, 300.0], [2_600.0, 300.0]]
    lows = found[owners == 1]
    assert len(lows) == 3 * 2 - 1
    assert lows[:, 0].min() == 2_000.0
    assert set(lows[:, 1]) == {0.0, 50.0}


@pytest.mark.filterwarnings("error")
def test_an_end_whose_near_miss_was_not_asked_is_not_known():
    owners, missed = np.array([0, 1]), np.array([0.7, np.nan])
    lowest = lowest_within(np.array([0.9, 0.9]), owners, missed)
    assert np.array_equal(lowest, [0.7, np.nan], equal_nan=True)


def test_unknown_starts_bound_nothing():
    problem = Problem(
        [Feature("income", missing_counts_as=0)],
        [Action("state", "income", "set", (500.0,), from_missing=True, tolerance=100.0)],
    )
    found, _ = near_misses(problem.actions, np.array([np.nan]), np.array([[500.0]]))
    assert found.tolist() == [[400.0], [600.0]]


def dented(problem):
    """Needs an income of 2,350, or one of exactly 2,200; each 100 of debt asks 10 more."""

    def score(states):
        least = 2_350.0 + 0.1 * (states[:, 1] - 300.0)
        return np.where((states[:, 0] >= least) | (states[:, 0] == 2_200.0), 0.9, 0.1)

    return from_callable(score, problem)


@pytest.mark.parametrize(("tolerance", "reached"), [(0.0, 2_200.0), (50.0, 2_400.0), (60.0, 2_500)])
def test_a_plan_holds_for_everything_within_its_tolerance(tolerance, reached):
    problem = problem_of(tolerance)
    model = dented(problem)
    start, weights = np.array([2_000.0, 300.0]), np.array([0.001, 10.0])
    plan = ExactPlanner(problem, model).plan(start, weights)
    assert plan.certificate.verdict == "optimal"
    assert [(step.feature, step.after) for step in plan.steps] == [("income", reached)]
    report = verify(plan, problem, model)
    assert report.confirmed, report.words()


def test_a_plan_that_a_near_miss_spoils_is_refused_by_verify():
    strict, loose = problem_of(0.0), problem_of(60.0)
    start, weights = np.array([2_000.0, 300.0]), np.array([0.001, 10.0])
    plan = ExactPlanner(strict, dented(strict)).plan(start, weights)
    other = ExactPlanner(loose, dented(loose)).plan(start, weights)
    forged = replace(plan, problem_fingerprint=loose.fingerprint, certificate=other.certificate)
    assert "within what may be missed" in verify(forged, loose, dented(loose)).words()


def test_the_planner_and_brute_force_agree_on_random_problems():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        features = [Feature(name, lower=0.0, upper=6.0) for name in "abc"]
        actions = [
            Action(f"set_{name}", name, "set", (1.0, 2.0, 3.0, 4.0, 5.0), tolerance=float(far))
            for name, far in zip("abc", rng.choice([0.0, 0.5, 1.0], 3), strict=True)
        ]
        problem = Problem(features, actions)
        slope, bend = rng.normal(size=3), rng.normal(size=3)

        def score(states, slope=slope, bend=bend):
            z = states @ slope + np.sin(2 * states) @ bend - slope.clip(0).sum() * 3
            return 1 / (1 + np.exp(-z))

        model = from_callable(score, problem)
        start, weights = np.array([1.0, 1.0, 1.0]), rng.uniform(1, 5, 3)
        if model.favourable(start[None])[0]:
            continue
        plan = ExactPlanner(problem, model).plan(start, weights)
        ends = np.array(list(product(range(1, 6), repeat=3)), float)
        costs = np.maximum(np.abs(ends - start) @ np.diag(weights), (ends != start) * 1.0).sum(1)

        def holds(end, start=start, problem=problem, model=model):
            missed, _ = near_misses(problem.actions, start, end[None])
            return model.favourable(np.vstack([end[None], missed])).all()

        good = [cost for end, cost in zip(ends, costs, strict=True) if holds(end)]
        assert plan.success == bool(good)
        if good:
            assert plan.cost == pytest.approx(min(good))
        # The prover writes all of this down a second time; only points in between may be worse.
        refusals = verify(plan, problem, model).refusals
        assert all("however its steps are missed" in f.claim for f in refusals), refusals


def test_a_tolerance_is_kept_in_the_file_and_decides_about_plans(tmp_path):
    problem = problem_of(100.0)
    write_problem(problem, tmp_path / "problem.toml")
    again = load_problem(tmp_path / "problem.toml")
    assert again == problem
    assert again.fingerprint == problem.fingerprint != problem_of(0.0).fingerprint


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), "some", True])
def test_a_tolerance_that_is_none_is_refused(tolerance):
    with pytest.raises(InvalidProblem, match="'tolerance'"):
        problem_of(tolerance)


def test_only_numbers_can_be_missed_and_whole_ones_by_whole_numbers():
    with pytest.raises(InvalidProblem, match="a whole number"):
        Problem([Feature("n", "integer")], [Action("a", "n", "add", (1,), tolerance=0.5)])
    with pytest.raises(InvalidProblem, match="cannot be missed"):
        Problem([Feature("n", "boolean")], [Action("a", "n", "set", (True,), tolerance=1.0)])

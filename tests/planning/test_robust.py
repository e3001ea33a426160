"""Do plans last: retrained models, what they say of plans, and the margin that keeps them valid."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from pear.cli.main import app
from pear.decision import from_callable, from_sklearn, load_model, save_sklearn
from pear.decision.several_models import bootstraps, halves, retrained, windows
from pear.errors import InvalidData, InvalidSetting, ModelError, PearError
from pear.planning.exact import ExactPlanner
from pear.planning.robust import Rehearsal, Robustness, calibrated_margin
from pear.portfolio import Everyone, plan_portfolio
from pear.portfolio.run import ModelPlace
from pear.preferences import default_prior
from pear.problem import Action, Feature, Limits, Problem
from pear.problem.files import write_problem

STEPS = tuple(float(step) for step in range(10, 201, 10))


@pytest.fixture
def problem():
    return Problem([Feature("income", scale=(0, 200))], [Action("earn", "income", "add", STEPS)])


@pytest.fixture
def people():
    """Incomes and decisions: yes from about 100."""
    rng = np.random.default_rng(0)
    incomes = rng.uniform(0, 200, 300).round()
    return incomes[:, None], np.where(incomes + rng.normal(0, 30, 300) > 100, "yes", "no")


def needing(income, problem):
    return from_callable(lambda s: np.clip(s[:, 0] / (2 * income), 0, 1), problem, str(income))


def plan_to(income, problem):
    """A plan from 0 that just exceeds an income."""
    planner = ExactPlanner(problem, needing(income, problem))
    return planner.plan(np.zeros(1), np.ones(1))


def test_a_plan_is_accepted_by_the_models_it_satisfies(problem):
    plans = [plan_to(95, problem), plan_to(155, problem)]  # They lead to 100 and to 160.
    models = [needing(income, problem) for income in (50, 98, 120, 150)]
    found = Robustness.of(plans, problem, models)
    assert found.answers.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert found.share == 0.75
    assert found.lasting(0.95) == 0.5
    assert (
        Robustness.of(plans[:1], problem, models).words() == "2 of 4 models accept this plan (50%)."
    )


def test_a_plan_is_held_to_the_threshold_not_to_its_margin(problem):
    planner = ExactPlanner(problem, needing(100, problem))
    plan = planner.plan(np.zeros(1), np.ones(1), Limits(margin=0.2))
    assert plan.steps[-1].after == 150
    assert Robustness.of([plan], problem, [needing(140, problem)]).share == 1


def test_who_has_no_plan_is_not_counted(problem):
    none = plan_to(500, problem)
    assert not none.success
    assert np.isnan(Robustness.of([none], problem, [needing(50, problem)]).share)
    assert (
        len(Robustness.of([none, plan_to(95, problem)], problem, [needing(50, problem)]).answers)
        == 1
    )


def test_retrained_models_differ_and_keep_settings(problem, people):
    states, labels = people
    tree = DecisionTreeClassifier(max_depth=2, splitter="random", random_state=1).fit(
        states, labels
    )
    today = from_sklearn(tree, problem, name="today")
    rng = np.random.default_rng(0)
    models = retrained(today, states, labels.tolist(), bootstraps(300, 5, rng), rng)
    assert len({model.fingerprint for model in models}) == 5
    assert {model.function.model.max_depth for model in models} == {2}
    assert len({model.function.model.random_state for model in models}) == 5


def test_windows_of_time_go_from_the_earliest_to_the_latest():
    times = np.array([5, 1, 3, 2, 4, 0])
    found = windows(times, 4)
    assert [sorted(times[rows]) for rows in found] == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]


def test_labels_that_are_no_class_and_models_that_cannot_be_trained_are_refused(problem, people):
    states, labels = people
    today = from_sklearn(LogisticRegression().fit(states, labels), problem)
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidData, match="which is not a class of model"):
        retrained(today, states, ["perhaps"] * 300, bootstraps(300, 1, rng), rng)
    with pytest.raises(InvalidData, match="one class only"):
        retrained(today, states, ["no"] * 300, bootstraps(300, 1, rng), rng)
    with pytest.raises(ModelError, match="train its versions yourself"):
        retrained(needing(50, problem), states, labels, bootstraps(300, 1, rng), rng)


def test_the_margin_is_the_smallest_that_is_enough(problem):
    # A plan of margin m leads above 200 * (0.5 + m), in tens; models need 100, 110, ... 190.
    planner = ExactPlanner(problem, needing(100, problem))
    models = [needing(income - 1, problem) for income in range(100, 200, 10)]
    one = [Rehearsal(planner, models)]
    found = calibrated_margin(one, np.zeros((1, 1)), np.full(1, 99.0), demanded=0.5)
    # Half of the models need 140: a margin of 0.16 reaches it, 0.13 ends at 130.
    assert found.margin == 0.16
    assert found.share >= 0.5
    assert found.cost_ratio > 1
    assert calibrated_margin(one, np.zeros((1, 1)), np.ones(1), 1.0).margin == 0.4
    never = [Rehearsal(planner, [needing(400, problem)])]
    beyond = calibrated_margin(never, np.zeros((1, 1)), np.ones(1))
    assert beyond.margin is None
    assert "No margin" in beyond.words()


def test_the_share_demanded_must_be_one(problem):
    with pytest.raises(InvalidSetting, match="'demanded'"):
        calibrated_margin([], np.zeros((1, 1)), np.ones(1), 1.5)


def test_people_are_dealt_out_and_only_those_refused_are_planned_for(problem):
    # The first planner's model refuses up to 99, the second's up to 149.
    pairs = [(100, 100), (150, 150)]
    rehearsals = [
        Rehearsal(ExactPlanner(problem, needing(a, problem)), [needing(b, problem)])
        for a, b in pairs
    ]
    states = np.array([[0.0], [0.0], [120.0], [120.0]])
    found = calibrated_margin(rehearsals, states, np.ones(1))
    assert (found.people, found.models, found.share, found.margin) == (3, 2, 1.0, 0.0)


def test_halves_share_nobody():
    samples = halves(9, 3, np.random.default_rng(0))
    for first, second in zip(samples[::2], samples[1::2], strict=True):
        assert not set(first) & set(second)
        assert len(set(first)) == len(set(second)) == 4


@pytest.fixture
def lender(problem, people, tmp_path):
    states, labels = people
    write_problem(problem, tmp_path / "problem.toml")
    save_sklearn(LogisticRegression().fit(states, labels), tmp_path / "model.skops")
    table = pd.DataFrame({"income": states[:, 0], "paid": labels, "year": np.arange(300) // 100})
    table.to_csv(tmp_path / "past.csv", index=False)
    model = load_model(tmp_path / "model.skops", problem)
    plan = ExactPlanner(problem, model).plan(np.zeros(1), np.ones(1))
    (tmp_path / "plan.json").write_text(plan.to_json())
    return tmp_path


def robust(lender, *arguments):
    where = [str(lender / "problem.toml"), "--model", str(lender / "model.skops")]
    return CliRunner().invoke(app, ["robust", *where, *map(str, arguments)])


@pytest.mark.parametrize("more", [(), ("--time", "year")])
def test_the_command_trains_again_keeps_the_models_and_finds_a_margin(lender, more):
    past = lender / "past.csv"
    shown = robust(
        lender, "--data", past, "--label", "paid", "--retrain", 6, *more, "--keep", lender / "kept",
        "--plans", lender / "plan.json", "--people", past, "--sample", 5,
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert "of 6 models accept this plan" in shown.output
    assert "margin" in shown.output
    again = robust(lender, "--version", lender / "kept", "--plans", lender / "plan.json")
    assert again.output.strip() in shown.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either '--version'"),
        (("--data", "past.csv", "--plans", "plan.json"), "'--label' is missing"),
        (("--data", "past.csv", "--label", "repaid"), "no column 'repaid'"),
        (("--version", "model.skops"), "nothing to do"),
        (("--version", "model.skops", "--plans", "plan.json", "--demand", "2"), "'--demand'"),
        (
            ("--data", "past.csv", "--label", "paid", "--keep", "past.csv"),
            "'past.csv' is no folder",
        ),
        (("--version", "model.skops", "--plans", "spoiled.json"), "no feature 'wealth'"),
    ],
)
def test_what_the_command_lacks_is_named(lender, monkeypatch, arguments, message):
    monkeypatch.chdir(lender)
    text = (lender / "plan.json").read_text()
    (lender / "spoiled.json").write_text(text.replace('"feature": "income"', '"feature": "wealth"'))
    shown = robust(lender, *arguments)
    assert isinstance(shown.exception, PearError)
    assert message in str(shown.exception)


def test_a_plan_is_read_from_its_steps_whatever_its_moves_are(problem):
    plan = plan_to(95, problem)
    models = [needing(98, problem)]
    moved = replace(plan, moves=(999,) * plan.length)
    assert Robustness.of([moved], problem, models).answers.tolist() == [[1]]


def test_the_table_of_pear_plan_needs_no_prior(lender, problem):
    pd.DataFrame({"income": [0.0, 20.0]}).to_csv(lender / "people.csv", index=False)
    model = ModelPlace(str(lender / "model.skops"))
    weights = Everyone.under(default_prior(problem))
    plan_portfolio(problem, model, lender / "people.csv", lender / "plans.csv", weights, workers=1)
    shown = robust(lender, "--version", lender / "model.skops", "--plans", lender / "plans.csv")
    assert shown.exit_code == 0, shown.exception
    assert "of 2 plans" in shown.output

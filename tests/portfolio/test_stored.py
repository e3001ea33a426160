"""Plans read from a table again are those that were made; pear show and pear verify use them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pear import Limits
from pear.cli.main import app
from pear.decision import save_sklearn
from pear.errors import InvalidData, InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.planning.verify import verify
from pear.portfolio import Everyone, ModelPlace, plan_portfolio
from pear.portfolio.plans import plan_of, plans_of
from pear.preferences import default_prior
from pear.problem.files import write_problem
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, people, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A problem, its model, people, and their plans under limits and weights of their own."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    folder = tmp_path_factory.mktemp("lender")
    write_problem(PROBLEM, folder / "problem.toml")
    table = people(400, seed=9).drop(columns="id")
    total = table["income"] + table["savings"] + 20 * (table["job"] == "full")
    encoder = make_column_transformer((OneHotEncoder(), ["job", "sex"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression(max_iter=5_000)).fit(table, total > 100)
    save_sklearn(model, folder / "model.skops")
    write(people(30), folder / "people.parquet")
    ids = list(people(30)["id"])
    given = Everyone(
        WEIGHTS,
        limits={
            ids[3]: Limits().without_features("income"),
            ids[4]: Limits().without_features("income", "savings", "job"),
        },
    )
    for name in ("plans.parquet", "plans.csv"):
        place = ModelPlace(str(folder / "model.skops"))
        plan_portfolio(PROBLEM, place, folder / "people.parquet", folder / name, given, workers=1)
    return folder


@pytest.mark.parametrize("name", ["plans.parquet", "plans.csv"])
def test_plans_read_again_are_the_plans_made(folder, name):
    black_box = ModelPlace(str(folder / "model.skops")).load(PROBLEM)
    planner, whole = ExactPlanner(PROBLEM, black_box), people(30)
    verdicts = set()
    for found in plans_of(folder / name, PROBLEM):
        state = PROBLEM.state(whole[list(PROBLEM.space.names)].iloc[found.row])
        made = planner.plan(state, WEIGHTS, found.plan.limits)
        assert found.id == str(whole["id"].iloc[found.row])
        assert [(s.action, s.argument) for s in found.plan.steps] == [
            (s.action, s.argument) for s in made.steps
        ]
        assert found.plan.moves == made.moves
        assert found.plan.start == made.start
        assert found.plan.cost == pytest.approx(made.cost)
        assert found.plan.certificate.verdict == made.certificate.verdict
        assert found.plan.certificate.blocking == made.certificate.blocking
        assert np.array_equal(found.plan.weights, made.weights)
        assert verify(found.plan, PROBLEM, black_box).confirmed
        verdicts.add(found.plan.certificate.verdict)
    assert verdicts == {"optimal", "infeasible"}


def test_one_plan_is_found_by_row_and_by_id(folder):
    everyone = list(plans_of(folder / "plans.csv", PROBLEM))
    assert plan_of(folder / "plans.csv", PROBLEM, row=7) == everyone[7]
    assert plan_of(folder / "plans.csv", PROBLEM, id=everyone[9].id) == everyone[9]
    assert plan_of(folder / "plans.csv", row=7).plan.weights == ()
    with pytest.raises(InvalidData, match="no plan for row 30"):
        plan_of(folder / "plans.csv", row=30)
    with pytest.raises(InvalidData, match="no plan for the id 'nobody'"):
        plan_of(folder / "plans.csv", id="nobody")


def test_a_table_that_is_no_table_of_plans_is_refused(folder, tmp_path):
    with pytest.raises(InvalidData, match="lacks the columns row"):
        list(plans_of(folder / "people.parquet"))
    table = pd.read_csv(folder / "plans.csv").astype({"steps": object})
    table.loc[2, "steps"] = "[{"
    table.to_csv(tmp_path / "plans.csv", index=False)
    with pytest.raises(InvalidData, match="row 2: the plan cannot be read"):
        list(plans_of(tmp_path / "plans.csv", PROBLEM))


def pear(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def check(folder, plans, *more):
    return pear("verify", plans, "--problem", folder / "problem.toml",
                "--model", folder / "model.skops", *more)  # fmt: skip


def test_one_plan_of_a_table_is_verified(folder):
    shown = check(folder, folder / "plans.parquet", "--row", 3)
    assert shown.exit_code == 0, shown.output
    assert "row 3" in shown.output
    assert "Confirmed: what the plan claims is true." in shown.output


def test_all_plans_of_a_table_are_verified(folder, tmp_path):
    shown = check(folder, folder / "plans.csv", "--all")
    assert shown.exit_code == 0, shown.output
    assert "30 plans checked: 30 confirmed, 0 refused" in shown.output
    table = pd.read_parquet(folder / "plans.parquet")
    row = int(np.flatnonzero(table["length"].fillna(0) > 0)[0])
    steps = json.loads(table.loc[row, "steps"])
    steps[0]["cost"] *= 0.5
    table.loc[row, "steps"] = json.dumps(steps)
    table.to_parquet(tmp_path / "plans.parquet")
    shown = check(folder, tmp_path / "plans.parquet", "--all")
    assert shown.exit_code == 1
    assert "29 confirmed, 1 refused" in shown.output
    assert f"row {row} (" in shown.output


def test_plans_under_the_prior_are_verified_too(folder, tmp_path):
    place = ModelPlace(str(folder / "model.skops"))
    given = Everyone.under(default_prior(PROBLEM))
    plan_portfolio(PROBLEM, place, folder / "people.parquet", tmp_path / "p.csv", given, workers=1)
    shown = check(folder, tmp_path / "p.csv", "--all")
    assert shown.exit_code == 0, shown.output


def test_a_table_needs_somebody_named(folder):
    for more in ((), ("--row", 1, "--all")):
        shown = check(folder, folder / "plans.csv", *more)
        assert isinstance(shown.exception, InvalidSetting)
    assert isinstance(pear("show", folder / "plans.csv").exception, InvalidSetting)


def test_a_plan_is_shown_with_its_reasons(folder):
    everyone = list(plans_of(folder / "plans.parquet"))
    row, plan = next((found.row, found.plan) for found in everyone if found.plan.steps)
    shown = pear("show", folder / "plans.parquet", "--row", row)
    assert shown.exit_code == 0, shown.output
    said = " ".join(shown.output.split())
    for step in plan.steps:
        assert step.words in said
        assert step.reason in said
    assert plan.certificate.words() in said


def test_a_plan_as_json_is_shown(folder, tmp_path):
    plan = next(found.plan for found in plans_of(folder / "plans.csv") if found.plan.steps)
    (tmp_path / "plan.json").write_text(plan.to_json())
    assert plan.steps[0].words in pear("show", tmp_path / "plan.json").output

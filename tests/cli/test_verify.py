"""pear verify with a problem, a model and a plan in real files."""

import json

import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from pear.cli.main import app
from pear.datasets import loan_book_problem, loan_book_table
from pear.decision import load_model, save_sklearn
from pear.errors import InvalidData, InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.problem import Limits
from pear.problem.files import write_problem


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    """A folder with problem.toml, model.skops, another model, and a plan with limits."""
    folder = tmp_path_factory.mktemp("audit")
    problem = loan_book_problem()
    table = loan_book_table(600, 0)
    people = table[list(problem.space.names)]
    states = problem.space.encode(people)
    for name, seed in (("model", 0), ("other", 1)):
        texts = [feature.name for feature in problem.space.features if feature.is_categorical]
        model = make_pipeline(
            make_column_transformer((OneHotEncoder(), texts), remainder="passthrough"),
            RandomForestClassifier(8, max_depth=5, random_state=seed),
        ).fit(people, table["approved"])
        save_sklearn(model, folder / f"{name}.skops")
    write_problem(problem, folder / "problem.toml")
    black_box = load_model(folder / "model.skops", problem)
    planner = ExactPlanner(problem, black_box)
    refused = states[~black_box.favourable(states)]
    weights = problem.weight_ranges.mean(axis=1)
    plans = [planner.plan(state, weights, Limits(max_steps=2)) for state in refused[:3]]
    plan = max((plan for plan in plans if plan.success), key=lambda plan: plan.length)
    (folder / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    return folder


def verify(folder, plan="plan.json", model="model.skops", more=()):
    problem = ["--problem", str(folder / "problem.toml"), "--model", str(folder / model)]
    return CliRunner().invoke(app, ["verify", str(folder / plan), *problem, *more])


@pytest.mark.slow
def test_a_plan_from_files_is_confirmed(audit):
    result = verify(audit)
    assert result.exit_code == 0, result.output
    assert "claims:" in result.output
    assert "with at most 2 changes" in result.output
    assert result.output.rstrip().endswith("Confirmed: what the plan claims is true.")


def test_a_path_that_is_not_there_is_named(audit):
    for plan in ("gone.json", "gone.csv", "gone"):
        result = verify(audit, plan=plan)
        assert isinstance(result.exception, InvalidData)
        assert "there is no file or folder" in str(result.exception)


def test_rows_of_a_single_plan_are_refused(audit):
    for more in (["--row", "3"], ["--id", "A"], ["--all"]):
        result = verify(audit, more=more)
        assert isinstance(result.exception, InvalidSetting)
        assert "holds one plan" in str(result.exception)


def test_a_plan_for_another_model_is_refused(audit):
    result = verify(audit, model="other.skops")
    assert result.exit_code == 1
    assert "Refused: the plan was made for this version of the model" in result.output


def test_a_cheaper_looking_step_is_refused_naming_it(audit):
    data = json.loads((audit / "plan.json").read_text(encoding="utf-8"))
    last = len(data["steps"])
    data["steps"][-1]["cost"] -= 1.0
    data["cost"] -= 1.0
    (audit / "cheaper.json").write_text(json.dumps(data), encoding="utf-8")
    result = verify(audit, "cheaper.json")
    assert result.exit_code == 1
    assert f"Refused: step {last}, it costs" in result.output


def test_a_file_that_is_no_plan_is_refused(audit):
    (audit / "broken.json").write_text("{", encoding="utf-8")
    result = verify(audit, "broken.json")
    assert result.exit_code == 1
    assert "Refused: the plan is not JSON" in result.output
    assert "Traceback" not in result.output

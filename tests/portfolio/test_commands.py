"""pear plan, pear audit and pear fit-prior from the terminal."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pear.cli.main import app
from pear.decision import load_model, save_sklearn
from pear.decision.table_checks import raw_cells_doubt
from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting, PearError
from pear.planning.exact import ExactPlanner
from pear.planning.reasons import explain_plans
from pear.portfolio.beliefs import prior_draws, read_prior, weights_from
from pear.portfolio.run import read_problem_and_model
from pear.preferences import GaussianMixturePrior, default_prior
from pear.problem.files import load_problem, write_problem
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, people, write
from tests.walks import CLOSED, files_entered, hold_to_the_page


@pytest.fixture(scope="module")
def lender(tmp_path_factory):
    """A folder with a problem, a model it can load, and people."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    folder = tmp_path_factory.mktemp("lender")
    write_problem(PROBLEM, folder / "problem.toml")
    table = people(400, seed=9).drop(columns="id")
    total = (
        table["income"]
        + table["savings"]
        + 20 * table["job"].map({"none": 0, "part": 1, "full": 2})
    )
    encoder = make_column_transformer((OneHotEncoder(), ["job", "sex"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression(max_iter=5_000)).fit(table, total > 100)
    save_sklearn(model, folder / "model.skops")
    write(people(120), folder / "people.parquet")
    return folder


def pear(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def plan(lender, output, *more):
    return pear("plan", lender / "problem.toml", lender / "people.parquet", "-o", output,
                "--model", lender / "model.skops", "--workers", 1, *more)  # fmt: skip


def test_plan_then_audit(lender, tmp_path):
    shown = plan(lender, tmp_path / "plans.parquet")
    assert shown.exit_code == 0, shown.output
    assert "120 rows" in shown.output
    assert len(pd.read_parquet(tmp_path / "plans.parquet")) == 120
    shown = pear("audit", lender / "problem.toml", tmp_path / "plans.parquet",
                 "-o", tmp_path / "report.html", "--json", tmp_path / "report.json",
                 "--model", lender / "model.skops", "--smallest", 10, "--cut", "age=40",
                 "--workers", 1)  # fmt: skip
    assert shown.exit_code == 0, shown.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["words"] in shown.output
    assert [g["label"] for g in report["attributes"][1]["groups"]] == ["below 40", "40 or more"]
    page = (tmp_path / "report.html").read_text()
    assert all(sentence in page for sentence in report["words"].split(". "))


def test_every_command_sees_the_same_people_in_a_table(lender, tmp_path):
    table = people(40, seed=4).astype(object)
    for row, name, cell in (
        (3, "income", "NA"), (5, "savings", "?"), (8, "age", "about 40"), (9, "job", "pilot"),
    ):  # fmt: skip
        table.loc[row, name] = cell
    table["region"] = ["north", "south"] * 20
    table["approved"] = ["yes", "no"] * 20
    lines = table.to_csv(sep="\t", index=False).splitlines()
    lines[20] += "\tone cell more"
    (tmp_path / "odd.tsv").write_text("\n".join(lines) + "\n")
    ours = (lender / "problem.toml", tmp_path / "odd.tsv")
    model = ("--model", lender / "model.skops")

    shown = pear("plan", *ours, "-o", tmp_path / "plans.parquet", *model, "--workers", 1)
    assert shown.exit_code == 0, shown.output
    bad = pd.read_csv(tmp_path / "plans.bad.csv")
    assert bad["row"].tolist() == [3, 5, 8, 9, 19]
    plans = pd.read_parquet(tmp_path / "plans.parquet")
    assert plans["row"].tolist() == sorted(set(range(40)) - set(bad["row"]))
    shown = pear("check", ours[0], "--data", ours[1])
    words = "5 of 40 rows do not fit the problem and are passed over; the first: row 3: "
    assert words + bad["reason"][0] in shown.output
    shown = pear("audit", ours[0], tmp_path / "plans.parquet", *model, "--people", ours[1],
                 "--by", "region", "--smallest", 5, "--workers", 1,
                 "--json", tmp_path / "report.json")  # fmt: skip
    assert shown.exit_code == 0, shown.output
    [region] = json.loads((tmp_path / "report.json").read_text())["attributes"]
    refused = plans[plans["decision"] == "refused"]["row"]
    found = {group["label"]: group["cells"]["plan"]["n"] for group in region["groups"]}
    assert found == dict(table.loc[refused, "region"].value_counts())
    # A first problem is drafted from every row that can be read: what fits is not known yet.
    shown = pear("init", ours[1], "--target", "approved", "-f", "yes", "-o", tmp_path / "new.toml")
    assert "1 row cannot be read and is passed over; the first: row 19" in shown.output
    assert "from 39 people" in shown.output


INNER = ("planning/", "decision/", "preferences/")
"""Behind one call each: the walk of `plan` is told by itself, the lender's model by none."""

NOUNS = ("costs", "features", "limits", "plan", "problem", "values")


@pytest.mark.slow
def test_planning_a_table_passes_the_files_the_architecture_page_tells(lender, tmp_path):
    def planned():
        shown = plan(lender, tmp_path / "plans.parquet", "--restart")
        assert shown.exit_code == 0, shown.output

    planned()
    inside = (load_problem, load_model, raw_cells_doubt, ExactPlanner.plan_many, explain_plans)
    entered = files_entered(planned, (*CLOSED, *inside))
    outer = [name for name in entered if not name.startswith(INNER)]
    nouns = [f"problem/{name}.py" for name in NOUNS]
    hold_to_the_page("pear plan", outer, most=10, besides=[*nouns, "writing.py"])


@pytest.mark.slow
def test_plan_and_audit_under_a_prior_of_ones_own(lender, tmp_path):
    prior = GaussianMixturePrior([WEIGHTS], [np.ones(len(WEIGHTS))])
    (tmp_path / "prior.json").write_text(json.dumps(prior.to_dict()))
    shown = plan(lender, tmp_path / "plans.csv", "--prior", tmp_path / "prior.json")
    assert shown.exit_code == 0, shown.output
    [stated] = pd.read_csv(tmp_path / "plans.csv")["weights"].unique()
    assert np.array_equal(weights_from(stated, len(WEIGHTS), prior), prior_draws(prior, 32))
    ask = ["audit", lender / "problem.toml", tmp_path / "plans.csv", "--workers", 1,
           "--model", lender / "model.skops", "--smallest", 10]  # fmt: skip
    shown = pear(*ask)
    assert isinstance(shown.exception, FingerprintMismatch)
    assert "another prior" in str(shown.exception)
    shown = pear(*ask, "--prior", tmp_path / "prior.json", "--json", tmp_path / "report.json")
    assert shown.exit_code == 0, shown.output
    assert json.loads((tmp_path / "report.json").read_text())["flips"]


@pytest.mark.slow
def test_one_sample_is_the_mean_of_the_prior(lender, tmp_path):
    prior = GaussianMixturePrior([WEIGHTS], [np.ones(len(WEIGHTS))])
    (tmp_path / "prior.json").write_text(json.dumps(prior.to_dict()))
    given = ["--prior", tmp_path / "prior.json", "--samples"]
    assert plan(lender, tmp_path / "plans.csv", *given, 1).exit_code == 0
    weights = json.loads(pd.read_csv(tmp_path / "plans.csv")["weights"][0])
    assert weights == pytest.approx(WEIGHTS.tolist())
    assert "samples" in str(plan(lender, tmp_path / "none.csv", *given, 0).exception)


def test_mistakes_are_told(lender, tmp_path):
    both = plan(lender, tmp_path / "a.parquet", "--weights", "w.csv", "--prior", "p.json")
    assert isinstance(both.exception, InvalidSetting)
    assert "leave out" in str(both.exception)
    nameless = pear(
        "plan", lender / "problem.toml", lender / "people.parquet", "-o", tmp_path / "a.csv"
    )
    assert "--model" in str(nameless.exception)
    cut = pear("audit", lender / "problem.toml", "plans.csv", "--cut", "age")
    assert "age=25,40,60" in str(cut.exception)


def test_a_table_with_no_usable_row_ends_with_an_error_code(lender, tmp_path):
    write(people(3).assign(job="astronaut"), tmp_path / "people.csv")
    shown = pear("plan", lender / "problem.toml", tmp_path / "people.csv", "--workers", 1,
                 "-o", tmp_path / "plans.csv", "--model", lender / "model.skops")  # fmt: skip
    assert shown.exit_code == 1
    assert "3 rows could not be used" in shown.output
    assert "no plans were written" in shown.output
    assert [path.name for path in tmp_path.iterdir() if "plans" in path.name] == ["plans.bad.csv"]


@pytest.mark.parametrize("cell", ["a", "NA", "inf"])
def test_a_table_of_weights_without_numbers_is_refused_before_anything_is_written(
    lender, tmp_path, cell
):
    names = load_problem(lender / "problem.toml").weight_names
    pd.DataFrame({name: [cell] * 120 for name in names}).to_csv(tmp_path / "w.csv", index=False)
    shown = plan(lender, tmp_path / "plans.csv", "--weights", tmp_path / "w.csv")
    assert isinstance(shown.exception, InvalidData)
    assert "w.csv" in str(shown.exception)
    assert "numbers" in str(shown.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["w.csv"]


def test_fit_prior_refuses_too_few(lender, tmp_path):
    (tmp_path / "talks.jsonl").write_text("{}\n")
    shown = pear("fit-prior", tmp_path / "talks.jsonl", "--problem", lender / "problem.toml",
                 "-o", tmp_path / "prior.json")  # fmt: skip
    assert isinstance(shown.exception, PearError)
    assert "line 1" in str(shown.exception)
    assert not (tmp_path / "prior.json").exists()


def test_which_prior_is_meant(lender, tmp_path):
    problem, place = read_problem_and_model(lender / "problem.toml", ["model.onnx"])
    assert place.place == ["model.onnx"]
    found = read_prior(problem, lender / "problem.toml", None)
    assert np.array_equal(found.means, default_prior(problem).means)
    for content, message in (("{", "cannot be read"), ('{"means": [[1]]}', "cannot be read")):
        (tmp_path / "prior.json").write_text(content)
        with pytest.raises(InvalidSetting, match=message):
            read_prior(problem, lender / "problem.toml", tmp_path / "prior.json")
    other = GaussianMixturePrior([[1.0, 2.0]], [[1.0, 1.0]])
    (tmp_path / "prior.json").write_text(json.dumps(other.to_dict()))
    with pytest.raises(InvalidSetting, match="2 weights and the problem has 6"):
        read_prior(problem, lender / "problem.toml", tmp_path / "prior.json")
    with pytest.raises(InvalidSetting, match="there is no prior"):
        read_prior(problem, lender / "problem.toml", tmp_path / "nowhere.json")

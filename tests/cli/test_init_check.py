"""``pear init`` and ``pear check`` from a table to the counts of who has a plan."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from pear.cli.main import app
from pear.datasets import loan_book_problem, loan_book_table
from pear.decision import from_sklearn, save_sklearn
from pear.errors import InvalidData, InvalidProblem, InvalidSetting
from pear.problem.files import load_problem, write_problem
from pear.tables.people import read_people


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of loans, its problem and a model trained on it."""
    place = tmp_path_factory.mktemp("loans")
    problem, table = loan_book_problem(), loan_book_table(400, 0)
    table.to_csv(place / "loans.csv", index=False)
    write_problem(problem, place / "loans.toml")
    named = [f.name for f in problem.space.features if f.is_categorical]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), named), remainder=StandardScaler()
    )
    model = make_pipeline(columns, LogisticRegression())
    model.fit(table[list(problem.space.names)], table["approved"])
    save_sklearn(model, place / "model.skops")
    return place


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_init_then_check_tells_who_has_a_plan(folder):
    first = run(
        "init", folder / "loans.csv", "--target", "approved",
        "--model", folder / "model.skops", "-o", folder / "first.toml",
    )  # fmt: skip
    assert "15 features" in first
    assert "Favourable, by its name: approved = True." in first
    assert "Taken for personal attributes, immutable and protected: age, sex, children." in first
    assert "warning" not in first
    problem = load_problem(folder / "first.toml")
    assert problem.model == "model.skops"
    checked = run("check", folder / "first.toml", "--data", folder / "loans.csv", "--sample", 5)
    assert "first.toml is sound: 15 features" in checked
    assert "of 400 people are refused" in checked
    assert "Of 5 refused people sampled," in checked
    assert "have a plan." in checked
    assert "Scores beside 'approved' of 400 people: AUC 0." in checked
    assert "WARNING" not in checked
    assert f"Nobody has reviewed {len(problem.actions.actions)} of" in checked
    assert "increase_monthly_income" in checked
    reviewed = (folder / "first.toml").read_text().replace("reviewed = false", "reviewed = true")
    (folder / "reviewed.toml").write_text(reviewed)
    assert "Nobody has reviewed" not in run("check", folder / "reviewed.toml")


def test_init_asks_for_the_favourable_class_where_it_is_not_certain(folder):
    table = loan_book_table(300, 2).rename(columns={"approved": "outcome"})
    table.to_csv(folder / "outcomes.csv", index=False)
    told = ("init", folder / "outcomes.csv", "-t", "outcome", "-o", folder / "outcomes.toml")
    with pytest.raises(
        InvalidSetting, match=r"is not certain: .* The classes are False \(.* people\), True"
    ):
        run(*told)
    assert not (folder / "outcomes.toml").exists()
    assert "As you said, favourable: outcome = True." in run(*told, "--favourable", "1")
    assert load_problem(folder / "outcomes.toml").goal.favourable == ("True",)


def test_init_does_not_overwrite_without_force(folder):
    (folder / "kept.toml").write_text("mine")
    with pytest.raises(InvalidSetting, match="exists already; give another --output, or --force"):
        run("init", folder / "loans.csv", "-t", "approved", "-o", folder / "kept.toml")
    assert (folder / "kept.toml").read_text() == "mine"
    run("init", folder / "loans.csv", "-t", "approved", "-o", folder / "kept.toml", "--force")
    assert load_problem(folder / "kept.toml").name == "loans"


def test_init_warns_of_a_model_that_does_not_answer(folder):
    output = run(
        "init", folder / "loans.csv", "-t", "approved", "-m", folder / "none.skops",
        "-o", folder / "other.toml",
    )  # fmt: skip
    assert "warning: the model does not answer this problem yet" in output
    assert load_problem(folder / "other.toml").model == "none.skops"


def test_check_without_data_or_model_says_what_more_it_could_do(folder):
    alone = run("check", folder / "loans.toml")
    assert "earn_more: Raise your monthly income to" in alone
    assert "No warnings." in alone
    assert "With --data" in alone
    people = run("check", folder / "loans.toml", "-d", folder / "loans.csv")
    assert "With --model" in people


def test_check_passes_over_rows_that_do_not_fit_and_counts_them(folder):
    table = loan_book_table(50, 1)
    table.loc[7, "age"] = 12
    table.to_csv(folder / "odd.csv", index=False)
    output = run("check", folder / "loans.toml", "-d", folder / "odd.csv")
    assert "1 of 50 rows do not fit the problem" in output
    assert "row 7: 'age' must be at least 18" in output
    table["age"] = 12
    table.to_csv(folder / "odd.csv", index=False)
    with pytest.raises(InvalidData, match=r"no row of .* fits the problem; row 0"):
        run("check", folder / "loans.toml", "-d", folder / "odd.csv")


def test_check_refuses_a_broken_problem_by_its_key(folder):
    broken = (folder / "loans.toml").read_text().replace("lower = 18", "lowr = 18")
    (folder / "broken.toml").write_text(broken)
    with pytest.raises(InvalidProblem, match=r"broken.toml: features.age.lowr is not a key"):
        run("check", folder / "broken.toml")
    with pytest.raises(InvalidSetting, match="'--sample' must be at least 1"):
        run("check", folder / "loans.toml", "--sample", 0)
    seeded = CliRunner().invoke(app, ["check", str(folder / "loans.toml"), "--seed", "-1"])
    assert "--seed" in seeded.output


def test_check_says_when_nobody_can_be_helped(folder, monkeypatch):
    from pear.decision import BlackBox

    def never(place, problem, **settings):
        return BlackBox(lambda states: 0.1 + 0 * states[:, 0], problem.space, problem.goal)

    monkeypatch.setattr("pear.decision.load_model", never)
    monkeypatch.setattr("pear.cli.check.ROWS_PER_PERSON", 300)
    output = run(
        "check", folder / "loans.toml", "-d", folder / "loans.csv", "-m", "x.onnx", "--sample", 2
    )
    assert "400 of 400 people are refused (100.0%)" in output
    assert "Of 2 refused people sampled, 0 have a plan." in output
    assert "2 are not decided within 300 rows asked of the model." in output


def test_check_is_loud_where_scores_and_decisions_do_not_agree(folder):
    table = loan_book_table(400, 0)
    text = (folder / "loans.toml").read_text()
    (folder / "named.toml").write_text(text.replace("[goal]", '[goal]\ntarget = "approved"'))
    told = ("check", folder / "named.toml", "-m", folder / "model.skops", "--sample", 1, "-d")
    table["approved"] = ~table["approved"]
    table.to_csv(folder / "reversed.csv", index=False)
    assert "WARNING: the favourable class looks reversed" in run(*told, folder / "reversed.csv")
    table["approved"] = table["approved"].sample(frac=1, random_state=0).to_numpy()
    table.to_csv(folder / "shuffled.csv", index=False)
    assert "WARNING: the model looks like noise beside 'ap" in run(*told, folder / "shuffled.csv")
    table["approved"] = "maybe"
    table.to_csv(folder / "other.csv", index=False)
    output = run(*told, folder / "other.csv")
    assert "WARNING: 'approved' never has a favourable class" in output or "too few" in output
    table.drop(columns="approved").to_csv(folder / "without.csv", index=False)
    assert "Scores were not compared with the decisions" in run(*told, folder / "without.csv")


def test_zeros_and_ones_with_gaps_and_question_marks_are_read_as_they_were_in_training(tmp_path):
    rng = np.random.default_rng(0)
    table = loan_book_table(300, 0)[["monthly_income", "savings", "contract", "approved"]]
    table["insured"] = np.where(rng.random(300) < 0.2, np.nan, rng.integers(0, 2, 300))
    table.loc[::9, "contract"] = "?"
    table.to_csv(tmp_path / "t.csv", index=False)
    known = pd.read_csv(tmp_path / "t.csv")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["contract"]), remainder=SimpleImputer()
    )
    model = make_pipeline(columns, StandardScaler(with_mean=False), LogisticRegression())
    model.fit(known.drop(columns="approved"), known["approved"])
    save_sklearn(model, tmp_path / "model.skops")
    run("init", tmp_path / "t.csv", "-t", "approved", "-m", tmp_path / "model.skops",
        "-o", tmp_path / "t.toml")  # fmt: skip
    problem = load_problem(tmp_path / "t.toml")
    assert "?" in problem.space["contract"].categories
    assert problem.space["insured"].may_be_missing
    checked = run("check", tmp_path / "t.toml", "-d", tmp_path / "t.csv", "--sample", 2)
    assert "do not fit" not in checked
    people = read_people(tmp_path / "t.csv", problem.space)
    scores = from_sklearn(model, problem).score(people.states)
    assert np.allclose(scores, model.predict_proba(known.drop(columns="approved"))[:, 1])

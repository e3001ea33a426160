"""People of a table are asked in the terminal; what they said counts when the table is planned."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from pear import Session
from pear.cli.main import app
from pear.decision import save_sklearn
from pear.elicitation.files import KeptConversation
from pear.errors import ConversationError, InvalidData, InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.problem.files import write_problem
from pear.tables.people import person_of
from tests.portfolio.small_problem import PROBLEM, SPACE, black_box, people, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    folder = tmp_path_factory.mktemp("lender")
    write_problem(PROBLEM, folder / "problem.toml")
    table = people(400, seed=9).drop(columns="id")
    total = table["income"] + table["savings"] + 20 * (table["job"] == "full")
    encoder = make_column_transformer((OneHotEncoder(), ["job", "sex"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression(max_iter=5_000)).fit(table, total > 130)
    save_sklearn(model, folder / "model.skops")
    write(people(12), folder / "named.csv")
    people(12).drop(columns="id").to_csv(folder / "nameless.csv", index=False)
    return folder


def pear(folder, *arguments, keys=None):
    return subprocess.run(
        [sys.executable, "-m", "pear", *map(str, arguments), "--model", "model.skops"],
        cwd=folder,
        input=keys,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "COLUMNS": "120"},
    )


@pytest.mark.parametrize(
    ("table", "who"), [("named.csv", "--id"), ("named.csv", "--row"), ("nameless.csv", "--row")]
)
@pytest.mark.slow
def test_what_is_said_in_the_terminal_counts_in_the_plans(folder, tmp_path, table, who):
    """Somebody rules out a step and answers; planning the table respects it for them alone."""
    states = PROBLEM.states(pd.read_csv(folder / table)[list(SPACE.names)])
    model = folder / "model.skops"
    from pear.decision import load_model

    refused = (~load_model(model, PROBLEM).favourable(states)).nonzero()[0]
    row = int(refused[1])
    own = row if who == "--row" else people(12)["id"].iloc[row]
    kept = tmp_path / "talks.jsonl"
    asked = pear(folder, "ask", "problem.toml", table, who, own, "--conversation", kept,
                 keys="x\n1\n3\nf\ny\n")  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    [line] = kept.read_text().splitlines()
    said = json.loads(line)["events"]
    assert said[0]["kind"] == "exclude"
    feature = said[0]["limits"][0]["feature"]
    planned = pear(folder, "plan", "problem.toml", table, "-o", tmp_path / "plans.csv",
                   "--conversations", kept, "--workers", 1)  # fmt: skip
    assert planned.returncode == 0, planned.stderr
    assert "what 1 person of the table said in them was used" in planned.stdout
    plans = pd.read_csv(tmp_path / "plans.csv")
    limits = [json.loads(text) for text in plans["limits"]]
    assert limits[row] == {"features": [feature]}
    assert [limit for i, limit in enumerate(limits) if i != row] == [{}] * 11


def test_a_row_of_another_table_is_nobody_here(folder, tmp_path):
    key = person_of(folder / "nameless.csv", SPACE, row=3).key
    planner = ExactPlanner(PROBLEM, black_box())
    session = Session(planner, person_of(folder / "nameless.csv", SPACE, row=3).record)
    session.exclude(feature="income")
    KeptConversation(tmp_path / "talks.jsonl", key).write(session)
    people(12, seed=5).drop(columns="id").to_csv(folder / "other.csv", index=False)
    planned = pear(folder, "plan", "problem.toml", "other.csv", "-o", tmp_path / "plans.csv",
                   "--conversations", tmp_path / "talks.jsonl", "--workers", 1)  # fmt: skip
    assert planned.returncode == 2
    assert "which conversation is whose" in planned.stderr


def test_people_are_found_by_row_and_by_id(folder):
    by_id = person_of(folder / "named.csv", SPACE, id=people(12)["id"].iloc[4])
    by_row = person_of(folder / "named.csv", SPACE, row=4)
    assert by_id == by_row
    assert set(by_row.key) == {"id"}
    assert set(person_of(folder / "nameless.csv", SPACE, row=4).key) == {"row", "people"}
    with pytest.raises(InvalidData, match="nobody with row 99"):
        person_of(folder / "named.csv", SPACE, row=99)
    with pytest.raises(InvalidData, match="nobody with the id 'x'"):
        person_of(folder / "named.csv", SPACE, id="x")
    with pytest.raises(InvalidData, match="--id-column"):
        person_of(folder / "nameless.csv", SPACE, id="x")


def test_a_row_that_does_not_fit_is_said_so(folder, tmp_path):
    table = people(4).astype({"job": object})
    table.loc[2, "job"] = "most"
    write(table, tmp_path / "people.csv")
    with pytest.raises(InvalidData, match="row 2: 'job'"):
        person_of(tmp_path / "people.csv", SPACE, row=2)


def test_each_keeps_a_line_and_the_others_stay(folder, tmp_path):
    planner = ExactPlanner(PROBLEM, black_box())
    path = tmp_path / "talks.jsonl"
    sessions = {}
    for name in ("a", "b", "a"):
        session = Session(planner, person_of(folder / "named.csv", SPACE, row=0).record, seed=7)
        session.exclude(feature="income" if name in sessions else "savings")
        sessions[name] = session
        KeptConversation(path, {"id": name}).write(session)
    assert len(path.read_text().splitlines()) == 2
    for name, session in sessions.items():
        stored = KeptConversation(path, {"id": name}).read()
        assert stored == {"id": name, **json.loads(session.to_json())}
    assert KeptConversation(path, {"id": "c"}).read() is None
    assert KeptConversation(path, {}).read() is None


def test_a_file_of_something_else_is_never_written_over(tmp_path):
    planner = ExactPlanner(PROBLEM, black_box())
    session = Session(planner, people(1).drop(columns="id").iloc[0])
    (tmp_path / "notes.txt").write_text("mine\n")
    with pytest.raises(ConversationError, match="move it away"):
        KeptConversation(tmp_path / "notes.txt", {}).write(session)
    assert (tmp_path / "notes.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["named.csv"], "--row or --id"),
        (["named.csv", "--row", "1", "--id", "a"], "--row or --id"),
        (["person.json", "--row", "1"], "holds one person"),
    ],
)
def test_who_is_asked_must_be_said(folder, arguments, message):
    (folder / "person.json").write_text("{}")
    asked = CliRunner().invoke(
        app,
        ["ask", str(folder / "problem.toml"), str(folder / arguments[0]), *arguments[1:],
         "--model", str(folder / "model.skops")],
    )  # fmt: skip
    assert isinstance(asked.exception, InvalidSetting)
    assert message in str(asked.exception)

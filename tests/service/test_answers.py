"""From conversations of the service to a fitted prior and an audit."""

import stat

import numpy as np
import pytest
from tests.service.helpers import KEY, PERSON, PROBLEM, RICH, Talk, running
from typer.testing import CliRunner

from pear.cli.main import app
from pear.elicitation.files import read_conversations
from pear.errors import InvalidSetting
from pear.portfolio.beliefs import predict_choices, stated_limits
from pear.portfolio.prior_fit import FitSettings, fit_prior
from pear.preferences import default_prior
from pear.problem import Limits
from pear.problem.files import write_problem
from pear.service.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A problem's file, and a database in which people who loathe saving have talked."""
    folder = tmp_path_factory.mktemp("served")
    write_problem(PROBLEM, folder / "problem.toml")
    settings = Settings(
        problem=str(folder / "problem.toml"), model="model.onnx", searchers=0, demo_key=KEY,
        database=f"sqlite:///{folder / 'pear.db'}", log_level="error",
        trusted_hosts=("testserver",),
        link_per_minute=10_000, key_per_minute=10_000, stranger_per_minute=10_000,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    with running(settings) as client:
        for number in range(24):
            person = {**PERSON, "age": int(rng.integers(20, 70)), "savings": 10.0 * number}
            talk = Talk(client, person, reference=f"application {number}")
            view = talk.read()
            while view["stage"] == "question":
                plans = view["question"]["plans"]
                saved = [
                    sum(s["after"] for s in plan["steps"] if s["feature"] == "savings")
                    for plan in plans
                ]
                view = talk.answer(int(np.argmin(saved)), view["shown"]).json()
            if number == 5:
                talk.post("limits", {"kind": "feature", "feature": "job"})
            if number == 6:
                view = talk.post("limits", {"kind": "feature", "feature": "job"}).json()
                talk.lift(view["limits"][0]["id"])
            if number == 7:
                far = {"kind": "beyond", "feature": "income", "value": 2300.0, "direction": "up"}
                talk.post("limits", far)
        Talk(client, RICH, reference="needs nothing").read()
        Talk(client, reference="never opened")
        Talk(client, reference="asked").read()
    return folder


def export(folder, name="talks.jsonl"):
    return CliRunner().invoke(
        app,
        ["serve", str(folder / "problem.toml"), "--database", f"sqlite:///{folder / 'pear.db'}",
         "--export-answers", str(folder / name)],
    )  # fmt: skip


def test_what_people_answered_is_exported_as_it_was_said(served):
    shown = export(served)
    assert shown.exit_code == 0, shown.output
    assert "25 conversations" in shown.output
    file = served / "talks.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = {talk.id: talk for talk in read_conversations(file, PROBLEM)}
    assert set(found) == {*(f"application {i}" for i in range(24)), "asked"}
    assert not found["asked"].finished
    assert found["asked"].n_questions == 0
    assert found["application 3"].person["savings"] == 30.0
    assert found["application 3"].finished
    assert sum(talk.n_questions for talk in found.values()) >= 24
    shy = [predict_choices(talk, default_prior(PROBLEM), np.random.default_rng(0)).mean
           for talk in found.values() if talk.n_questions]  # fmt: skip
    saving = PROBLEM.weight_names.index("savings")
    assert np.mean(shy, axis=0)[saving] > default_prior(PROBLEM).mean()[saving]


def test_limits_that_stand_are_exported_and_bind_the_plans(served):
    export(served, "limits.jsonl")
    limits = stated_limits(read_conversations(served / "limits.jsonl", PROBLEM))
    assert limits["application 5"] == Limits(features=("job",))
    assert "application 6" not in limits
    assert limits["application 7"].values[0] == ("income", 2300.0)
    assert len(limits["application 7"].values) == 3
    assert set(limits) == {"application 5", "application 7"}


def test_a_database_that_is_not_there_is_told_and_not_made(tmp_path):
    other = tmp_path / "other.db"
    other.write_bytes(b"")
    text = tmp_path / "text.db"
    text.write_text("not a database at all, only some text" * 40)
    for file, message in (
        (tmp_path / "none" / "pear.db", "there is no database"),
        (other, "no database of 'pear serve'"),
        (text, "cannot be read"),
    ):
        shown = CliRunner().invoke(
            app,
            ["serve", "--demo", "--database", f"sqlite:///{file}",
             "--export-answers", str(tmp_path / "talks.jsonl")],
        )  # fmt: skip
        assert isinstance(shown.exception, InvalidSetting), shown.output
        assert message in str(shown.exception)
        assert not (tmp_path / "talks.jsonl").exists()
    assert not (tmp_path / "none").exists()


def test_a_prior_is_fitted_to_what_the_service_stored(served):
    export(served)
    talks = read_conversations(served / "talks.jsonl", PROBLEM)
    settings = FitSettings(components=1, rounds=2, n_particles=200)
    fit = fit_prior(talks, default_prior(PROBLEM), settings)
    assert fit.fitted_on + fit.checked_on == 24
    assert fit.new > fit.old, "everybody avoids saving, and the new prior knows"


def test_another_problem_has_no_conversations_and_a_missing_folder_is_told(served, tmp_path):
    shown = export(served, "nowhere/talks.jsonl")
    assert isinstance(shown.exception, InvalidSetting)
    assert "cannot be written" in str(shown.exception)
    shown = CliRunner().invoke(
        app,
        ["serve", "--demo", "--database", f"sqlite:///{served / 'pear.db'}",
         "--export-answers", str(tmp_path / "other.jsonl")],
    )  # fmt: skip
    assert "0 conversations" in shown.output

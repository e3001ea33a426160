"""A study from the door to the export: assignment, pages, what is kept, and simulated people."""

import re
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from pear.decision import BlackBox
from pear.errors import ConversationError, InvalidData, InvalidSetting
from pear.problem.files import write_problem
from pear.service.settings import Settings
from pear.study import ARMS, Study, export, simulate_study
from pear.study.app import Records, study_app
from pear.study.design import AFTER_TASK, AT_THE_END
from pear.study.engine import StudyEngine
from tests.service.helpers import PERSON, PROBLEM, RICH, Score

PEOPLE = {"Ada": PERSON, "Bo": {**PERSON, "savings": 800.0}, "Cy": {**PERSON, "job": "part"}}


@pytest.fixture
def settings(tmp_path):
    write_problem(PROBLEM, tmp_path / "problem.toml")
    return Settings(
        problem=str(tmp_path / "problem.toml"),
        model="model.onnx",
        database=f"sqlite:///{tmp_path / 'pear.db'}",
        searchers=0,
        log_level="error",
        trusted_hosts=("testserver",),
        link_per_minute=10_000,
        stranger_per_minute=10_000,
        question_rows=2_000,
        max_rows=2_000,
    )


@pytest.fixture
def engine(settings):
    return StudyEngine(PROBLEM, BlackBox(Score(), PROBLEM.space, PROBLEM.goal), settings)


@pytest.fixture
def study():
    return Study(PROBLEM, PEOPLE, n_tasks=2, own=True)


@pytest.fixture
def site(settings, engine, study, tmp_path):
    app = study_app(study, tmp_path / "study.jsonl", settings, lambda: engine)
    with TestClient(app, follow_redirects=True) as client:
        client.study = app.state.study
        yield client


def token_of(page):
    return re.search(r'name="csrf" value="([^"]+)"', page.text)[1]


def send(client, page, **fields):
    return client.post(str(page.url), data={"csrf": token_of(page), **fields})


def join(client):
    door = client.get("/study")
    assert door.status_code == 200
    return send(client, door)


def through(client, page, choice="0"):
    """A participant who says the same everywhere."""
    seen = []
    for _ in range(60):
        names = re.findall(r'type="radio" name="(\w+)" value="1"', page.text)
        if 'name="agree"' in page.text:
            page = send(client, page, agree="yes")
        elif names:
            seen.append(names)
            page = send(client, page, **dict.fromkeys(names, "4"))
        elif 'id="answer"' in page.text:
            page = send(client, page, choice=choice)
        elif "Thank you" not in page.text:
            page = send(client, page, **{name: str(value) for name, value in OWN.items()})
        else:
            return page, seen
        assert page.status_code == 200, page.text
    raise AssertionError("no end was reached")


OWN = {**PERSON, "course": "no"}


def test_arms_are_even_in_blocks_and_tasks_differ(study):
    everybody = [study.participant(number) for number in range(60)]
    for first in range(0, 60, 3):
        assert {one.arm for one in everybody[first : first + 3]} == set(ARMS)
    assert len({one.tasks for one in everybody}) > 3
    assert len({one.arm for one in everybody[::3]}) == 3
    assert study.participant(7) == Study(PROBLEM, PEOPLE, n_tasks=2, own=True).participant(7)


def test_a_study_needs_people_for_its_tasks():
    with pytest.raises(InvalidSetting, match="'tasks' must be from 1 to 3"):
        Study(PROBLEM, PEOPLE, n_tasks=4)


def test_every_arm_goes_from_the_door_to_the_end(site, study):
    for _ in ARMS:
        page, seen = through(site, join(site))
        assert "Thank you" in page.text
        assert seen == [list(AFTER_TASK)] * 3 + [list(AT_THE_END)]
    kept = site.study.records.participants
    assert {one.arm for one in kept} == set(ARMS)
    table = export(kept)
    assert len(table) == 9
    assert table["steps"].ge(1).all()
    assert table[["arm", "questions"]].groupby("arm").max().loc["pear", "questions"] >= 1
    assert (table.loc[table["arm"] != "pear", "questions"] == 0).all()
    assert set(table["thinking"]) == {4}


def test_the_export_names_nobody_and_tells_no_figures_of_ones_own(site, tmp_path):
    for _ in ARMS:
        through(site, join(site))
    table = export(site.study.records.participants)
    own = table[table["person"] == "own"]
    assert len(own) == 3
    assert (own["changes"] == "").all()
    text = table.to_csv()
    stored = (tmp_path / "study.jsonl").read_text()
    for link in site.study.records.links:
        assert link not in text
    assert "1500" not in text
    assert '"record"' in stored


def test_what_was_kept_goes_on_after_a_restart_and_a_cut_off_line(site, study, tmp_path):
    page = join(site)
    page = send(site, page, agree="yes")
    path = tmp_path / "study.jsonl"
    whole = path.read_text()
    path.write_text(whole + '{"kind": "begun", "tas')
    again = Records(study, path)
    assert again.participants == site.study.records.participants
    assert path.read_text() == whole
    assert again.of(str(page.url).rpartition("/")[2]).of("consent")
    path.write_text('{"kind": "begun"}\n')
    with pytest.raises(InvalidData, match="line 1"):
        Records(study, path)


def test_without_agreement_nothing_begins(site):
    page = join(site)
    refused = send(site, page)
    assert refused.status_code == 422
    assert "without your agreement" in refused.text
    assert len(site.study.records.participants[0].events) == 0


def test_what_is_sent_twice_counts_once(site):
    page = join(site)
    begun = send(site, page, agree="yes")
    send(site, page, agree="yes")
    assert len(site.study.records.participants[0].events) == 1
    send(site, begun)
    send(site, begun)
    assert len(site.study.records.participants[0].events) == 2


def test_who_withdraws_is_forgotten(site, tmp_path):
    page = send(site, join(site), agree="yes")
    page = send(site, page)
    gone = send(site, page, withdraw="yes")
    assert "You withdrew" in gone.text
    assert "consent" not in (tmp_path / "study.jsonl").read_text()
    assert export(site.study.records.participants).empty
    _, seen = through(site, join(site))
    assert len(seen) == 4


def test_bad_forms_and_links_are_refused(site):
    assert site.get("/study/nobody").status_code == 404
    page = join(site)
    assert site.post(str(page.url), data={"agree": "yes"}).status_code == 403
    page = send(site, page, agree="yes")
    page = send(site, page)
    strange = send(site, page, choice="17")
    assert strange.status_code in (200, 422)
    assert not site.study.records.participants[0].said(0)


def test_own_figures_are_checked(site):
    page = join(site)
    while "Your own figures" not in page.text:
        names = re.findall(r'type="radio" name="(\w+)" value="1"', page.text)
        page = send(site, page, agree="yes", choice="0", **dict.fromkeys(names, "4"))
    wrong = send(site, page, **{**OWN, "income": "lots"})
    assert wrong.status_code == 422
    assert "Please enter a number" in wrong.text
    favourable = send(site, page, **{**RICH, "course": "yes"})
    assert favourable.status_code == 200


def test_something_too_hard_is_not_proposed_again(study, engine):
    [one] = [p for p in map(study.participant, range(3)) if p.arm == "pear"]
    one = replace(one, events=({"kind": "consent"}, {"kind": "begun", "task": 0}))
    said = {"limit": {"kind": "feature", "feature": "savings"}}
    shown = engine.look(study.case(one, 0)).standing
    with pytest.raises(ConversationError):
        study.take(one, {"choice": "perhaps"}, shown)
    one = replace(one, events=(*one.events, *study.take(one, said, shown)))
    after = engine.look(study.case(one, 0)).standing
    plans = after.question.plans if after.question else [after.result.plan]
    assert plans[0].success
    assert "savings" not in {step.feature for plan in plans for step in plan.steps}


def test_ways_differ_and_all_lead_there(study, engine):
    [one] = [p for p in map(study.participant, range(3)) if p.arm == "list"]
    ways = engine.ways(study.case(one, 0))
    assert 2 <= len(ways) <= 4
    assert all(plan.success for plan in ways)
    assert len({plan.moves for plan in ways}) == len(ways)


def test_simulated_participants_leave_what_real_ones_do(engine, site):
    study = Study(PROBLEM, PEOPLE, n_tasks=1)
    table = simulate_study(study, engine, 6, seed=1)
    through(site, join(site))
    real = export(site.study.records.participants)
    assert list(table.columns) == [*real.columns, "excess"]
    assert table.equals(simulate_study(study, engine, 6, seed=1))
    assert set(table["arm"]) == set(ARMS)
    assert (table["excess"] >= 0).all()
    assert (table["seconds"] > 0).all()


@pytest.mark.slow
def test_the_command_writes_what_was_found(tmp_path):
    import pandas as pd
    from typer.testing import CliRunner

    from pear.cli.main import app

    found = tmp_path / "found.csv"
    nobody = CliRunner().invoke(
        app, ["study", "-o", str(tmp_path / "study.jsonl"), "--export", str(found)]
    )
    assert nobody.exit_code == 0, nobody.exception
    assert pd.read_csv(found).empty
    run = CliRunner().invoke(
        app, ["study", "--simulate", "1", "--tasks", "1", "--export", str(found)]
    )
    assert run.exit_code == 0, run.exception
    assert len(pd.read_csv(found)) == 1
    missing = CliRunner().invoke(app, ["study", "--simulate", "1"])
    assert "'--export'" in str(missing.exception)


@pytest.mark.parametrize("option", ["--output", "--export"])
def test_a_file_that_cannot_be_written_is_told_before_anything_starts(tmp_path, option):
    from typer.testing import CliRunner

    from pear.cli.main import app

    found = CliRunner().invoke(app, ["study", option, str(tmp_path / "nowhere" / "x.csv")])
    assert isinstance(found.exception, InvalidSetting)
    assert "cannot be written" in str(found.exception)


def test_a_file_that_no_study_wrote_is_refused(tmp_path):
    path = tmp_path / "study.jsonl"
    path.write_bytes(b"\xff\xfe\x00\n")
    with pytest.raises(InvalidData, match="cannot be read"):
        Records(None, path)
    with pytest.raises(InvalidData, match="cannot be read"):
        Records(None, tmp_path)

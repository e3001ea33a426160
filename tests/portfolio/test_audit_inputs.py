"""What an audit is given: a wrong table, setting or file is refused, nobody counts twice."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pear.cli.main import app
from pear.elicitation.files import Conversation
from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.portfolio import Everyone, plan_portfolio
from pear.portfolio.audit import AuditSettings, audit
from pear.portfolio.audit.groups import make_cut
from pear.portfolio.plans import read_plans
from pear.problem import Limits
from pear.problem.files import write_problem
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, black_box, people, write
from tests.portfolio.test_audit import portfolio

REGION = AuditSettings(by=("region",))


def with_region(n=120):
    return people(n).assign(region=np.where(np.arange(n) % 2, "north", "south"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("audit")
    table = write(with_region(), place / "people.parquet")
    plan_portfolio(
        PROBLEM, black_box(), table, place / "plans.parquet", Everyone(WEIGHTS), workers=1
    )
    write_problem(PROBLEM, place / "problem.toml")
    return place


@pytest.fixture(scope="module")
def plans(folder):
    return read_plans(folder / "plans.parquet", PROBLEM)


def test_a_table_of_other_people_is_refused(plans, tmp_path):
    shuffled = with_region().sample(frac=1, random_state=1)
    with pytest.raises(InvalidData, match="not the table of these plans"):
        audit(PROBLEM, plans, settings=REGION, people=write(shuffled, tmp_path / "a.csv"))
    # Even where every feature is at its place, and where the table is not needed.
    renamed = with_region().assign(id=[f"other {i}" for i in range(120)])
    with pytest.raises(InvalidData, match="other ids"):
        audit(PROBLEM, plans, people=write(renamed, tmp_path / "b.csv"))
    only_ids = shuffled[["id", "region"]]
    with pytest.raises(InvalidData, match="not the table of these plans"):
        audit(PROBLEM, plans, settings=REGION, people=write(only_ids, tmp_path / "c.csv"))
    table = write(with_region()[["region"]], tmp_path / "d.csv")
    with pytest.raises(InvalidData, match="neither the features"):
        audit(PROBLEM, replace(plans, ids=None), settings=REGION, people=table)


@pytest.mark.parametrize("kept", [["id", "region"], None])
def test_the_table_of_the_plans_is_taken(plans, tmp_path, kept):
    frame = with_region()
    table = write(frame[kept] if kept else frame, tmp_path / "people.csv")
    report = audit(PROBLEM, plans, settings=REGION, people=table)
    assert [g.label for g in report.attributes[0].groups] == ["north", "south"]


def test_ids_may_stand_in_any_column(plans, tmp_path):
    frame = with_region().rename(columns={"id": "customer"}).assign(id=np.arange(120))
    table = write(frame, tmp_path / "people.csv")
    assert audit(PROBLEM, plans, settings=REGION, people=table).attributes


def test_one_number_that_is_missing_leaves_the_quartiles(plans, tmp_path):
    frame = people(120).assign(tenure=[None, *range(119)])
    for name in ("people.csv", "people.parquet"):
        table = write(frame, tmp_path / name)
        report = audit(PROBLEM, plans, settings=AuditSettings(by=("tenure",)), people=table)
        [tenure] = report.attributes
        assert len(tenure.groups) == 4
        assert tenure.ungrouped == int(plans.refused[0])


def test_one_person_with_many_conversations_is_one_person():
    flagged = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        told = []
        for number in range(80):
            person = {"sex": ["female", "male"][rng.integers(2)], "age": 30}
            questions = int(rng.integers(1, 12))
            for _ in range(6):
                asked = [None] * max(1, questions + int(rng.integers(-1, 2)))
                told.append(Conversation(f"x{number}", person, tuple(asked), finished=True))
        report = audit(
            PROBLEM, portfolio(60), settings=AuditSettings(by=("sex",)), conversations=told
        )
        assert (report.conversations, report.talkers) == (480, 80)
        cells = [group.cells["questions"] for group in report.attributes[0].groups]
        assert sum(cell.n for cell in cells) == 80
        flagged += any(cell.flagged for cell in cells)
    # With probability 0.05 each, more than 7 of 40 happen once in a thousand times.
    assert flagged <= 7


def test_conversations_without_an_id_are_of_different_people():
    told = [
        Conversation("1", {"sex": "female", "age": 30}, (), finished=True, named=named)
        for named in (True, True, False)
    ]
    assert audit(PROBLEM, portfolio(60), conversations=told).talkers == 2


def test_attributes_a_conversation_does_not_tell_are_found_by_id(plans, folder):
    told = [Conversation(f"person {i}", {}, (None,) * 3, finished=True) for i in range(120)]
    settings = AuditSettings(by=("region", "sex"))
    report = audit(
        PROBLEM, plans, settings=settings, people=folder / "people.parquet", conversations=told
    )
    for attribute in report.attributes[:2]:
        assert attribute.unheard == 0
        assert sum(group.cells["questions"].n for group in attribute.groups) == 120
    strangers = [replace(one, id=f"nobody {one.id}") for one in told]
    report = audit(PROBLEM, plans, conversations=strangers)
    assert [attribute.unheard for attribute in report.attributes] == [120] * 3
    assert "questions" not in report.attributes[0].groups[0].cells


@pytest.mark.parametrize("age", [-4, None, "old"])
def test_conversations_with_nobody_there_can_be_are_refused(age):
    told = [Conversation("7", {"sex": "female", "age": age}, (), finished=True)]
    with pytest.raises(InvalidData, match=r"conversation of '7'.*'age'"):
        audit(PROBLEM, portfolio(60), conversations=told)


def test_an_attribute_named_twice_is_compared_once():
    report = audit(PROBLEM, portfolio(200), settings=AuditSettings(by=("sex", "sex")))
    assert [attribute.name for attribute in report.attributes] == ["sex"]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"agee": [25]}, "'agee'"),
        ({"sex": [1]}, "'sex' is not a number"),
        ({"age": [np.nan]}, "finite"),
        ({"age": [500]}, "between 19 and 77"),
    ],
)
def test_cuts_of_what_cannot_be_cut_are_refused(edges, message):
    with pytest.raises(InvalidSetting, match=message):
        audit(PROBLEM, portfolio(60), settings=AuditSettings(edges=edges))
    with pytest.raises(InvalidSetting, match="is not a number"):
        make_cut("region", pd.Series(["north", "south"]), PROBLEM, [1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decision": "REFUSED"}, "'decision' must be approved or refused .got 'REFUSED'"),
        ({"success": "perhaps"}, "'success' must be true"),
        ({"cost": "dear"}, "'cost' must be a number or empty .got 'dear'"),
        ({"cost": None, "success": True}, "a plan without its cost"),
        ({"limits": "garbage"}, "'limits' cannot be read"),
    ],
)
def test_plans_that_say_something_else_are_refused(folder, tmp_path, change, message):
    frame = pd.read_parquet(folder / "plans.parquet").astype(object).assign(**change)
    frame.to_csv(tmp_path / "plans.csv", index=False)
    with pytest.raises(InvalidData, match=message):
        read_plans(tmp_path / "plans.csv", PROBLEM)


def test_plans_of_another_problem_are_told_first(folder, tmp_path):
    frame = pd.read_parquet(folder / "plans.parquet")
    other = frame.assign(problem_fingerprint="other", start=json.dumps({"weight": 1}))
    with pytest.raises(FingerprintMismatch, match="another problem"):
        read_plans(write(other, tmp_path / "plans.parquet"), PROBLEM)


def test_limits_of_the_plans_hold_for_the_flipped_too(tmp_path):
    model = black_box(of_sex=15.0)
    frame = people(120)
    table = write(frame, tmp_path / "people.parquet")
    cannot = Everyone(WEIGHTS, limits={i: Limits(features=("income",)) for i in frame["id"][::2]})
    plan_portfolio(PROBLEM, model, table, tmp_path / "p.parquet", cannot, workers=1)
    plans = read_plans(tmp_path / "p.parquet", PROBLEM)
    report = audit(PROBLEM, plans, model=model, settings=AuditSettings(smallest=10))
    assert report.flips
    # Plans made again without the limits come out otherwise.
    with pytest.raises(InvalidSetting, match="come out otherwise"):
        audit(PROBLEM, replace(plans, limits=None), model=model)


def test_the_terminal_names_its_own_options(folder):
    def pear(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    ask = ("audit", folder / "problem.toml", folder / "plans.parquet")
    assert "'--flips'" in str(pear(*ask, "--flips", 0).exception)
    twice = pear(*ask, "--by", "sex", "--by", "sex")
    assert twice.exit_code == 0, twice.output

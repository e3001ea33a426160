"""The report: what is not proved, not known or not done is said, and findings are in order."""

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

from pear.decision import BlackBox
from pear.elicitation.files import Conversation
from pear.portfolio import Everyone, Search, plan_portfolio
from pear.portfolio.audit import AuditSettings, audit, page
from pear.portfolio.audit.page import against, shown_of
from pear.portfolio.plans import read_plans
from pear.problem import Goal
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, black_box, people, write
from tests.portfolio.test_audit import portfolio


def verdicts(plans, unknown=0.0, bounded=0.0, seed=5):
    """The plans with a share of those without a plan, and of those with one, not proved."""
    rng = np.random.default_rng(seed)
    draw = rng.random(len(plans))
    with_plan = np.where(draw < bounded, "bounded", "optimal")
    without = np.where(draw < unknown, "unknown", "infeasible")
    return replace(plans, verdicts=np.where(plans.success, with_plan, without).astype(object))


def test_what_is_not_proved_is_not_counted_as_no_plan():
    plans = verdicts(portfolio(400), unknown=0.5, bounded=0.2)
    report = audit(PROBLEM, plans)
    unknown = int((plans.refused & (plans.verdicts == "unknown")).sum())
    assert report.undecided == unknown > 0
    assert sum(report.verdicts.values()) == report.refused
    groups = report.attributes[0].groups
    assert sum(group.undecided for group in groups) == unknown
    assert sum(group.cells["plan"].n for group in groups) == report.refused - unknown
    first, second = report.cautions
    assert f"For {unknown:,} of the" in first
    assert "not proved cheapest" in second
    text, data = page(report), json.loads(report.to_json())
    assert "neither as having a plan" in text
    assert "Neither a plan nor a proof of none" in text
    assert data["verdicts"]["unknown"] == unknown
    assert data["cautions"] == report.cautions
    assert audit(PROBLEM, verdicts(portfolio(400))).cautions == []


def test_all_searches_cut_short_are_no_unfairness():
    plans = portfolio(400)
    women = (plans.states[:, 3] == 0) & plans.refused
    gone = replace(plans, success=plans.success & ~women, cost=np.where(women, np.nan, plans.cost))
    settings = AuditSettings(by=("sex",))
    assert audit(PROBLEM, verdicts(gone), settings=settings).flagged
    report = audit(PROBLEM, verdicts(gone, unknown=1.0), settings=settings)
    assert report.attributes[0].groups[0].cells["plan"].too_small
    assert not any("get a plan" in words for words in report.flagged)


@pytest.fixture(scope="module")
def cut_short(tmp_path_factory):
    folder = tmp_path_factory.mktemp("short")
    frame = people(150)
    frame.loc[149, "job"] = "astronaut"
    table = write(frame, folder / "people.parquet")
    for name, rows in (("short", 6), ("long", 200_000)):
        plan_portfolio(
            PROBLEM, black_box(of_sex=15.0), table, folder / f"{name}.parquet", Everyone(WEIGHTS),
            workers=1, search=Search(max_rows=rows),
        )  # fmt: skip
    return folder


def test_a_search_cut_short_is_told_for_the_flipped_too(cut_short):
    plans = read_plans(cut_short / "short.parquet", PROBLEM)
    assert plans.undecided.any()
    report = audit(PROBLEM, plans, model=black_box(of_sex=15.0), search=Search(max_rows=6),
                   settings=AuditSettings(smallest=5))  # fmt: skip
    assert any(flip.undecided for flip in report.flips)
    assert not any((flip.share_plan_lost or 0) > 0 for flip in report.flips)
    assert "neither a plan nor that there is none" in page(report)


def test_rows_that_could_not_be_used_are_told(cut_short):
    plans = read_plans(cut_short / "long.parquet", PROBLEM)
    assert plans.bad == 1
    report = audit(PROBLEM, plans)
    assert any("1 row of people is not among" in words for words in report.cautions)
    assert "not among the plans" in page(report)
    # Without the side file, a gap in the numbers tells.
    frame = pd.read_parquet(cut_short / "long.parquet")
    assert read_plans(write(frame[1:], cut_short / "gap.parquet"), PROBLEM).bad == 1


def test_intervals_of_shares_have_a_width():
    plans = portfolio(200)
    everybody = replace(plans, success=np.ones(200, bool), cost=np.ones(200), length=np.ones(200))
    report = audit(PROBLEM, everybody)
    cell = report.attributes[0].groups[0].cells["plan"]
    assert cell.estimate.mean == 1.0
    assert 0.9 < cell.estimate.low < 0.99


def test_the_flips_say_how_they_were_done(cut_short):
    plans = read_plans(cut_short / "long.parquet", PROBLEM)
    settings = AuditSettings(smallest=20, most_flips=25)
    text = page(audit(PROBLEM, plans, model=black_box(of_sex=15.0), settings=settings))
    assert "Only the refused are flipped" in text
    assert "erratically" in text
    assert "At most 25 people" in text
    assert "25 of " in text
    assert "The same people (sex female) if they were male" in text


class OldAge:
    """A score that falls with age."""

    def __call__(self, states):
        total = states[:, 0] + states[:, 1] + 20 * states[:, 2] - states[:, 4]
        return 1 / (1 + np.exp(-(total - 60) / 20))


def test_a_flipped_number_says_what_it_became(tmp_path):
    model = BlackBox(OldAge(), PROBLEM.space, Goal(), name="old")
    table = write(people(150), tmp_path / "people.parquet")
    plan_portfolio(PROBLEM, model, table, tmp_path / "p.parquet", Everyone(WEIGHTS), workers=1)
    plans = read_plans(tmp_path / "p.parquet", PROBLEM)
    settings = AuditSettings(by=("age",), edges={"age": [50]}, smallest=20)
    report = audit(PROBLEM, plans, model=model, settings=settings)
    younger = next(flip for flip in report.flips if flip.before == "50 or more")
    assert 18 <= younger.value < 50
    assert f"if they were below 50 ({younger.value:.0f} for all)" in page(report)


def test_attributes_that_are_no_features_are_not_asked_a_model_for(cut_short, tmp_path):
    plans = read_plans(cut_short / "long.parquet", PROBLEM)
    frame = people(150).assign(region=np.where(np.arange(150) % 2, "north", "south"))
    table = write(frame, tmp_path / "people.csv")
    settings = AuditSettings(by=("region",))
    for model in (None, black_box(of_sex=15.0)):
        report = audit(PROBLEM, plans, model=model, settings=settings, people=table)
        assert report.not_flipped == ""
        assert report.no_features == ("region",)
        assert "<strong>region</strong> is no feature" in page(report)
        assert "no model was given" not in page(report)


def test_conversations_of_strangers_are_not_claimed_to_be_shown():
    told = [Conversation(f"nobody {i}", {}, (), finished=True) for i in range(40)]
    text = page(audit(PROBLEM, portfolio(100), conversations=told))
    assert "Of none of them the group is known" in text
    known = [replace(one, person={"sex": "female", "age": 30}) for one in told]
    text = page(audit(PROBLEM, portfolio(100), conversations=known))
    assert "40 conversations of 40 people" in text
    assert "Of none of them" not in text


def test_findings_are_by_kind_and_the_largest_first():
    report = audit(PROBLEM, portfolio(800, dearer=2.0, rarer=0.2))
    assert list(report.findings) == ["By one attribute", "By two attributes"]
    single = report.findings["By one attribute"]
    assert all(words.startswith("Sex female: ") for words in single)
    assert "% more effort than for everybody else" in single[0]
    assert "of the refused get a plan; of everybody else, " in single[1]
    assert report.flagged == [words for part in report.findings.values() for words in part]
    text = page(report)
    assert text.index("By one attribute, the largest first") < text.index("By two attributes, the")
    assert "raises even one false alarm in at most 5% of audits" in text
    seen, folded = text.split("How differences were tested")
    assert "djusted p" not in seen
    assert "Adjusted p" in folded


def test_the_page_names_what_was_audited_and_how_to_get_the_figures():
    text = page(audit(PROBLEM, portfolio(200)), made=date(2026, 3, 4))
    assert "200 applications, " in text
    assert "Audited on 4 March 2026 with" in text
    assert "<code>--json</code>" in text


def test_only_the_worse_off_are_red_and_bars_stand_where_a_difference_was_found():
    report = audit(PROBLEM, portfolio(800, dearer=1.5, rarer=0.15))
    sex = next(part for part in report.attributes if part.name == "sex")
    shown = {one.measure: one for one in shown_of(sex)}
    marks = {(name, row.label): row.mark for name, one in shown.items() for row in one.rows}
    assert marks["plan", "female"] == marks["cost", "female"] == "worse"
    assert marks["plan", "male"] == marks["cost", "male"] == "better"
    assert marks["length", "female"] == ""
    assert shown["length"].ticks == ()
    assert not any(row.bar for row in shown["length"].rows)
    assert shown["plan"].scale == ("60%", "100%")
    assert shown["cost"].without == shown["length"].without > 0
    assert shown["plan"].without == 0
    # What stands in the table adds up.
    women, men = (row.cell.estimate.mean for row in shown["plan"].rows)
    said = against(shown["plan"].rows[0].cell, "plan")
    assert said == f"{round(100 * men) - round(100 * women)} percentage points fewer"

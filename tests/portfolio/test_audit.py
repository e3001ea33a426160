"""The audit: a known unfairness is found, chance is not, and small groups are never equal."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pear.decision import BlackBox
from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.portfolio import Everyone, Search, plan_portfolio
from pear.portfolio.audit import AuditSettings, audit, page
from pear.portfolio.audit.groups import groupings, make_cut
from pear.portfolio.plans import Plans, read_plans
from pear.problem import Goal
from pear.statistics import amount_test, estimate, holm, paired_test, share_test
from tests.portfolio.small_problem import (
    PROBLEM,
    SPACE,
    WEIGHTS,
    Score,
    black_box,
    people,
    write,
)


def portfolio(n=800, seed=0, dearer=1.0, rarer=0.0):
    """Plans with costs that do not depend on the group, except that women's are ``dearer``
    times as high and a share ``rarer`` of them has no plan."""
    rng = np.random.default_rng(seed)
    frame = people(n, seed)
    female = (frame["sex"] == "female").to_numpy()
    cost = rng.lognormal(3, 0.6, n) * np.where(female, dearer, 1.0)
    length = rng.integers(1, 4, n).astype(float)
    success = rng.random(n) > 0.1 + rarer * female
    refused = rng.random(n) < 0.8
    return Plans(
        rows=np.arange(n),
        refused=refused,
        success=success | ~refused,
        cost=np.where(refused & success, cost, np.where(refused, np.nan, 0.0)),
        length=np.where(refused & success, length, np.nan),
        states=SPACE.encode(frame.drop(columns="id")),
        weights=[json.dumps(WEIGHTS.tolist())] * n,
        model_fingerprint="",
    )


@pytest.mark.slow
def test_chance_is_not_flagged_more_often_than_the_stated_level():
    flagged = [bool(audit(PROBLEM, portfolio(400, seed)).flagged) for seed in range(100)]
    # With probability 0.05 each, more than 12 of 100 happen once in a thousand times.
    assert sum(flagged) <= 12


@pytest.mark.parametrize("seed", range(5))
def test_dearer_plans_for_women_are_found(seed):
    report = audit(PROBLEM, portfolio(seed=seed, dearer=1.35))
    women = next(g for g in report.attributes[0].groups if g.label == "female")
    assert women.cells["cost"].flagged
    assert women.cells["cost"].difference > 0
    assert not women.cells["length"].flagged
    assert any(
        words.startswith("Sex female: plans take about") and "more effort" in words
        for words in report.flagged
    )


def test_fewer_plans_for_women_are_found():
    report = audit(PROBLEM, portfolio(rarer=0.2))
    women = next(g for g in report.attributes[0].groups if g.label == "female")
    assert women.cells["plan"].flagged
    assert women.cells["plan"].difference == pytest.approx(-0.2, abs=0.08)


def test_both_sides_of_one_comparison_are_one_test():
    report = audit(PROBLEM, portfolio(), settings=AuditSettings(by=("sex",)))
    assert report.tests == 3
    female, male = report.attributes[0].groups
    assert female.cells["cost"].p == male.cells["cost"].p
    assert female.cells["cost"].difference == pytest.approx(-male.cells["cost"].difference)
    unfair = audit(PROBLEM, portfolio(dearer=2.0), settings=AuditSettings(by=("sex",)))
    assert len(unfair.flagged) == 1


def test_pairs_of_attributes_are_groups_too():
    report = audit(PROBLEM, portfolio())
    assert [a.name for a in report.attributes] == ["sex", "age", "sex and age"]
    assert len(report.attributes[2].groups) == 2 * len(report.attributes[1].groups)
    people_of = [sum(g.cells["plan"].n for g in a.groups) for a in report.attributes]
    assert people_of == [report.refused] * 3


def test_small_groups_are_too_small_never_equal():
    report = audit(PROBLEM, portfolio(60), settings=AuditSettings(smallest=40))
    cells = [cell for a in report.attributes for g in a.groups for cell in g.cells.values()]
    assert all(cell.too_small and cell.estimate is None and cell.p is None for cell in cells)
    assert report.tests == 0
    assert "Nothing could be tested" in report.words()
    text = page(report)
    assert "too small to judge" in text
    assert "<svg" not in text


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    table = write(people(400), folder / "people.parquet")
    for name, of_sex in (("blind", 0.0), ("unfair", 15.0)):
        plan_portfolio(
            PROBLEM,
            black_box(of_sex=of_sex),
            table,
            folder / f"{name}.parquet",
            Everyone(WEIGHTS),
            workers=1,
        )
    return folder


def test_the_same_person_flipped_shows_what_the_model_does(planned):
    plans = read_plans(planned / "unfair.parquet", PROBLEM)
    report = audit(PROBLEM, plans, model=black_box(of_sex=15.0))
    flips = {(f.before, f.after): f for f in report.flips}
    assert flips["female", "male"].difference.mean < 0 < flips["male", "female"].difference.mean
    assert flips["female", "male"].flagged
    assert flips["male", "female"].flagged
    assert any(
        "(sex female) if they were male" in words and "less effort" in words
        for words in report.flagged
    )
    assert flips["male", "female"].share_approved == 0
    assert flips["female", "male"].share_approved > 0
    assert report.unused == ("age",)
    assert "age" in page(report)


def test_a_model_blind_to_the_attribute_is_reported_as_such(planned):
    plans = read_plans(planned / "blind.parquet", PROBLEM)
    report = audit(PROBLEM, plans, model=black_box())
    assert report.flips == ()
    assert report.unused == ("sex", "age")
    assert "model" in audit(PROBLEM, plans).not_flipped


def test_flipping_needs_the_model_the_plans_were_made_with(planned):
    plans = read_plans(planned / "blind.parquet", PROBLEM)
    with pytest.raises(FingerprintMismatch, match="another model"):
        audit(PROBLEM, plans, model=black_box(of_sex=15.0))


class NeverWomen:
    """Refuses women whatever they do."""

    def __call__(self, states):
        return np.where(states[:, 3] == 0, 0.1, Score()(states))


def test_plans_that_only_others_have_are_found(tmp_path):
    model = BlackBox(NeverWomen(), SPACE, Goal(), name="never")
    table = write(people(200), tmp_path / "people.parquet")
    plan_portfolio(PROBLEM, model, table, tmp_path / "p.parquet", Everyone(WEIGHTS), workers=1)
    report = audit(PROBLEM, read_plans(tmp_path / "p.parquet", PROBLEM), model=model)
    flips = {(f.before, f.after): f for f in report.flips}
    assert flips["female", "male"].share_plan_gained == 1.0
    assert flips["male", "female"].share_plan_lost == 1.0
    for flip in flips.values():
        assert flip.plan_flagged
        assert flip.difference is None
    assert any("would have a plan who have none" in words for words in report.flagged)
    assert "too few with both plans" in page(report)


def test_plans_of_another_search_are_not_taken_for_flips(tmp_path):
    table = write(people(200), tmp_path / "people.parquet")
    plan_portfolio(
        PROBLEM, black_box(of_sex=15.0), table, tmp_path / "p.parquet", Everyone(WEIGHTS),
        workers=1, search=Search(max_length=1),
    )  # fmt: skip
    plans = read_plans(tmp_path / "p.parquet", PROBLEM)
    with pytest.raises(InvalidSetting, match="--max-length"):
        audit(PROBLEM, plans, model=black_box(of_sex=15.0))
    same = Search(max_length=1)
    assert audit(PROBLEM, plans, model=black_box(of_sex=15.0), search=same).flips


def test_numbers_with_few_values_are_groups_in_their_order():
    shares = make_cut("income", pd.Series([0.5, 10.0, 2.0, 2.0]), PROBLEM)
    assert (shares.labels, shares.values) == (("0.5", "2.0", "10.0"), (0.5, 2.0, 10.0))
    assert shares.codes(pd.Series([10.0, 0.5])).tolist() == [2, 0]


def test_plans_survive_the_way_through_csv(planned, tmp_path):
    pd.read_parquet(planned / "blind.parquet").to_csv(tmp_path / "plans.csv", index=False)
    first, second = (
        read_plans(p, PROBLEM) for p in (planned / "blind.parquet", tmp_path / "plans.csv")
    )
    for name in ("rows", "refused", "success", "cost", "length", "states", "weights"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_attributes_that_are_no_features_come_from_the_people(planned, tmp_path):
    plans = read_plans(planned / "blind.parquet", PROBLEM)
    settings = AuditSettings(by=("region", "sex"))
    with pytest.raises(InvalidSetting, match="--people"):
        audit(PROBLEM, plans, settings=settings)
    frame = people(400).assign(region=np.where(np.arange(400) % 2, "north", "south"))
    table = write(frame, tmp_path / "people.csv")
    report = audit(PROBLEM, plans, settings=settings, people=table)
    assert [g.label for g in report.attributes[0].groups] == ["north", "south"]
    with pytest.raises(InvalidData, match="no row"):
        audit(PROBLEM, plans, settings=settings, people=write(frame[:50], tmp_path / "few.csv"))
    with pytest.raises(InvalidData, match="no column 'region'"):
        audit(PROBLEM, plans, settings=settings, people=write(people(400), tmp_path / "no.csv"))


def test_plans_of_something_else_are_refused(planned, tmp_path):
    with pytest.raises(InvalidData, match="lacks the columns"):
        read_plans(write(people(), tmp_path / "people.csv"), PROBLEM)
    with pytest.raises(FingerprintMismatch, match="another problem"):
        read_plans(planned / "blind.parquet", replace(PROBLEM, max_length=2))
    once = pd.read_parquet(planned / "blind.parquet")
    with pytest.raises(InvalidData, match="row 3 more than once"):
        read_plans(write(pd.concat([once, once.iloc[3:9]]), tmp_path / "twice.parquet"), PROBLEM)
    unfair = pd.read_parquet(planned / "unfair.parquet").assign(weights="garbage")
    garbage = write(unfair, tmp_path / "garbage.parquet")
    with pytest.raises(InvalidData, match="not weights: 'garbage'"):
        audit(PROBLEM, read_plans(garbage, PROBLEM), model=black_box(of_sex=15.0))


def test_the_page_is_whole_and_needs_nothing_else():
    report = audit(PROBLEM, portfolio(dearer=1.5))
    text = page(replace(report, problem="loans <&> more"))
    assert "loans &lt;&amp;&gt; more" in text
    assert "<script" not in text
    assert "href=" not in text
    assert "src=" not in text
    figures = [part.split("</svg>")[0] + "</svg>" for part in text.split("<svg")[1:]]
    shown = [
        group.cells[measure]
        for attribute in report.attributes
        for measure in ("plan", "cost", "length")
        if any(group.cells[measure].flagged for group in attribute.groups)
        for group in attribute.groups
        if group.cells[measure].estimate
    ]
    assert len(figures) == len(shown) >= 10
    for figure in figures:
        drawn = ElementTree.fromstring("<svg" + figure)
        assert drawn.get("aria-hidden") == "true", "its numbers stand in words beside it"
        places = [float(bar.get("x")) + float(bar.get("width")) for bar in drawn]
        assert all(0 <= place <= 100.5 for place in places)
    assert json.loads(report.to_json())["found"] == report.flagged


def test_numbers_are_cut_where_asked():
    column = pd.Series([18, 30, 45, 61])
    cut = make_cut("age", column, PROBLEM, [30, 60])
    assert cut.labels == ("below 30", "30 to below 60", "60 or more")
    assert cut.codes(column).tolist() == [0, 1, 1, 2]
    assert cut.values == (18.0, 45.0, 61.0)
    whole = make_cut("age", pd.Series(np.arange(18, 81)), PROBLEM)
    assert whole.labels == ("below 34", "34 to below 49", "49 to below 65", "65 or more")
    [only] = groupings([cut], pd.DataFrame({"age": [None, 20]}))
    assert only.of.tolist() == [-1, 0]


def test_statistics_by_hand():
    assert holm([0.02, 0.01, 0.5]) == pytest.approx([0.04, 0.03, 0.5])
    # Fisher, 3 of 4 against 1 of 4: 2 * (16 + 1) / 70 by the hypergeometric distribution.
    inside, outside = np.array([1, 1, 1, 0]) > 0, np.array([1, 0, 0, 0]) > 0
    assert share_test(inside, outside) == pytest.approx(34 / 70)
    assert amount_test(np.ones(40), np.ones(40)) == 1.0
    assert amount_test(np.arange(40.0), np.arange(40.0) + 30) < 1e-6
    rng = np.random.default_rng(0)
    assert amount_test(rng.normal(0, 1, 50), rng.normal(2, 1, 4_000)) < 1e-6
    assert paired_test(np.zeros(50)) == 1.0
    # Six differences of one sign: 2 / 2^6.
    assert paired_test(np.arange(1.0, 7.0)) == pytest.approx(2 / 64)
    assert paired_test(np.ones(6)) == pytest.approx(2 / 64)
    assert estimate(np.zeros(0), np.random.default_rng(0)) is None


def test_means_of_skewed_amounts_are_told_apart_at_the_level_stated():
    rng = np.random.default_rng(1)
    # Welch's test alone calls 12% of these different: forty of a skewed amount are few.
    chance = [
        amount_test(rng.lognormal(0, 1.2, 40), rng.lognormal(0, 1.2, 360)) for _ in range(300)
    ]
    assert np.mean(np.array(chance) <= 0.05) <= 0.09
    # Half of the group pays twice as much and half nothing: ranks are alike, means are not.
    dear = np.where(np.arange(150) < 75, 0.0, 30.0)
    assert amount_test(dear + rng.uniform(0, 1, 150), rng.uniform(7, 8, 150)) < 0.001


def test_the_bootstrap_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(200):
        found = estimate(rng.exponential(1.0, 100), rng)
        covered += found.low <= 1.0 <= found.high
    assert 175 <= covered <= 199


@pytest.mark.parametrize("settings", [{"level": 0.0}, {"smallest": 1}, {"most_flips": 0}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(InvalidSetting, match=next(iter(settings))):
        AuditSettings(**settings)

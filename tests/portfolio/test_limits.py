"""What people said they cannot do is in no plan for them; what they took back may be."""

import json

import numpy as np
import pandas as pd
import pytest

from pear.elicitation import Session
from pear.elicitation.files import conversation_from_dict, read_conversations
from pear.planning.exact import ExactPlanner
from pear.portfolio import Everyone, Search, plan_portfolio
from pear.portfolio.beliefs import stated_limits
from pear.preferences import default_prior
from pear.problem import Limits
from tests.portfolio.small_problem import PROBLEM, black_box, people, write

PRIOR = default_prior(PROBLEM)
SEARCH = Search(together=16)
PLANNER = ExactPlanner(PROBLEM, black_box())


def refused(n=60):
    """People who have a plan, by id, with the feature their cheapest plan begins with."""
    found = {}
    for record in people(n).to_dict("records"):
        name = record.pop("id")
        plan = PLANNER.plan(PROBLEM.state(record), PRIOR.mean())
        if plan.steps:
            found[name] = (record, plan.steps[0].feature)
    return found


def talk(record, say=lambda session: None):
    session = Session(PLANNER, record, PRIOR)
    say(session)
    return session.to_dict()


def lines(path, talks):
    path.write_text("\n".join(json.dumps({**one, "id": name}) for name, one in talks))
    return read_conversations(path, PROBLEM)


def planned(tmp_path, conversations, name="plans.parquet", samples=1, **settings):
    table = tmp_path / "people.parquet"
    summary = plan_portfolio(
        PROBLEM, black_box(), write(people(), table), tmp_path / name,
        Everyone.under(PRIOR, samples, conversations), search=SEARCH, workers=1, **settings,
    )  # fmt: skip
    return summary, pd.read_parquet(tmp_path / name).set_index("id")


def changed(row):
    return {step["feature"] for step in json.loads(row["steps"])}


def test_what_somebody_cannot_do_is_never_in_their_plan(tmp_path):
    who = refused()
    talks = [
        (name, talk(record, lambda s, f=feature: s.exclude(feature=f)))
        for name, (record, feature) in who.items()
    ]
    _, without = planned(tmp_path, [], "before.parquet")
    summary, plans = planned(tmp_path, lines(tmp_path / "talks.jsonl", talks))
    assert all(feature in changed(without.loc[name]) for name, (_, feature) in who.items())
    assert summary.said == len(who)
    for name, (record, feature) in who.items():
        row = plans.loc[name]
        assert feature not in changed(row)
        limits = Limits.from_dict(json.loads(row["limits"]))
        assert limits == Limits(features=(feature,))
        alone = PLANNER.plan(PROBLEM.state(record), PRIOR.mean(), limits)
        assert row["success"] == alone.success
        assert row["cost"] == pytest.approx(alone.cost, abs=1e-9) or not alone.success
    others = plans.drop(index=list(who))
    assert set(others["limits"]) == {"{}"}


def test_limits_that_were_taken_back_are_not_kept(tmp_path):
    (name, (record, feature)), *_ = refused().items()

    def undone(session):
        session.exclude(feature=feature)
        session.undo()

    def lifted(session):
        session.exclude(feature=feature)
        session.allow(feature=feature)

    _, without = planned(tmp_path, [], "before.parquet")
    for number, say in enumerate((undone, lifted)):
        told = lines(tmp_path / "talks.jsonl", [(name, talk(record, say))])
        assert stated_limits(told) == {}
        _, plans = planned(tmp_path, told, f"{number}.parquet")
        pd.testing.assert_frame_equal(plans, without)


@pytest.mark.slow
def test_limits_and_answers_count_together_for_any_number_of_workers(tmp_path):
    (name, (record, feature)), *_ = refused().items()

    def say(session):
        session.exclude(feature=feature)
        if session.ask() is not None:
            session.answer(0)

    told = lines(tmp_path / "talks.jsonl", [(name, talk(record, say))])
    given = Everyone.under(PRIOR, 8, told)
    table = write(people(), tmp_path / "people.parquet")
    for workers in (1, 2):
        plan_portfolio(PROBLEM, black_box(), table, tmp_path / f"{workers}.parquet", given,
                       search=SEARCH, workers=workers)  # fmt: skip
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
    assert given.digest != Everyone.under(PRIOR, 8).digest
    assert Everyone(given.weights, given.learned, given.stated).digest != given.digest


def test_a_later_conversation_lifts_only_what_it_speaks_of(tmp_path):
    record = people(1).drop(columns="id").to_dict("records")[0]

    def first(session):
        session.set_limits(Limits(features=("job", "savings"), max_steps=2))

    def second(session):
        session.exclude(feature="job")
        session.allow(feature="job")
        session.exclude(action="earn")

    told = lines(
        tmp_path / "talks.jsonl", [("A", talk(record, first)), ("A", talk(record, second))]
    )
    expected = Limits(features=("savings",), actions=("earn",), max_steps=2)
    assert stated_limits(told) == {"A": expected}


def test_limits_a_conversation_began_with_are_kept_and_the_nameless_bind_nobody():
    record = people(1).drop(columns="id").to_dict("records")[0]
    began = Session(PLANNER, record, PRIOR, limits=Limits(features=("job",))).to_dict()
    named = conversation_from_dict({**began, "id": 0}, PROBLEM, "1")
    assert stated_limits([named]) == {"0": Limits(features=("job",))}
    assert stated_limits([conversation_from_dict(began, PROBLEM, "1")]) == {}


def test_the_summary_says_for_how_many_people_conversations_were_used(tmp_path):
    (name, (record, _)), *_ = refused().items()
    own = talk(record, lambda s: s.exclude(feature="job"))
    told = lines(tmp_path / "a.jsonl", [(name, own), (None, own), ("stranger", own)])
    summary, _ = planned(tmp_path, told)
    assert (summary.said, summary.conversations, summary.nameless) == (1, 3, 1)
    assert "what 1 person of the table said in them was used" in summary.words()
    assert "1 without 'id' do not say whose" in summary.words()
    summary, _ = planned(tmp_path, told[1:], "none.parquet")
    assert "everybody was planned under the prior" in summary.words()
    assert "--id" in summary.words()
    assert "conversations" not in planned(tmp_path, [], "no.parquet")[0].words()


def test_whole_number_ids_are_the_same_with_a_gap_among_them(tmp_path):
    frame = people(6).assign(id=[1.0, 2.0, np.nan, 4.0, 5.0, 6.0])
    table = write(frame, tmp_path / "people.parquet")
    given = Everyone(PRIOR.mean(), {"4": PRIOR.mean() * 2})
    summary = plan_portfolio(PROBLEM, black_box(), table, tmp_path / "plans.csv", given, workers=1)
    assert summary.said == 1
    own = pd.DataFrame([PRIOR.mean()] * 6, columns=list(PROBLEM.weight_names))
    own = write(own.assign(id=["1", "2", "", "4", "5", "6"]), tmp_path / "weights.csv")
    assert (
        plan_portfolio(PROBLEM, black_box(), table, tmp_path / "own.csv", own, workers=1).bad == 0
    )
    plans = pd.read_csv(tmp_path / "plans.csv", dtype=str, keep_default_na=False)
    assert plans["id"].tolist() == ["1", "2", "", "4", "5", "6"]

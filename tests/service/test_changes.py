"""What a person is told when the model, the problem or the calendar moves on."""

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace

from pydantic import TypeAdapter
from sqlalchemy import update
from tests.service.helpers import PERSON, PROBLEM, Talk, running

from pear.datasets import loan_book_people
from pear.elicitation import Words
from pear.elicitation.says import Accepted
from pear.elicitation.words import catalogue
from pear.problem import ActionSpace, CostGraph, Feature, FeatureSpace
from pear.service.engine import Case, Notice
from pear.service.service import notices
from pear.service.store.database import Database, Store
from pear.service.store.tables import conversations
from pear.service.store.upkeep import forget_old, recheck_open, under_other_model


def reopened(talk, client):
    again = Talk.__new__(Talk)
    again.client, again.path, again.token, again.id = client, talk.path, talk.token, talk.id
    return again


def test_a_plan_that_holds_under_the_new_model_is_said_to_hold(settings):
    with running(settings) as client:
        talk = Talk(client)
        before = talk.finish()
    with running(settings, shift=0.001) as client:
        after = reopened(talk, client).read()
    assert after["model_fingerprint"] != before["model_fingerprint"]
    old = [step["words"] for step in before["result"]["plan"]["steps"]]
    assert [step["words"] for step in after["result"]["plan"]["steps"]] == old
    assert "still works" in after["notices"][0]


def test_a_plan_the_new_model_breaks_is_made_anew_and_the_person_told(settings):
    with running(settings) as client:
        talk = Talk(client)
        before = talk.finish()
    with running(settings, shift=-0.9) as client:
        after = reopened(talk, client).read()
        assert after["progress"]["answered"] == before["progress"]["answered"]
        assert after["result"]["plan"] != before["result"]["plan"]
        assert "no longer works" in after["notices"][0]
        assert reopened(talk, client).read() == after, "said until the person does something"


def test_questions_go_on_under_the_new_model_with_the_answers_kept(settings):
    with running(settings) as client:
        talk = Talk(client)
        talk.answer(0)
    with running(settings, shift=-0.2) as client:
        view = reopened(talk, client).read()
        assert view["progress"]["answered"] == 1
        assert view["notices"]


def test_every_open_plan_is_checked_at_the_start_without_anyone_asking(settings):
    with running(settings) as client:
        talks = [Talk(client) for _ in range(3)]
        for talk in talks:
            talk.read()
    with running(settings, shift=-0.9) as client:
        end = time.monotonic() + 20
        problem, model = client.service.conversations.serves
        store = client.service.store
        database = client.service.database
        while under_other_model(database, problem, model) and time.monotonic() < end:
            time.sleep(0.05)
        assert {store.by_id(talk.id).model_fingerprint for talk in talks} == {model}
        assert asyncio.run(recheck_open(client.service)) == 0


def without(*actions):
    """The problem without some of its actions."""
    kept = tuple(a for a in PROBLEM.actions.actions if a.name not in actions)
    return replace(PROBLEM, actions=ActionSpace(PROBLEM.space, kept))


def test_answers_that_an_action_taken_away_makes_meaningless_are_said_to_be_lost(settings):
    with running(settings) as client:
        talk = Talk(client)
        talk.answer(0)
        talk.post("limits", {"kind": "feature", "feature": "job"})
        talk.post("limits", {"kind": "action", "action": "learn"})
    with running(settings, problem=without("learn")) as client:
        view = reopened(talk, client).read()
        assert view["progress"]["answered"] == 0
        assert [limit["feature"] for limit in view["limits"]] == ["job"]
        told = " ".join(view["notices"])
        assert "1 of your answers" in told
        assert "say again what you can’t do" in told
        assert "your answers were kept" not in told
        events = client.service.store.history(talk.id)
        assert [event.kind for event in events] == ["answer", "exclude", "exclude", "model"]
        assert len(events[-1].content["lost"]) == 2, "and what was lost is still on record"


def test_a_plan_that_is_gone_is_not_announced_as_a_new_one(settings):
    with running(settings) as client:
        talk = Talk(client)
        talk.finish()
    with running(settings, shift=-9.0) as client:
        view = reopened(talk, client).read()
        assert view["stage"] == "no_plan"
        assert "we found no other one" in view["notices"][0]


def test_a_feature_more_ends_the_conversation_in_words_on_every_page(settings):
    with running(settings) as client:
        talk = Talk(client)
        talk.read()
    space = FeatureSpace(
        (*PROBLEM.space.features, Feature("pension", "numeric", 0, 5000, (0, 5000)))
    )
    more = replace(
        PROBLEM,
        space=space,
        actions=ActionSpace(space, PROBLEM.actions.actions),
        costs=CostGraph(space, PROBLEM.costs.edges, floor=1.0),
    )
    with running(settings, problem=more) as client:
        for path in (
            talk.path,
            f"/c/{talk.token}",
            f"/c/{talk.token}/now",
            f"/c/{talk.token}/data",
        ):
            answer = client.get(path)
            assert answer.status_code == 410, path
            assert "new link" in answer.json()["detail"]
        kept = client.get(f"{talk.path}/everything").json()
        assert kept["conversation"]["record"]["income"] == 1500.0, "nothing stored is lost"


def test_of_two_services_the_one_started_last_serves_and_the_other_leaves_alone(settings):
    with running(settings) as old:
        talk = Talk(old)
        talk.answer(0)
        with running(settings, shift=0.1) as new:
            mirrored = reopened(talk, new)
            view = mirrored.read()
            version = view["version"]
            assert "has changed" in view["notices"][0]
            for _ in range(3):
                answer = old.get(talk.path)
                assert answer.status_code == 503
                assert answer.headers["Retry-After"]
            assert mirrored.read()["version"] == version, "no back and forth"


def test_the_first_record_and_every_plan_given_are_kept_in_order(settings):
    with running(settings) as client:
        talk = Talk(client)
        first = talk.finish()
        second = talk.correct({**PERSON, "income": 2600.0}).json()
    with running(settings, shift=-0.9) as client:
        third = reopened(talk, client).read()
        kept = client.get(f"{talk.path}/everything").json()
    assert kept["conversation"]["record"] == PERSON
    corrected = [event for event in kept["events"] if event["kind"] == "correct"]
    assert corrected[0]["content"]["record"]["income"] == 2600.0
    given = [[step["words"] for step in item["plan"]["steps"]] for item in kept["plans"]]
    seen = [[s["words"] for s in v["result"]["plan"]["steps"]] for v in (first, second, third)]
    assert given == seen


def test_old_conversations_are_forgotten_and_young_ones_kept(client):
    old, young = Talk(client), Talk(client)
    days = client.service.settings.retention_days
    with client.service.database.writing() as connection:
        connection.execute(
            update(conversations)
            .where(conversations.c.id == old.id)
            .values(expires_at=time.time() - 86400 * (days + 1))
        )
    assert asyncio.run(forget_old(client.service)) == 1
    assert client.service.store.by_id(old.id) is None
    assert young.read()["stage"] == "question"


def steps_of(view):
    return [step["words"] for step in view["result"]["plan"]["steps"]]


def test_a_promised_plan_is_still_promised_under_a_new_model_and_without_the_setting(settings):
    with running(settings, honour_days=30) as client:
        talk = Talk(client)
        before = talk.finish()
        assert "keeps its word on this plan until" in before["notices"][0]
        assert not any("earlier plan" in notice for notice in before["notices"])
    with running(settings, shift=-0.9) as client:
        after = reopened(talk, client).finish()
        assert steps_of(after) != steps_of(before)
        [promise] = [notice for notice in after["notices"] if "earlier plan" in notice]
        assert all(words in promise for words in steps_of(before))
        assert not any("keeps its word on this plan until" in notice for notice in after["notices"])
        reopened(talk, client).post("limits", {"kind": "feature", "feature": "job"})
        later = reopened(talk, client).finish()
        assert promise in later["notices"], "said as long as it holds"
    with running(settings, shift=-9.0) as client:
        none = reopened(talk, client).read()
        assert none["stage"] == "no_plan"
        assert promise in none["notices"]


def test_a_promise_is_told_in_the_language_of_who_reads_it(tmp_path, loan_book_engine):
    plan = loan_book_engine.look(
        Case("a", 1, loan_book_people()["Amina"], (Accepted(),))
    ).standing.result.plan
    stored = Store(Database(f"sqlite:///{tmp_path / 'pear.db'}"))
    old = SimpleNamespace(
        plan={**plan.to_dict(), "honoured_until": time.time() + 86400, "model_fingerprint": "old"}
    )
    stored.plans = lambda number: [old]
    [found] = stored._promises(SimpleNamespace(id="a", model_fingerprint="new"), None, 0)
    adapter = TypeAdapter(tuple[Notice, ...])
    [read] = adapter.validate_json(adapter.dump_json((found,)))
    assert read == found
    for language, step in (("en", "overdue bill"), ("de", "überfällige"), ("it", "scadut")):
        words = Words(loan_book_engine.problem, catalogue(language, "pear.service"))
        [told] = notices(SimpleNamespace(told=(read,)), words)
        assert step in told
        assert all(words.step(part) in told for part in found.steps)
        assert "210" not in told, "what was now then is not said"
    before = replace(found, steps="Pay 1 bill")
    assert "Pay 1 bill" in notices(SimpleNamespace(told=(before,)), words)[0], "stored so before"


def test_a_promise_that_has_ended_is_not_repeated(settings, monkeypatch):
    with running(settings, honour_days=3) as client:
        talk = Talk(client)
        talk.finish()
    later = time.time() + 4 * 86400
    monkeypatch.setattr("pear.service.store.database.time.time", lambda: later)
    with running(settings, shift=-0.9) as client:
        after = reopened(talk, client).read()
        assert not any("earlier plan" in notice for notice in after["notices"])


def test_without_a_promise_nothing_is_promised(settings):
    with running(settings) as client:
        view = Talk(client).finish()
        assert not any("keeps its word" in notice for notice in view["notices"])


def test_a_plan_says_how_many_of_the_models_that_may_come_next_accept_it(settings):
    from tests.service.helpers import Score

    from pear.decision import BlackBox
    from pear.service.engine import Engine

    def model(shift):
        return BlackBox(Score(shift), PROBLEM.space, PROBLEM.goal)

    engine = Engine(PROBLEM, model(0.0), settings, versions=[model(0.5), model(0.1), model(-9.0)])
    seen = engine.look(Case("a", 1, PERSON, (Accepted(),)))
    [lasts] = [notice for notice in seen.notices if notice.code == "lasts"]
    assert (lasts.number, lasts.of) == (2, 3)

"""What a person is told when the model, the problem or the calendar moves on."""

import asyncio
import time
from dataclasses import replace

from sqlalchemy import update
from tests.service.helpers import PROBLEM, Talk, running

from pear.service.tables import conversations
from pear.service.upkeep import forget_old, recheck_open


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
        assert "no longer fits" in after["notices"][0]
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
        model = client.service.conversations.model_fingerprint
        store = client.service.store
        while store.under_other_model(PROBLEM.fingerprint, model) and time.monotonic() < end:
            time.sleep(0.05)
        assert {store.by_id(talk.id).model_fingerprint for talk in talks} == {model}
        assert asyncio.run(recheck_open(client.service)) == 0


def test_a_problem_that_no_longer_fits_ends_the_conversation_in_words(settings, monkeypatch):
    with running(settings) as client:
        talk = Talk(client)
        talk.read()
        other = replace(PROBLEM, max_length=2)
        service = client.service.conversations
        monkeypatch.setattr(service, "problem", other)

        async def refuse(*_arguments):
            from pear.errors import InvalidRecord

            raise InvalidRecord("'pension' is missing")

        monkeypatch.setattr(service.searchers, "run", refuse)
        answer = client.get(talk.path)
        assert answer.status_code == 410
        assert "new link" in answer.json()["detail"]


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

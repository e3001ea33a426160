"""Many at once: one answer wins, a request sent twice is done once, processes share a database."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.service.helpers import KEY, PERSON, Talk, running


def test_of_two_answers_to_one_question_one_wins_and_the_other_is_told(talk):
    shown = talk.read()["shown"]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda i: talk.answer(i % 2, shown), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    events = talk.client.service.store.history(talk.id)
    assert [(event.number, event.kind) for event in events] == [(1, "answer")]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert "nothing was changed" in refused.json()["detail"]


def test_an_answer_to_a_question_that_is_over_is_a_conflict(talk):
    shown = talk.read()["shown"]
    after = talk.answer(0, shown).json()
    late = talk.answer(1, shown)
    assert late.status_code == 409
    assert late.json()["present"] == after, "what stands now is told"
    assert talk.read()["progress"]["answered"] == 1


def test_a_request_sent_again_with_its_key_is_done_once(talk):
    shown = talk.read()["shown"]
    first = talk.answer(0, shown, key="k1")
    again = talk.answer(0, shown, key="k1")
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert talk.read()["progress"]["answered"] == 1


def test_a_key_for_another_request_is_refused(talk):
    shown = talk.read()["shown"]
    talk.answer(0, shown, key="k1")
    other = talk.answer(1, shown, key="k1")
    assert other.status_code == 422
    assert "Idempotency-Key" in other.json()["detail"]
    assert talk.read()["progress"]["answered"] == 1


def test_the_same_key_sent_many_times_at_once_is_done_once(talk):
    shown = talk.read()["shown"]
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: talk.answer(0, shown, key="k1"), range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert len(talk.client.service.store.history(talk.id)) == 1


def test_a_key_of_one_conversation_means_nothing_in_another(client):
    one, two = Talk(client), Talk(client)
    assert one.answer(0, key="k1").status_code == 200
    assert two.answer(1, key="k1").status_code == 200


def test_two_services_on_one_database_go_on_with_each_others_conversations(settings):
    with running(settings) as one, running(settings) as two:
        talk = Talk(one)
        talk.answer(0)
        mirrored = Talk.__new__(Talk)
        mirrored.client, mirrored.path = two, talk.path
        assert mirrored.read() == talk.read()
        if talk.read()["stage"] == "question":
            before = talk.read()["shown"]
            mirrored.answer(1)
            assert talk.read() == mirrored.read()
            assert talk.answer(0, before).status_code == 409


def test_a_full_queue_refuses_with_a_time_to_come_back_and_changes_nothing(settings):
    with running(settings, most_waiting=1) as client:
        talks = [Talk(client) for _ in range(6)]
        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(lambda talk: client.get(talk.path), talks))
        statuses = [answer.status_code for answer in answers]
        assert set(statuses) == {200, 503}
        refused = answers[statuses.index(503)]
        assert int(refused.headers["Retry-After"]) >= 1
        assert "pear_refused_total" in client.get("/metrics").text
        for talk in talks:
            assert talk.read()["version"] == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [("conversations", {"record": PERSON, "reference": "r"}), ("keys", {"name": "twice"})],
)
def test_what_is_made_by_the_same_request_twice_at_once_is_made_once(client, path, body):
    headers = {"Authorization": f"Bearer {KEY}", "Idempotency-Key": "once"}

    def make(_):
        return client.post(f"/api/v1/{path}", json=body, headers=headers)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(make, range(16)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len({answer.text for answer in answers}) == 1


def test_what_is_made_by_another_process_meanwhile_is_found(client, monkeypatch):
    """The other process is faster between looking and writing."""
    headers = {"Authorization": f"Bearer {KEY}", "Idempotency-Key": "meanwhile"}

    def make(path, body):
        return client.post(f"/api/v1/{path}", json=body, headers=headers)

    for path, body, owner, look in (
        ("conversations", {"record": PERSON}, client.service.store, "by_token"),
        ("keys", {"name": "one"}, client.service.keys, "_stored"),
    ):
        first, found, asked = make(path, body), getattr(owner, look), []

        def not_yet(secret, found=found, asked=asked):
            asked.append(secret)
            return None if asked.count(secret) == 1 and secret != KEY else found(secret)

        with monkeypatch.context() as patched:
            patched.setattr(owner, look, not_yet)
            again = make(path, body)
        assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])

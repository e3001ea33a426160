"""A scoring endpoint: what is sent, what comes back, and every way it can fail."""

import json
import pickle
import socket
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from pear.decision import from_endpoint
from pear.decision.adapters import endpoint
from pear.errors import EndpointFailed, InvalidSetting, ModelOutput
from pear.problem import Goal

from .conftest import SPACE, make_problem


def scores_of(body):
    return [record["income"] / 5_000 for record in body["records"]]


def well(body, number):
    return 200, {}, json.dumps({"scores": scores_of(body)}).encode()


def test_records_go_out_in_words_and_scores_come_back(serve, problem, states):
    server = serve(well)
    model = from_endpoint(server.url, problem, batch_size=64, headers={"Authorization": "Bearer x"})
    assert model.score(states).tolist() == (states[:, 0] / 5_000).tolist()
    assert model.name == server.url
    headers, body = server.asked[-1]
    assert body["records"] == SPACE.decode(states)[192:]
    assert headers["Authorization"] == "Bearer x"
    # Probes for the fingerprint and the first look, then 200 people, in batches of 64.
    sizes = [len(b["records"]) for _, b in server.asked]
    assert sizes == [64] * 4 + [64, 64] + [1] * 5 + [4, 15, 40] + [64, 64, 64, 8]
    assert model.rows == 200


def test_class_probabilities_with_their_names(serve, states):
    def reply(body, number):
        rows = [[1 - s, s] for s in scores_of(body)]
        return 200, {}, json.dumps({"probabilities": rows, "classes": ["bad", "good"]}).encode()

    model = from_endpoint(serve(reply).url, make_problem(Goal(favourable=("bad",))))
    assert model.score(states) == pytest.approx(1 - states[:, 0] / 5_000)


def test_class_probabilities_without_names_take_the_last(serve, problem, states):
    def reply(body, number):
        return (
            200,
            {},
            json.dumps({"probabilities": [[0.25, 0.75]] * len(body["records"])}).encode(),
        )

    assert from_endpoint(serve(reply).url, problem).score(states[:1]).tolist() == [0.75]


def test_an_answer_without_end_is_not_read_to_it(serve, problem, states, monkeypatch):
    monkeypatch.setattr(endpoint, "LARGEST_ANSWER", 100_000)

    endless = []

    def reply(body, number):
        return (200, {}, b" " * 300_000) if endless else well(body, number)

    model = from_endpoint(serve(reply).url, problem)
    endless.append(True)
    with pytest.raises(ModelOutput, match="more than 100,000 bytes"):
        model.score(states[:1])


def test_an_answer_that_comes_bit_by_bit_is_given_up(problem, states):
    """Each bit comes in time, all of them never would."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip():
            with suppress(OSError):
                connection, _ = listener.accept()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while True:
                    connection.sendall(b" ")
                    time.sleep(0.02)

        threading.Thread(target=drip, daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(EndpointFailed, match="not complete in time"):
            from_endpoint(address, problem, timeout=0.3, retries=0)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_it_tries_again_waiting_twice_as_long_each_time(serve, problem, states, status):
    waited = []

    def reply(body, number):
        return (status, {}, b"busy") if number in (2, 3, 4) else well(body, number)

    server = serve(reply)
    model = from_endpoint(server.url, problem, retries=3, backoff=0.5, sleep=waited.append)
    assert model.score(states[:1]) == pytest.approx(states[:1, 0] / 5_000)
    assert waited == [0.5, 1.0, 2.0]


def test_it_waits_as_long_as_the_service_asks_up_to_a_limit(serve, problem, states):
    waited = []
    asked = {2: "7", 3: "9999", 4: "soon"}

    def reply(body, number):
        if number in asked:
            return 503, {"Retry-After": asked[number]}, b""
        return well(body, number)

    model = from_endpoint(serve(reply).url, problem, backoff=0.1, sleep=waited.append)
    model.score(states[:1])
    assert waited == pytest.approx([7.0, 30.0, 0.4])


def test_it_gives_up_with_the_status_and_the_services_words(serve, problem):
    server = serve(lambda body, number: (503, {}, b"down for repairs"))
    with pytest.raises(EndpointFailed, match=r"after 3 tries: status 503 .*down for repairs"):
        from_endpoint(server.url, problem, retries=2, sleep=lambda seconds: None)
    assert len(server.asked) == 3


def test_a_refusal_is_not_tried_again(serve, problem):
    server = serve(lambda body, number: (401, {}, b"no key"))
    with pytest.raises(EndpointFailed, match=r"after 1 try: status 401 .*no key"):
        from_endpoint(server.url, problem)
    assert len(server.asked) == 1


def test_a_redirect_is_not_followed(serve, problem):
    other = serve(well)
    server = serve(lambda body, number: (302, {"Location": other.url}, b""))
    with pytest.raises(EndpointFailed, match="status 302"):
        from_endpoint(server.url, problem)
    assert other.asked == []


def test_nobody_listening(problem):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://user:secret@127.0.0.1:{held.getsockname()[1]}/score?key=hidden"
        with pytest.raises(EndpointFailed, match="after 2 tries: ConnectionRefusedError") as failed:
            from_endpoint(url, problem, retries=1, sleep=lambda seconds: None)
    assert "secret" not in str(failed.value)
    assert "hidden" not in str(failed.value)


def test_a_service_that_never_answers_times_out(problem):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/score"
        with pytest.raises(EndpointFailed, match=r"after 1 try: .*timed out"):
            from_endpoint(url, problem, timeout=0.05, retries=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>", "did not answer in JSON"),
        (b"[0.5]", r"must answer with a JSON object \(got a list\)"),
        (b"{}", r"without 'scores' or 'probabilities' \(got the keys none\)"),
        (b'{"score": [1]}', r"got the keys 'score'"),
        (b'{"scores": [0.5]}', r"answered 256 records with scores of shape \(1,\)"),
        (b'{"scores": ["a", "b"]}', "not a list of numbers"),
        (b'{"scores": [[1], [1, 2]]}', "not a list of numbers"),
        (b'{"scores": 0.5}', r"scores of shape \(\)"),
    ],
)
def test_an_answer_that_is_no_scores_is_refused(serve, problem, content, message):
    server = serve(lambda body, number: (200, {}, content))
    with pytest.raises(ModelOutput, match=message):
        from_endpoint(server.url, problem)


def test_nan_from_a_service_is_refused_like_any_other(serve, problem):
    def reply(body, number):
        return 200, {}, json.dumps({"scores": [float("nan")] * len(body["records"])}).encode()

    with pytest.raises(ModelOutput, match=r"returned \[nan\] for row 0"):
        from_endpoint(serve(reply).url, problem)


@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        ("ftp://bank.example/score", {}, "'url' must start with http"),
        ("file:///etc/hostname", {}, "'url' must start with http"),
        ("http://[bank.example/score", {}, "'url' must start with http"),
        ("http://bank.example", {"timeout": 0}, "'timeout' must be at least"),
        ("http://bank.example", {"timeout": "1"}, "'timeout' must be at least"),
        ("http://bank.example", {"retries": -1}, "'retries' must be at least 0"),
        ("http://bank.example", {"batch_size": 0}, "'batch_size' must be at least 1"),
    ],
)
def test_settings_out_of_range(url, settings, message, problem):
    with pytest.raises(InvalidSetting, match=message):
        from_endpoint(url, problem, **settings)


def test_it_travels_to_a_worker_process_and_keeps_its_fingerprint(serve, problem, states):
    server = serve(well)
    model = from_endpoint(server.url, problem)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.score(states), model.score(states))
    assert from_endpoint(server.url, problem).fingerprint == model.fingerprint

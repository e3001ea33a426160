"""kill -9 in the middle: what was acknowledged is there, and every conversation goes on."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from tests.browser.conftest import free_port


def call(method, address, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    request.method = method
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


class Service:
    """``pear serve --demo`` with some web processes on one database."""

    def __init__(self, database, workers):
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "pear", "serve", "--demo", "--database", database]
        command += ["--port", str(self.port), "--searchers", "1", "--workers", str(workers)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.wait()

    def wait(self):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                if call("GET", self.address + "/readyz")[0] == 200:
                    return
            except OSError:
                time.sleep(0.2)
        raise TimeoutError("the service did not become ready")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.slow
def test_every_acknowledged_answer_survives_kill_9(tmp_path):
    database = f"sqlite:///{tmp_path / 'pear.db'}"
    service = Service(database, workers=2)
    acknowledged: dict[str, int] = {}
    people = call("GET", service.address + "/api/v1/people")[1]

    def talk(record):
        made = call("POST", service.address + "/api/v1/conversations", {"record": record})[1]
        link = f"{service.address}/api/v1/links/{made['token']}"
        view = call("GET", link)[1]
        acknowledged[made["token"]] = 0
        while view["stage"] in ("question", "waiting"):
            if view["stage"] == "waiting":
                view = call("GET", link)[1]
                continue
            answer = {"shown": view["shown"], "choice": 0}
            try:
                status, view = call("POST", link + "/answers", answer)
            except OSError:
                return
            assert status == 200
            acknowledged[made["token"]] = view["progress"]["answered"]

    def quietly(record):
        with contextlib.suppress(OSError):
            talk(record)

    threads = [threading.Thread(target=quietly, args=(person,)) for person in people.values()]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 120
    while sum(acknowledged.values()) < 6 and time.monotonic() < end:
        time.sleep(0.02)
    service.kill()
    for thread in threads:
        thread.join()
    assert sum(acknowledged.values()) >= 6

    again = Service(database, workers=1)
    try:
        for token, answered in acknowledged.items():
            link = f"{again.address}/api/v1/links/{token}"
            status, view = call("GET", link)
            assert status == 200
            # One more may be on disk: stored, but killed before the person heard of it.
            assert view["progress"]["answered"] in (answered, answered + 1)
            if view["stage"] == "question":
                answer = {"shown": view["shown"], "choice": 1}
                status, view = call("POST", link + "/answers", answer)
                assert status == 200
    finally:
        again.kill()

"""Tasks on a Ray cluster: the same results as here, though workers die and tasks never end.

All of it on one small cluster of this machine, through Ray Data.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from pear.errors import InvalidRecord, WorkerFailed
from pear.parallel import run_tasks
from pear.portfolio import Everyone, Search, plan_portfolio
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, black_box, people, write

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    # Else a cluster keeps the workers of a killed run for half a minute.
    "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "1",
    # The cluster that is reached by its address, and those who reach it, share a secret.
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
        logging_level="error",
    )  # fmt: skip
    yield
    ray.shutdown()


run = partial(run_tasks, workers=2, cluster="auto")


def square(number):
    return number * number


def die_twice_at_three(folder, number):
    for mark in (folder / "first", folder / "second"):
        if number == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die_always_at_one(folder, number):
    with (folder / f"starts-{number}").open("a") as log:
        log.write("x")
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuse_two(number):
    if number == 2:
        raise InvalidRecord("'age' must be a number (got 'abc' that is a str)")
    return number


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def fail_strangely(number):
    raise Unpicklable("lost", "words")


def note_preparation(folder):
    (folder / f"prepared-{os.getpid()}-{time.monotonic_ns()}").touch()


def prepare_badly():
    raise InvalidRecord("'weights' cannot be read")


def nap(seconds):
    time.sleep(seconds)
    return seconds


def test_a_task_that_lost_its_worker_twice_is_done_again(tmp_path):
    results = run(partial(die_twice_at_three, tmp_path), range(8), ordered=True)
    assert list(results) == [(i, i * i) for i in range(8)]
    assert (tmp_path / "second").exists()


def test_a_task_that_keeps_killing_its_worker_is_named(tmp_path):
    with pytest.raises(WorkerFailed, match="task 1 lost its worker 2 times on the cluster 'auto'"):
        list(run(partial(die_always_at_one, tmp_path), range(3), attempts=2))
    assert (tmp_path / "starts-1").read_text() == "xx"


def test_each_worker_is_prepared_once(tmp_path):
    results = run(square, range(30), initializer=note_preparation, initargs=(tmp_path,))
    assert sorted(results) == [(i, i * i) for i in range(30)]
    assert len(list(tmp_path.glob("prepared-*"))) <= 2


def test_errors_keep_their_words():
    with pytest.raises(InvalidRecord, match="'age' must be a number"):
        list(run(refuse_two, range(5)))
    with pytest.raises(InvalidRecord, match="'weights' cannot be read"):
        list(run(square, range(5), initializer=prepare_badly))
    with pytest.raises(RuntimeError, match="Unpicklable: lost words"):
        list(run(fail_strangely, [0]))


@pytest.mark.parametrize("ordered", [False, True])
def test_tasks_without_end_are_drawn_only_as_fast_as_they_are_worked_off(ordered):
    drawn = 0

    def endless():
        nonlocal drawn
        while True:
            yield 0.0
            drawn += 1

    results = run(nap, endless(), workers=1, ordered=ordered)
    assert [next(results)[1] for _ in range(12)] == [0.0] * 12
    results.close()
    assert drawn <= 12 + 16


def test_no_tasks_give_no_results():
    assert list(run(square, [])) == []


class Deadly:
    """Kills its own process the first two times it is asked for plans."""

    def __init__(self, place):
        self.place = place

    def __call__(self, states):
        if len(states) > 3 and os.getpid() != int((self.place / "parent").read_text()):
            for mark in (self.place / "first", self.place / "second"):
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
        return black_box().score(states)


def test_a_portfolio_whose_workers_are_killed_twice_is_the_same_file(tmp_path):
    table = write(people(200), tmp_path / "people.parquet")
    given = Everyone(WEIGHTS)
    (tmp_path / "parent").write_text(str(os.getpid()))
    deadly = black_box()
    deadly.function = Deadly(tmp_path)
    plan_portfolio(
        PROBLEM, black_box(), table, tmp_path / "here.parquet", given, search=Search(together=16)
    )
    plan_portfolio(
        PROBLEM, deadly, table, tmp_path / "there.parquet", given,
        search=Search(together=16), cluster="auto", workers=2,
    )  # fmt: skip
    assert (tmp_path / "second").exists()
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()
    assert pd.read_parquet(tmp_path / "there.parquet")["row"].tolist() == list(range(200))


KILLED = """
import sys
from pathlib import Path
from pear.portfolio import Everyone, Search, plan_portfolio
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, black_box

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    plan_portfolio(PROBLEM, black_box(), folder / "people.parquet", folder / "plans.parquet",
                   Everyone(WEIGHTS), workers=2, search=Search(together=16), cluster=sys.argv[2],
                   progress=lambda progress: print(progress.done, flush=True))
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def address():
    """Another cluster of this machine, which runs by itself as one elsewhere would."""
    port, client_port = free_port(), free_port()
    folder = tempfile.mkdtemp(prefix="ray-")  # Not pytest's: names of sockets must be short.
    command = [
        str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--num-cpus=2",
        "--include-dashboard=false", f"--port={port}", f"--ray-client-server-port={client_port}",
        "--disable-usage-stats", "--node-ip-address=127.0.0.1",
        f"--temp-dir={folder}",
    ]  # fmt: skip
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as head:
        yield f"ray://127.0.0.1:{client_port}"
        head.terminate()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_run_through_an_address_killed_twice_goes_on(tmp_path, address):
    table = write(people(240), tmp_path / "people.parquet")
    (tmp_path / "run.py").write_text(KILLED)
    begin = [sys.executable, str(tmp_path / "run.py"), str(tmp_path), address]
    for least in (16, 96, None):
        with subprocess.Popen(begin, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as running:
            for line in running.stdout:
                if least is not None and int(line) >= least:
                    running.kill()
                    break
        assert (tmp_path / "plans.parquet").exists() == (least is None)
    plan_portfolio(
        PROBLEM,
        black_box(),
        table,
        tmp_path / "whole.parquet",
        Everyone(WEIGHTS),
        search=Search(together=16),
    )
    assert (tmp_path / "plans.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()

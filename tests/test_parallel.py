"""Many tasks at once: the same results with any number of workers, whatever happens to them."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pear.errors import InvalidRecord, InvalidSetting, MissingExtra, WorkerFailed
from pear.parallel import AHEAD_PER_WORKER, Worker, in_order, run_tasks

_shared = 0


def norm_of_random_matrix(seed: int) -> float:
    matrix = np.random.default_rng(seed).normal(size=(60, 60))
    return float(np.linalg.norm(matrix @ matrix.T, 2))


def die_once(folder: Path, seed: int) -> float:
    """Killed as by the machine itself, the first time that task 3 is tried."""
    marker = folder / f"died-{seed}"
    if seed == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return norm_of_random_matrix(seed)


def die_always(folder: Path, seed: int) -> int:
    with (folder / f"starts-{seed}").open("a") as log:
        log.write("x")
    if seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return seed


def wait_to_be_killed(folder: Path, seed: int) -> float:
    """Says who is at work, and takes long the first time, so that it can be killed."""
    if seed == 2 and not (folder / "pid").exists():
        (folder / "writing").write_text(str(os.getpid()))
        (folder / "writing").rename(folder / "pid")
        time.sleep(60)
    return norm_of_random_matrix(seed)


def exit_quietly(_: int) -> None:
    os._exit(7)


def refuse(value: int) -> int:
    if value == 2:
        raise InvalidRecord("'age' must be a number (got 'abc' that is a str)")
    return value


def remember(value: int) -> None:
    global _shared
    _shared = value


def remember_badly(_: int) -> None:
    raise InvalidRecord("'weights' cannot be read")


def add_remembered(value: int) -> int:
    return value + _shared


def threads_of_linear_algebra(_: int) -> list[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return [pool["num_threads"] for pool in threadpool_info()]


def process_id(_: int) -> int:
    return os.getpid()


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


EXPECTED = [(seed, norm_of_random_matrix(seed)) for seed in range(8)]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_do_not_depend_on_the_number_of_workers(workers):
    assert list(run_tasks(norm_of_random_matrix, range(8), workers=workers, ordered=True)) == (
        EXPECTED
    )


def test_every_task_is_yielded_once_when_the_order_is_free():
    assert sorted(run_tasks(norm_of_random_matrix, range(8), workers=2)) == EXPECTED


def test_what_ends_first_comes_first_unless_order_is_asked_for():
    results = run_tasks(nap, [60.0, 0.0], workers=2)
    assert next(results) == (1, 0.0)
    results.close()
    assert [index for index, _ in run_tasks(nap, [0.3, 0.0], workers=2, ordered=True)] == [0, 1]


def test_a_worker_that_kills_itself_changes_no_result(tmp_path):
    task = partial(die_once, tmp_path)
    assert list(run_tasks(task, range(8), workers=2, ordered=True)) == EXPECTED
    assert (tmp_path / "died-3").exists()


def test_a_worker_killed_from_outside_changes_no_result(tmp_path):
    def kill_when_at_work():
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill_when_at_work)
    killer.start()
    task = partial(wait_to_be_killed, tmp_path)
    assert list(run_tasks(task, range(8), workers=2, ordered=True)) == EXPECTED
    killer.join()


def test_a_task_that_keeps_killing_its_worker_is_named(tmp_path):
    with pytest.raises(WorkerFailed, match=r"task 1 lost its worker 2 times .*SIGKILL.*memory"):
        list(run_tasks(partial(die_always, tmp_path), range(6), workers=2, attempts=2))
    assert (tmp_path / "starts-1").read_text() == "xx"


def test_a_worker_that_exits_is_told_from_one_that_is_killed():
    with pytest.raises(WorkerFailed, match="exit code 7"):
        list(run_tasks(exit_quietly, [0], workers=2, attempts=1))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_task_arrives_as_it_was_raised(workers):
    with pytest.raises(InvalidRecord, match="'age' must be a number"):
        list(run_tasks(refuse, range(5), workers=workers))


@pytest.mark.parametrize("workers", [1, 2])
def test_the_initializer_prepares_every_worker(workers):
    results = run_tasks(
        add_remembered, range(4), workers=workers, initializer=remember, initargs=(10,)
    )
    assert sorted(results) == [(0, 10), (1, 11), (2, 12), (3, 13)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_the_initializer_keeps_its_message(workers):
    with pytest.raises(InvalidRecord, match="'weights' cannot be read"):
        list(run_tasks(abs, [1], workers=workers, initializer=remember_badly, initargs=(1,)))


@pytest.mark.parametrize("workers", [1, 2])
def test_linear_algebra_is_held_to_one_thread(workers):
    for _, threads in run_tasks(threads_of_linear_algebra, range(2), workers=workers):
        assert threads
        assert set(threads) == {1}


def test_one_worker_is_this_process_and_more_are_others():
    assert {pid for _, pid in run_tasks(process_id, range(2), workers=1)} == {os.getpid()}
    assert os.getpid() not in {pid for _, pid in run_tasks(process_id, range(2), workers=2)}


@pytest.mark.parametrize("ordered", [False, True])
def test_a_stream_of_tasks_is_drawn_only_as_fast_as_it_is_worked_off(ordered):
    drawn = 0

    def endless():
        nonlocal drawn
        while True:
            yield 0.5 if drawn == 0 else 0.0
            drawn += 1

    results = run_tasks(nap, endless(), workers=2, ordered=ordered)
    for _ in range(5):
        next(results)
    results.close()
    assert drawn <= 5 + 2 * AHEAD_PER_WORKER + 4


def test_leaving_early_ends_the_workers():
    results = run_tasks(nap, [0.0, 60.0, 60.0], workers=2)
    next(results)
    begun = time.monotonic()
    results.close()
    assert time.monotonic() - begun < 30


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads the process table of Linux")
def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "from pear.parallel import run_tasks\n"
        "import os, pathlib, time\n"
        "def work(folder):\n"
        "    (pathlib.Path(folder) / f'worker-{os.getpid()}').touch()\n"
        "    time.sleep(120)\n"
        "if __name__ == '__main__':\n"
        f"    list(run_tasks(work, [{str(tmp_path)!r}] * 2, workers=2))\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)])
    while len(started := list(tmp_path.glob("worker-*"))) < 2:
        assert parent.poll() is None
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    for worker in started:
        while _runs(int(worker.name.removeprefix("worker-"))):
            time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_no_tasks_give_no_results():
    assert list(run_tasks(abs, [], workers=2)) == []


@pytest.mark.parametrize("setting", [{"workers": 0}, {"attempts": 0}])
def test_a_setting_out_of_range_is_refused(setting):
    with pytest.raises(InvalidSetting, match=f"'{next(iter(setting))}' must be at least 1"):
        run_tasks(abs, [1], **setting)


def test_a_function_that_no_worker_can_import_is_refused_with_the_remedy():
    with pytest.raises(InvalidSetting, match="top level of a module"):
        run_tasks(lambda task: task, [1], workers=2)


def test_in_order_yields_as_soon_as_it_can():
    seen = []

    def results():
        for index in (0, 2, 1):
            seen.append(index)
            yield index, None

    ordered = in_order(results())
    assert next(ordered) == (0, None)
    assert seen == [0]
    assert [index for index, _ in ordered] == [1, 2]


def test_a_cluster_of_unknown_kind_is_refused():
    with pytest.raises(InvalidSetting, match="ray://host:port"):
        next(run_tasks(abs, [1], cluster="kubernetes"))


def test_a_cluster_without_ray_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pear-recourse\[cluster\]"):
        next(run_tasks(abs, [1], cluster="auto"))


def test_an_address_without_its_package_says_what_to_install(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(MissingExtra, match=r"pear-recourse\[cluster\]"):
        next(run_tasks(abs, [1], cluster="ray://nowhere:1"))


class Engine:
    """What a worker makes in these tests."""

    def __init__(self, start):
        if start < 0:
            raise InvalidRecord("'start' must be 0 or more")
        self.calls = start

    def count(self):
        self.calls += 1
        return self.calls

    def sleep(self, seconds):
        time.sleep(seconds)

    def die(self, folder):
        die_once(folder, 3)
        return self.calls

    def leave(self):
        os._exit(7)

    def hand_out(self):
        return threading.Lock()


@pytest.fixture
def engine():
    worker = Worker(partial(Engine, 5), seconds=60)
    yield worker
    worker.stop()


def test_a_worker_remembers_between_calls_and_begins_anew_after_a_death(engine, tmp_path):
    assert [engine.submit("count").result() for _ in range(2)] == [6, 7]
    assert engine.submit("die", tmp_path).result() == 5
    assert (engine.restarts, engine.waiting) == (1, 0)


def test_a_call_that_takes_too_long_is_ended_and_the_next_is_done(engine):
    engine.start().result()
    engine.seconds = 0.2
    with pytest.raises(TimeoutError, match=r"after 0\.2 seconds"):
        engine.submit("sleep", 60).result()
    engine.seconds = 60
    assert engine.submit("count").result() == 6


def test_what_a_worker_cannot_do_is_told(engine):
    with pytest.raises(AttributeError, match="fly"):
        engine.submit("fly").result()
    with pytest.raises(TypeError, match="pickle"):
        engine.submit("hand_out").result()
    with pytest.raises(WorkerFailed, match=r"lost its worker 2 times \(exit code 7"):
        engine.submit("leave").result()
    assert engine.submit("count").result() == 6
    unprepared = Worker(partial(Engine, -1))
    for begun in (unprepared.start(), unprepared.submit("count")):
        with pytest.raises(InvalidRecord, match="'start' must be 0 or more"):
            begun.result()
    unprepared.stop()


def test_stopping_ends_what_a_worker_is_at(engine):
    engine.start().result()
    asleep, behind = engine.submit("sleep", 60), engine.submit("count")
    while not asleep.running():
        time.sleep(0.01)
    engine.stop()
    with pytest.raises(WorkerFailed):
        asleep.result()
    assert behind.cancelled()

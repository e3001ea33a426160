"""How does the service hold up: many people at once, and kill -9 in the middle?

Load: people arrive over one thinking time, then each answers question after question
through the API, thinking about that long in between (uniformly half to one and a half).
Answer-to-question is the time from sending an answer to holding the next question; the
answer is on disk by then. Refusals for backpressure (429) are counted apart and sent again
when the service says so. The peer in the same run is the engine alone, called in this
process without network, database or neighbours.

Crash: people answer without thinking; the whole service is killed with SIGKILL and started
again on the same database. An acknowledged answer that is not there is lost.

``python benchmarks/service.py --json results/bench/service.json [--quick]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np


class Service:
    """``pear serve --demo`` as a process group of its own."""

    def __init__(self, database: str, searchers: int, workers: int) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "pear", "serve", "--demo", "--port", str(port)]
        command += ["--database", database, "--searchers", str(searchers)]
        command += ["--workers", str(workers), "--log-level", "error"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if b"with the key" in line:
                self.key = line.decode().split()[-1]
                break
        self._wait()

    def _wait(self, seconds: float = 120.0) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if httpx.get(self.address + "/readyz").status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.1)
        raise TimeoutError("the service did not become ready")

    def processor_seconds(self) -> float:
        """Processor time of all processes of the service so far."""
        total = 0.0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.process.pid:
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return total

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Tally:
    """What happened to everyone."""

    seconds: list[float] = field(default_factory=list)
    questions: list[int] = field(default_factory=list)
    errors: int = 0
    refused: int = 0
    acknowledged: dict[str, int] = field(default_factory=dict)


async def patiently(
    client: httpx.AsyncClient, tally: Tally, method: str, path: str, **content: Any
):
    """Send a request, and again after each refusal; its answer."""
    while True:
        answer = await client.request(method, path, **content)
        if answer.status_code not in (429, 503):
            return answer
        tally.refused += 1
        await asyncio.sleep(float(answer.headers["Retry-After"]))


async def served(client: httpx.AsyncClient, tally: Tally, path: str, answer: httpx.Response):
    """What a person sees, once they no longer wait in the queue."""
    view = answer.json()
    while view.get("stage") == "waiting":
        await asyncio.sleep(float(answer.headers["Retry-After"]))
        answer = await patiently(client, tally, "GET", path)
        view = answer.json()
    return view


async def person(
    client: httpx.AsyncClient,
    key: str,
    record: dict[str, Any],
    think: float,
    seed: int,
    tally: Tally,
) -> None:
    """One person from the link to the plan."""
    rng = np.random.default_rng(seed)
    await asyncio.sleep(rng.uniform(0, think))
    try:
        made = await patiently(
            client,
            tally,
            "POST",
            "/api/v1/conversations",
            json={"record": record},
            headers={"Authorization": f"Bearer {key}"},
        )
        token = made.json()["token"]
        tally.acknowledged[token] = 0
        path = f"/api/v1/links/{token}"
        answer = await patiently(client, tally, "GET", path)
        view = await served(client, tally, path, answer)
        while answer.status_code == 200 and view["stage"] == "question":
            await asyncio.sleep(rng.uniform(0.5, 1.5) * think)
            body = {
                "shown": view["shown"],
                "choice": int(rng.integers(len(view["question"]["plans"]))),
            }
            began = time.perf_counter()
            answer = await patiently(client, tally, "POST", path + "/answers", json=body)
            view = await served(client, tally, path, answer)
            tally.seconds.append(time.perf_counter() - began)
            if answer.status_code == 200:
                tally.acknowledged[token] = view["progress"]["answered"]
        if answer.status_code != 200 or view["stage"] != "plan":
            tally.errors += 1
        else:
            tally.questions.append(view["progress"]["answered"])
    except (httpx.HTTPError, KeyError, ValueError):
        tally.errors += 1


def refused_people(n: int) -> list[dict[str, Any]]:
    """Refused applicants of the loan book."""
    from pear.datasets import loan_book_classifier, loan_book_problem, loan_book_table

    problem = loan_book_problem()
    table = loan_book_table(4 * n + 50, seed=11).drop(columns="approved")
    states = problem.space.encode(table)
    refused = states[~loan_book_classifier(problem).favourable(states)]
    records: list[dict[str, Any]] = problem.space.decode(refused[:n])
    return records


def engine_alone(records: list[dict[str, Any]]) -> list[float]:
    """Seconds from answer to question of the engine by itself."""
    from pear.elicitation.says import Answered, read_choice
    from pear.service.engine import Case, make_engine
    from pear.service.settings import Settings

    engine = make_engine(Settings(demo=True))
    seconds = []
    for number, record in enumerate(records):
        case = Case(str(number), number, record)
        question = engine.look(case).standing.question
        state = tuple(engine.problem.state(record).tolist())
        while question is not None:
            moves = tuple(plan.moves for plan in question.plans)
            said = Answered(read_choice(number % 2, len(moves)), state, moves)
            case = replace(case, said=(*case.said, said))
            began = time.perf_counter()
            question = engine.look(case).standing.question
            seconds.append(time.perf_counter() - began)
    return seconds


async def everyone(service: Service, records: list[Any], think: float, tally: Tally) -> float:
    """All conversations at once; seconds until the last one ended."""
    limits = httpx.Limits(max_connections=len(records) + 10)
    async with httpx.AsyncClient(base_url=service.address, timeout=120.0, limits=limits) as client:
        began = time.perf_counter()
        await asyncio.gather(
            *(person(client, service.key, r, think, i, tally) for i, r in enumerate(records))
        )
        return time.perf_counter() - began


def measure_load(people: int, think: float, database: str, workers: int) -> dict[str, float]:
    """Many people at once."""
    records = refused_people(people)
    alone = float(np.median(engine_alone(records[:12])))
    service = Service(database, searchers=max(1, 2 // workers), workers=workers)
    tally = Tally()
    try:
        before = service.processor_seconds()
        total = asyncio.run(everyone(service, records, think, tally))
        used = service.processor_seconds() - before
    finally:
        service.kill()
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
        f"of each conversation counted in; {used / total:.2f} processors busy on average"
    )
    counts = np.array(tally.questions)
    print(
        f"questions per person: median {np.median(counts):.0f}, "
        f"{np.mean((counts >= 3) & (counts <= 5)):.0%} had 3 to 5, most {counts.max()}"
    )
    return {
        "load.people": people,
        "load.think_seconds": think,
        "load.answers": len(milliseconds),
        "load.answers_per_second": len(milliseconds) / total,
        "load.median_ms": float(median),
        "load.p95_ms": float(p95),
        "load.errors": tally.errors,
        "load.refusals": tally.refused,
        "load.processor_ms_per_answer": 1000 * used / len(milliseconds),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="40 people who think for 4 seconds")
    parser.add_argument("--people", type=int)
    parser.add_argument("--think", type=float, help="seconds per question")
    parser.add_argument("--workers", type=int, default=1, help="web processes")
    parser.add_argument("--database", help="an empty PostgreSQL database in place of SQLite")
    options = parser.parse_args()
    people = options.people or (40 if options.quick else 200)
    think = options.think or (4.0 if options.quick else 20.0)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        load = options.database or f"sqlite:///{folder}/load.db"
        figures |= measure_load(people, think, load, options.workers)
        figures |= measure_crash(12 if options.quick else 40, f"sqlite:///{folder}/crash.db")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

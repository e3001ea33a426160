"""The service as a process of its own, and the crowds that the benchmarks send to it."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np


class Service:
    """``pear serve`` as a process group of its own: the demonstration, or another problem."""

    def __init__(
        self,
        database: str,
        searchers: int = 1,
        workers: int = 1,
        *options: str,
        problem: Sequence[str] = ("--demo",),
        files: int | None = None,
    ) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.key = "pear_a-key-for-benchmarks"
        command = [sys.executable, "-m", "pear", "serve", *problem, "--port", str(port)]
        command += ["--database", database, "--searchers", str(searchers), *options]
        command += ["--workers", str(workers), "--log-level", "error", "--demo-key", self.key]

        def few_files() -> None:
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, start_new_session=True, preexec_fn=few_files
        )
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


async def everyone(
    service: Service,
    records: list[Any],
    think: float,
    tally: Tally,
    *,
    answers: float = float("inf"),
    seconds: float = float("inf"),
) -> float:
    """All conversations at once; seconds until the last one ended, or there is enough of it."""
    limits = httpx.Limits(max_connections=len(records) + 10)
    async with httpx.AsyncClient(base_url=service.address, timeout=120.0, limits=limits) as client:
        began = time.perf_counter()
        crowd = asyncio.gather(
            *(person(client, service.key, r, think, i, tally) for i, r in enumerate(records))
        )
        while not crowd.done():
            await asyncio.sleep(0.05)
            if len(tally.seconds) >= answers or time.perf_counter() - began >= seconds:
                crowd.cancel()
                break
        with suppress(asyncio.CancelledError):
            await crowd
        return time.perf_counter() - began


@contextmanager
def running(*arguments: Any, **options: Any) -> Iterator[Service]:
    """A service until the block ends."""
    service = Service(*arguments, **options)
    try:
        yield service
    finally:
        service.kill()

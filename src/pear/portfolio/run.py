"""How is a whole table of people planned: streamed, resumable, the same on any machine?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pear.decision import BlackBox
from pear.errors import InvalidData, InvalidSetting
from pear.parallel import run_tasks
from pear.portfolio.journal import COUNTS, Journal
from pear.portfolio.output import BAD_SCHEMA, SCHEMA, assemble, check_output
from pear.portfolio.places import check_free, writing
from pear.portfolio.weights import Everyone, Weights, together, weights_table
from pear.portfolio.worker import Model, ModelPlace, Search, load_black_box, plan_chunk, prepare
from pear.problem import Problem
from pear.problem.people import id_column, ids_of, refuse_same_ids
from pear.problem.tables import Chunk, Source, open_table, require_columns

CHUNK = 1_000
"""Rows of a chunk: what is lost at most when a run is killed, and what a worker gets at a time."""


@dataclass(frozen=True)
class Summary:
    """A finished run, in numbers.

    ``rows`` were read; ``people`` of them understood, of whom ``refused`` were refused by the
    model and ``planned`` of those have a plan. ``bounded`` of the plans are not proved to be the
    cheapest; of those without one, ``unknown`` are not proved to have none. ``bad`` rows stand
    in ``bad_file``, if any; some of them are ``joined_lines`` lines read as one row.
    ``resumed`` rows had been done by an earlier, unfinished run. Of ``conversations`` that were
    given, ``nameless`` do not say whose they are; what ``said`` people said in them was used.
    """

    rows: int
    people: int
    refused: int
    planned: int
    bad: int
    resumed: int
    output: Path
    bad_file: Path | None
    bounded: int = 0
    unknown: int = 0
    said: int = 0
    joined_lines: int = 0
    conversations: int = 0
    nameless: int = 0

    @property
    def verdicts(self) -> dict[str, int]:
        """What is proved of the refused: how many have which verdict."""
        return {
            "optimal": self.planned - self.bounded,
            "bounded": self.bounded,
            "infeasible": self.refused - self.planned - self.unknown,
            "unknown": self.unknown,
        }

    def words(self) -> str:
        """The summary as sentences."""
        text = (
            f"{self.rows:,} rows: {self.people - self.refused:,} approved already, "
            f"{self.refused:,} refused, {self.planned:,} of them with a plan. "
            f"{self._proved()}Plans are in {self.output}."
        )
        if self.conversations:
            text += self._talks()
        if self.resumed:
            text += f" {self.resumed:,} rows were done before."
        if self.bad_file is not None:
            text += f" {self.bad:,} rows could not be used: see {self.bad_file}."
        if self.joined_lines:
            text += (
                f" Beware: {self.joined_lines:,} lines are in bad rows of several lines, joined by "
                "a quote left open; close the quotes and plan again, or these people are lost."
            )
        return text

    def _proved(self) -> str:
        counts = self.verdicts
        proved = [_said(counts["optimal"], "plan is", "plans are each", "the cheapest there is")]
        proved += [_said(counts["infeasible"], "person has", "people have", "none")]
        open_ = [
            _said(self.bounded, "plan", "plans", "may not be the cheapest (bounded)"),
            _said(self.unknown, "person", "people", "without one may have one (unknown)"),
        ]
        text = "".join(
            f"{word}: {', '.join(part for part in parts if part)}. "
            for word, parts in (("Proved", proved), ("Not proved", open_))
            if any(parts)
        )
        return text + "A higher --max-rows tells more. " * any(open_)

    def _talks(self) -> str:
        text = f" Of {_said(self.conversations, 'conversation', 'conversations', 'given')}, "
        if self.nameless:
            text += f"{self.nameless:,} without 'id' do not say whose they are and are not used; "
        if self.said:
            people = _said(self.said, "person", "people", "of the table said")
            return text + f"what {people} in them was used."
        return text + (
            "none says anything of a person of the table: everybody was planned under the prior. "
            "Their 'id' must be the one of the column 'id', or of the one named by --id."
        )


def _said(count: int, one: str, many: str, what: str) -> str:
    return f"{count:,} {one if count == 1 else many} {what}" if count else ""


@dataclass(frozen=True)
class Progress:
    """How far a run is: ``done`` of about ``rows`` rows, ``resumed`` of them by an earlier run."""

    done: int
    rows: int
    resumed: int
    planned: int
    bad: int


def plan_portfolio(
    problem: Problem,
    model: Model,
    people: str | Path,
    output: str | Path,
    weights: Weights | str | Path,
    *,
    id_name: str | None = None,
    search: Search = Search(),
    chunk: int = CHUNK,
    workers: int | None = None,
    cluster: str | None = None,
    restart: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """A certified plan for every refused person of a table, written to ``output``.

    Parameters
    ----------
    model
        A black box that can be pickled, or a :class:`ModelPlace`; each worker has its own.
    people, output
        CSV or Parquet files, or folders of them. Rows that cannot be used go to a CSV beside
        the output, ``….bad.csv``, with their number and the reason.
    weights
        :class:`Everyone`, or a table with a row of weights per person in the same order.
    chunk
        Rows that are done at a time; plans do not depend on the number of workers.
    restart
        Discard an unfinished run, and an output that is there already.
    """
    if chunk < 1:
        raise InvalidSetting(f"'chunk' must be at least 1 row (got {chunk!r})")
    target = Path(output)
    check_output(target)
    tables = [people, *([weights] if isinstance(weights, (str, Path)) else [])]
    check_free(target, tuple(Path(table) for table in tables), restart)
    source = open_table(people)
    require_columns(source, problem.space)
    if not source.rows:
        raise InvalidData(f"'{source.path}' has columns but no rows; nothing to plan")
    name = id_column(source, problem.space, id_name)
    refuse_same_ids(source, problem.space, name)
    given: Weights = (
        weights_table(weights, problem, name) if isinstance(weights, (str, Path)) else weights
    )
    if isinstance(given, Everyone) and given.personal and name is None:
        raise InvalidSetting(
            f"'{source.path}' has no column 'id' that would say which conversation is whose; "
            "name the column with --id"
        )
    black_box = load_black_box(model, problem)
    _check_settings(problem, black_box, given, search, workers)
    journal = Journal(
        beside(target, ".parts"),
        {
            "people": source.digest,
            "weights": given.digest,
            "problem": problem.fingerprint,
            "model": _identity(model, black_box),
            "search": asdict(search),
            "id column": name,
            "chunk size": chunk,
            "columns of the plans": SCHEMA.names,
        },
    )
    try:
        journal.begin(restart)
        resumed = journal.total("rows")
        initargs = (problem, model, search, name)
        order = _run(journal, source, given, initargs, chunk, workers, cluster, progress)
        with writing(target):
            summary = _finish(journal, order, target, resumed)
    finally:
        journal.close()
    if isinstance(given, Everyone):
        return replace(summary, conversations=given.conversations, nameless=given.nameless)
    return summary


def _check_settings(
    problem: Problem, black_box: BlackBox, weights: Weights, search: Search, workers: int | None
) -> None:
    """Refuse what no worker could begin with, before anything is written."""
    if workers is not None and workers < 1:
        raise InvalidSetting(
            f"'workers' must be at least 1 (got {workers!r}); leave it out for all cores"
        )
    search.planner(problem, black_box)
    if isinstance(weights, Everyone):
        weights.check(problem)


def _identity(model: Model, black_box: BlackBox) -> str:
    """What the model does on probes and, where it is a file, its content: small changes count."""
    fingerprint = black_box.fingerprint
    if isinstance(model, ModelPlace) and Path(model.place).is_file():
        return f"{fingerprint} {sha256(Path(model.place).read_bytes()).hexdigest()}"
    return fingerprint


def _run(
    journal: Journal,
    source: Source,
    weights: Weights,
    initargs: tuple[Any, ...],
    size: int,
    workers: int | None,
    cluster: str | None,
    progress: Callable[[Progress], None] | None,
) -> list[int]:
    """Do the chunks that are not done yet; the numbers of all chunks, in order."""
    sizes: dict[int, int] = {}
    order: list[int] = []
    resumed = journal.total("rows")
    problem, _, _, id_name = initargs

    def tasks() -> Iterator[tuple[Chunk, Any]]:
        for piece, own in together(source, weights, size):
            order.append(piece.number)
            if piece.number not in journal.done:
                sizes[piece.number] = piece.size
                if isinstance(own, Everyone) and own.personal:
                    own = own.only(ids_of(piece, problem.space, id_name))
                yield piece, own

    def report() -> None:
        if progress is not None:
            done = journal.total("rows")
            planned, bad = journal.total("planned"), journal.total("bad")
            progress(Progress(done, max(source.rows, done), resumed, planned, bad))

    report()
    for _, result in run_tasks(
        plan_chunk,
        tasks(),
        workers=workers,
        cluster=cluster,
        initializer=prepare,
        initargs=initargs,
    ):
        journal.add(result, sizes.pop(result.chunk))
        report()
    return order


def _finish(journal: Journal, chunks: list[int], target: Path, resumed: int) -> Summary:
    bad_file = beside(target, ".bad.csv")
    bad_file.unlink(missing_ok=True)
    if journal.total("bad"):
        parts = [journal.bad(number) for number in chunks if journal.done[number]["bad"]]
        assemble(parts, bad_file, BAD_SCHEMA)
    assemble([journal.plans(number) for number in chunks], target, SCHEMA)
    counts = {key: journal.total(key) for key in COUNTS}
    journal.end()
    return Summary(
        **counts, resumed=resumed, output=target, bad_file=bad_file if counts["bad"] else None
    )


def beside(output: Path, ending: str) -> Path:
    """A path beside the output: ``plans.parquet`` and ``.bad.csv`` give ``plans.bad.csv``.

    >>> beside(Path("plans.parquet"), ".bad.csv").name, beside(Path("plans"), ".parts").name
    ('plans.bad.csv', 'plans.parts')
    """
    return output.with_name(output.stem + ending)

"""How are all people of a table planned: streamed, resumable, the same on any machine?

:func:`recourse` plans a DataFrame at once, :func:`plan_portfolio` files of any size. A worker
loads the model once, and plans a group of people in lockstep by the exact planner, so that the
states of many people go to the model in one call. What a group's result depends on travels with
it, so plans depend neither on the number of workers nor on the groups.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.decision import BlackBox, load_model
from pear.decision.table_checks import (
    check_plans_on_table,
    compare_with_labels,
    raw_cells_doubt,
)
from pear.errors import InvalidData, InvalidSetting, ModelOutput, ModelWarning
from pear.parallel import run_tasks
from pear.planning.exact import ExactPlanner
from pear.planning.planner import one_per_person
from pear.planning.reasons import explain_plans
from pear.portfolio.beliefs import (
    SAMPLES,
    Everyone,
    GroupWeights,
    Weights,
    prior_draws,
    weights_table,
    with_people,
)
from pear.portfolio.ledger import (
    COUNTS,
    Done,
    Ledger,
    Progress,
    Summary,
    check_free,
    check_output,
)
from pear.portfolio.plans import SCHEMA, bad_table, beside, plans_frame, plans_table
from pear.preferences import default_prior
from pear.problem import NO_LIMITS, Limits, Plan, Problem
from pear.problem.features import PeopleLike
from pear.problem.files import load_problem, model_location
from pear.tables.people import (
    NO_FEATURES,
    ROWS_AT_A_TIME,
    People,
    id_column,
    ids_of,
    people_of,
    refuse_same_ids,
)
from pear.tables.reading import Chunk, Source, open_table, require_columns, typed

FIRST = 4
"""People of the first group: somebody is done, and seen to be, in the first second."""


@dataclass(frozen=True)
class ModelPlace:
    """A model to be loaded where it is used: a file, an address or several, not the model itself.

    ``place`` and ``options`` are what :func:`load_model` takes.
    """

    place: str | Sequence[str]
    options: dict[str, Any] = field(default_factory=dict)

    def load(self, problem: Problem) -> BlackBox:
        """The model, loaded now."""
        return load_model(self.place, problem, **self.options)

    @property
    def files(self) -> list[Path]:
        """The files it is kept in; none for an address."""
        places = [self.place] if isinstance(self.place, str) else self.place
        parts = [[*sorted(Path(one).glob("*.*")), Path(one)] for one in places]
        return [path for part in parts for path in part if path.is_file()]


Model = BlackBox | ModelPlace


@dataclass(frozen=True)
class Search:
    """How plans are searched: the settings of :class:`ExactPlanner`.

    ``together`` people are searched in lockstep, sent to a worker and kept at a time: more of them
    means fewer and larger calls of the model, for models that are slow to start, and more memory.
    """

    max_length: int | None = None
    max_rows: int = 1_000_000
    max_changes_per_feature: int = 1
    together: int = 64

    def __post_init__(self) -> None:
        if self.together < 1:
            raise InvalidSetting(f"'together' must be at least 1 (got {self.together!r})")

    def groups(self) -> Iterator[int]:
        """How many people are done at a time: few at first."""
        size = min(FIRST, self.together)
        while True:
            yield size
            size = min(2 * size, self.together)

    def planner(self, problem: Problem, black_box: BlackBox) -> ExactPlanner:
        """The planner with these settings."""
        return ExactPlanner(
            problem,
            black_box,
            max_length=self.max_length,
            max_rows=self.max_rows,
            max_changes_per_feature=self.max_changes_per_feature,
        )


def load_black_box(model: Model, problem: Problem) -> BlackBox:
    """The model itself, loaded if it is only named."""
    return model.load(problem) if isinstance(model, ModelPlace) else model


def plan_portfolio(
    problem: Problem,
    model: Model,
    people: str | Path,
    output: str | Path,
    weights: Weights | str | Path,
    *,
    id_name: str | None = None,
    search: Search = Search(),
    workers: int | None = None,
    cluster: str | None = None,
    restart: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """A certified plan for every refused person of a table, written to ``output``.

    Whoever is done is kept beside the output until all are: a run that ended early, by Ctrl-C
    or a kill, goes on when it is started again.

    Parameters
    ----------
    problem
        What people can change, and what decision they need.
    model
        A black box that can be pickled, or a :class:`ModelPlace`; each worker has its own.
    people, output
        CSV or Parquet files, or folders of them. Rows that cannot be used go to a CSV beside
        the output, ``….bad.csv``, with their number and the reason.
    weights
        :class:`Everyone`, or a table with a row of weights per person in the same order.
    id_name
        The column that names people; left out: ``id``, where there is one.
    search
        How each person is searched for.
    workers, cluster
        Processes here, left out one per core; or a cluster of Ray, by its address.
    restart
        Discard an unfinished run, and an output that is there already.
    progress
        Called as groups of people are done.

    Returns
    -------
    Summary
        How many were planned for, what was proven, and what it took.

    Raises
    ------
    InvalidData, InvalidSetting
        Before anything is written, where the table, the weights or the settings do not fit.
    KeyboardInterrupt
        After Ctrl-C, once the people being searched are done; at once after a second one.

    Examples
    --------
    >>> import tempfile
    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> folder, problem = Path(tempfile.mkdtemp()), loan_book_problem()
    >>> pd.DataFrame(loan_book_people().values()).to_csv(folder / "people.csv", index=False)
    >>> summary = plan_portfolio(
    ...     problem, loan_book_classifier(problem), folder / "people.csv", folder / "plans.csv",
    ...     Everyone(problem.usual_weights), workers=1,
    ... )
    >>> summary.refused == len(pd.read_csv(folder / "plans.csv"))
    True
    """
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
    if isinstance(given, Everyone):
        given = replace(given, table=source.digest)
    if isinstance(given, Everyone) and given.needs_ids and name is None:
        raise InvalidSetting(
            f"'{source.path}' has no column 'id' that would say which conversation is whose; "
            "name the column with --id"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        black_box = load_black_box(model, problem)
    _check_settings(problem, black_box, given, search, workers)
    ledger = Ledger(
        beside(target, ".parts"),
        {
            "people": source.digest,
            "weights": given.digest,
            "problem": problem.fingerprint,
            "model": _identity(model, black_box),
            "search": asdict(search),
            "id column": name,
            "columns of the plans": SCHEMA.names,
        },
    )
    stopping = threading.Event()

    def groups() -> Iterator[tuple[Chunk, Any]]:
        for chunk, own in with_people(source, given, search.groups):
            if stopping.is_set():
                return
            if chunk.number not in ledger.done:
                if isinstance(own, Everyone) and own.personal:
                    own = own.only(chunk.frame.index, ids_of(chunk, problem.space, name))
                yield chunk, own

    def report() -> None:
        if progress is not None:
            done, planned, bad = (ledger.total(key) for key in ("rows", "planned", "bad"))
            rows = max(source.rows, done)
            progress(Progress(done, rows, resumed, planned, bad, stopping.is_set()))

    try:
        ledger.begin(restart)
        resumed = ledger.total("rows")
        report()
        with _finishing_on_interrupt(stopping, report):
            for _, done in run_tasks(
                plan_group,
                groups(),
                workers=workers,
                cluster=cluster,
                initializer=prepare,
                initargs=(problem, model, search, name),
            ):
                ledger.add(done)
                report()
        if stopping.is_set():
            raise KeyboardInterrupt
        bad_file = beside(target, ".bad.csv")
        ledger.finish(target, bad_file)
    finally:
        ledger.close()
    counts = {key: ledger.total(key) for key in COUNTS}
    compared, doubts = _beside_table(black_box, source)
    summary = Summary(
        **counts,
        resumed=resumed,
        output=target,
        bad_file=bad_file if counts["bad"] else None,
        beside_labels=compared,
        doubts=(*black_box.doubts, *doubts),
    )
    if isinstance(given, Everyone):
        return replace(summary, conversations=given.conversations, nameless=given.nameless)
    return summary


def _beside_table(black_box: BlackBox, source: Source) -> tuple[str, list[str]]:
    """Scores beside the decisions in the table, if it has them, and what is wrong with them."""
    chunk, target = next(source.chunks(ROWS_AT_A_TIME)), black_box.goal.target
    people = people_of(chunk, black_box.space, None)
    odd = [doubt] if (doubt := raw_cells_doubt(black_box, chunk.frame, people)) else []
    if not target or target not in source.columns:
        return "", odd
    column = typed(chunk.frame[[target]], NO_FEATURES)[target]
    labels = column[column.index.isin(people.rows)].tolist()
    compared = compare_with_labels(black_box, people.states, labels, target)
    if isinstance(compared, str):
        return "", [*odd, compared]
    return compared.words(), [*odd, *compared.doubts()]


@contextmanager
def _finishing_on_interrupt(
    stopping: threading.Event, report: Callable[[], None]
) -> Iterator[None]:
    """The first Ctrl-C sets ``stopping``; the second does what one did before."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def stop(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        stopping.set()
        report()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    files = model.files if isinstance(model, ModelPlace) else []
    contents = [sha256(path.read_bytes()).hexdigest() for path in files]
    return " ".join([black_box.fingerprint, *contents])


@dataclass(frozen=True)
class _Prepared:
    planner: ExactPlanner
    id_name: str | None
    together: int


_prepared: _Prepared | None = None


def prepare(problem: Problem, model: Model, search: Search, id_name: str | None) -> None:
    """Run once in every worker: load the model, build the planner."""
    global _prepared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # They are told once, in the summary.
        planner = search.planner(problem, load_black_box(model, problem))
    _prepared = _Prepared(planner, id_name, search.together)


def prepared() -> _Prepared:
    """What this worker was prepared with."""
    if _prepared is None:
        raise InvalidSetting("a worker must be prepared before it plans; call prepare(...) first")
    return _prepared


def plan_group(task: tuple[Chunk, Any]) -> Done:
    """Plans for a group of people; rows that cannot be planned are listed with the reason."""
    chunk, weights_of = task
    place = prepared()
    people = people_of(chunk, place.planner.problem.space, place.id_name)
    given: GroupWeights = weights_of.of(people.rows, people.ids)
    usable = np.array([i for i in range(len(people)) if i not in given.without], np.intp)
    found, failed = _plan(place.planner, people, given, usable)
    without = ((int(people.rows[i]), people.ids[i], why) for i, why in given.without.items())
    bad = [*people.bad, *without, *failed]
    kept, plans = list(found), list(found.values())
    verdicts = Counter(plan.certificate.verdict for plan in plans)
    counts = {
        "rows": chunk.size,
        "people": len(plans),
        "refused": sum(1 for plan in plans if plan.steps or not plan.success),
        "planned": sum(1 for plan in plans if plan.steps),
        "bounded": verdicts["bounded"],
        "unknown": verdicts["unknown"],
        "said": sum(1 for position in kept if given.said[position]),
        "bad": len(bad),
        "joined_lines": sum(b.lines for b in chunk.broken.values() if b.lines > 1),
    }
    plans_made = plans_table(people, given.stated, plans, kept)
    return Done(chunk.number, plans_made, bad_table(bad, chunk), counts)


def _plan(
    planner: ExactPlanner, people: People, given: GroupWeights, these: Any
) -> tuple[dict[int, Plan], list[tuple[int, str, str]]]:
    """Plans with reasons, by position. Where the model fails on somebody, the others are
    planned alone."""
    if not len(these):
        return {}, []
    try:
        limits = [given.limits[i] for i in these]
        plans = planner.plan_many(people.states[these], given.weights[these], limits)
        explained = explain_plans(planner.problem, planner.black_box, plans)
        return {i: one.plan for i, one in zip(these.tolist(), explained, strict=True)}, []
    except ModelOutput as error:
        if len(these) == 1:
            [only] = these.tolist()
            return {}, [(int(people.rows[only]), people.ids[only], str(error))]
    middle = len(these) // 2
    left, bad_left = _plan(planner, people, given, these[:middle])
    right, bad_right = _plan(planner, people, given, these[middle:])
    return {**left, **right}, bad_left + bad_right


def read_problem_and_model(
    path: Path, models: str | Sequence[str] | None, **options: Any
) -> tuple[Problem, ModelPlace]:
    """The problem of a file and where its models are: as asked for, else as the file states."""
    problem = load_problem(path)
    place = models or model_location(problem, path)
    if place is None:
        raise InvalidSetting(
            f"'{path}' names no model; give one with --model (a .onnx or .skops file, or an "
            "http(s) address), or write it into the problem"
        )
    return problem, ModelPlace(place, options)


def recourse(
    model: Any,
    people: PeopleLike,
    problem: Problem,
    *,
    weights: pd.DataFrame | Mapping[str, float] | Floats | None = None,
    limits: Limits | Sequence[Limits] = NO_LIMITS,
    max_length: int | None = None,
    max_rows: int = 1_000_000,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """The cheapest plan for each of n people, as a table: what to change, in which order, and why
    it can be relied on.

    Parameters
    ----------
    model
        Whatever :func:`load_model` takes: a fitted estimator or pipeline, a torch module, a
        function of states, a file, an address, or a :class:`BlackBox`.
    people
        A DataFrame, one of its rows, a record, or a list of records. A DataFrame keeps its index
        and may have further columns.
    problem
        What people can change, and what decision they need.
    weights
        What changes cost them: a number for each weight by name, a vector ``(p,)``, a row per
        person ``(n, p)`` (an array, or a DataFrame with the index of ``people``), or samples
        ``(n, s, p)``. Left out: draws of the prior that the problem implies, as ``pear plan``
        does, and costs are means over them.
    limits
        What they cannot do: everybody's, or one per person.
    max_length, max_rows
        As for :class:`ExactPlanner`.
    progress
        Called after each group of people with how many are done and how many there are.

    Returns
    -------
    DataFrame
        A row per person: ``decision`` (``approved`` already, or ``refused``), ``success``,
        ``verdict`` (see :class:`Certificate`), ``cost``, ``lower_bound``, ``length``, ``steps``
        in words, ``score_before`` and ``score_after``; then, for every feature that some action
        changes, ``NAME_before`` and ``NAME_after``. Where there is no plan, cost and steps are
        missing and nothing differs.

    Raises
    ------
    InvalidRecord
        Where somebody does not fit the problem, naming the row, the feature and the value.
    ModelError
        Where the model cannot be used.

    Examples
    --------
    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> problem = loan_book_problem()
    >>> people = pd.DataFrame(loan_book_people()).T.loc[["Amina"]]
    >>> table = recourse(loan_book_classifier(problem), people, problem)
    >>> table[["decision", "verdict", "length"]]
          decision  verdict  length
    Amina  refused  optimal       3
    """
    black_box = load_model(model, problem)
    states = problem.states(people)
    index = people.index if isinstance(people, pd.DataFrame) else pd.RangeIndex(len(states))
    own = _weights(weights, problem, index)
    everyones = one_per_person(limits, len(states))
    search = Search(max_length, max_rows)
    planner = search.planner(problem, black_box)
    plans: list[Plan] = []
    for first in range(0, len(states), search.together):
        group = slice(first, first + search.together)
        found = planner.plan_many(states[group], own[group], everyones[group])
        plans += found
        if progress is not None:
            progress(len(plans), len(states))
    if isinstance(people, pd.DataFrame):
        check_plans_on_table(black_box, people, states, plans)
    return plans_frame(plans, problem, index)


def _weights(given: Any, problem: Problem, index: pd.Index) -> Floats:
    """Samples of weights for each of n people, ``(n, s, p)``."""
    if given is None:
        draws = prior_draws(default_prior(problem), SAMPLES)
        return np.broadcast_to(draws, (len(index), *draws.shape))
    if isinstance(given, pd.DataFrame):
        absent = [name for name in problem.weight_names if name not in given.columns]
        strangers = index.difference(given.index)
        if absent or len(strangers) or not given.index.is_unique:
            what = f"the columns {', '.join(absent)}" if absent else "one row per person"
            raise InvalidSetting(
                f"the table of weights must have {what}; its columns are the problem's weights "
                f"({', '.join(problem.weight_names)}), its index that of the people"
            )
        given = given.loc[index, list(problem.weight_names)].to_numpy(float)
    return problem.weights_of(len(index), given)

"""Which experiments are there, and what is written of them?"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd

from pear.errors import InvalidSetting
from pear.experiments import lengths, problems, regret, tables
from pear.experiments.answers import answers_page, effort_table
from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.profiles import DRAWN, SET_SIZE, Profile
from pear.experiments.registry import DATASETS, METHODS
from pear.experiments.run import Finished, Follow, check_page, fit, run_experiments
from pear.experiments.summary import whole_runs
from pear.experiments.tasks import Task

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        tables.COMPARED,
        regret.EXPERIMENT,
        tables.CORRUPTED,
        tables.SHALLOW,
        tables.REASONS,
        lengths.COSTS,
        lengths.SCORES,
        problems.GRAPHS,
        problems.ACTIONS,
    )
}
ASKING = ("regret", "corruption")
"""Experiments about methods that ask; others are there for comparison alone."""
PACKAGES = ("pear-recourse", "numpy", "scipy", "scikit-learn", "torch", "pymoo")


def run_suite(
    names: Sequence[str],
    profile: Profile,
    folder: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    document: Path | None = None,
    follow: Follow | None = None,
    run: bool = True,
    note: str = "",
    say: Callable[[str], None] | None = None,
    minutes: float | None = None,
) -> Path | None:
    """Run experiments and write everything about them; returns the page of results.

    Where ``minutes`` are up before all is done, there is no page yet, and None is returned.

    With ``run=False`` the page is made of the rows that are there, and says what is missing.
    ``note`` is printed at its top; ``say`` is told the users and seeds taken. Experiments of
    which the profile runs no method, or of which there are no rows to report on, are left out,
    and named on the page.
    """
    check_users(profile)
    if not run and not set(names) <= set(DRAWN) and not any((folder / "rows").glob("*.parquet")):
        raise _no_rows(folder, names)
    chosen = [EXPERIMENTS[name] for name in names if tasks_of(name, profile)]
    tasks = [task for experiment in chosen for task in experiment.tasks(profile)]
    if document is not None or folder.is_dir():
        check_page(document or folder / "results.md")
    finished = run_experiments(
        tasks,
        profile,
        folder,
        workers=workers,
        cluster=cluster,
        follow=follow,
        run=run,
        minutes=minutes,
    )
    if run and finished.late:
        return None
    chosen = [e for e in chosen if run or e.name in DRAWN or _has_rows(e, profile, finished)]
    if not chosen:
        raise _no_rows(folder, names)
    reports = {e.name: _report(e, profile, finished) for e in chosen}
    if say is not None:
        say(words_of(tuple(reports), profile, finished))
    absent = [name for name in names if name not in reports]
    if absent:
        why = "methods" if run else "rows"
        note += f"{note and ' '}Left out, for lack of {why}: {', '.join(absent)}."
    return write_results(reports, profile, finished, document, note)


def tasks_of(name: str, profile: Profile) -> list[Task]:
    """The tasks of an experiment; none without a method that asks, where it is about those."""
    tasks = EXPERIMENTS[name].tasks(profile)
    return tasks if name not in ASKING or any(task.k for task in tasks) else []


def _has_rows(experiment: Experiment, profile: Profile, finished: Finished) -> bool:
    fitted = (fit(task, finished.shared) for task in experiment.tasks(profile))
    there = [task for task in fitted if task is not None and finished.store.has(task)]
    return any(task.k or experiment.name not in ASKING for task in there)


def _no_rows(folder: Path, names: Sequence[str]) -> InvalidSetting:
    return InvalidSetting(
        f"'{folder}' holds no rows of {', '.join(names)} to report on; give the folder of such a "
        "run, or run it first, without --report-only"
    )


def check_users(profile: Profile) -> None:
    """Refuse more users than the data sets have, where that is known beforehand."""
    if profile.users > SET_SIZE and set(profile.datasets) <= set(DATASETS):
        raise InvalidSetting(
            f"'users' must be at most {SET_SIZE}, which is all that a set of "
            f"{', '.join(profile.datasets)} has (got {profile.users})"
        )


def check_methods(names: Sequence[str], profile: Profile) -> None:
    """Refuse methods that none of some experiments runs."""
    run = {task.method for name in names for task in tasks_of(name, profile)}
    left = [name for name in profile.methods if name not in run]
    if not left:
        return
    every = replace(profile, methods=tuple(METHODS))
    taken = {task.method: task.k > 0 for name in names for task in tasks_of(name, every)}
    known = [name for name in METHODS if name in taken]
    others = " and any of one's own" if len(taken) > len(known) else " alone"
    if set(names) <= set(ASKING):
        beside = [name for name in known if not taken[name]]
        known = [name for name in known if taken[name]]
        others = " alone, methods that ask" + (f", with {beside[0]} beside them" if beside else "")
    raise InvalidSetting(
        f"'methods' names '{left[0]}', which {', '.join(names)} does not run in profile "
        f"{profile.name}; it takes {', '.join(known)}{others}"
    )


def _report(experiment: Experiment, profile: Profile, finished: Finished) -> Report:
    tasks = [t for task in experiment.tasks(profile) if (t := fit(task, finished.shared))]
    rows = finished.store.read(tasks)
    data = finished.store.folder / "data"
    data.mkdir(exist_ok=True)
    rows.to_parquet(data / f"{experiment.name}.parquet", index=False)
    worlds = {task.world: finished.shared.worlds[task.world] for task in tasks}
    report = experiment.report(Material(profile, whole_runs(rows), worlds))
    for name, table in report.data.items():
        table.to_parquet(data / f"{name}.parquet", index=False)
    return report


def stamp_of(words: str) -> str:
    """What made a table or figure: profile and seeds in words, versions, date."""
    known = []
    for package in PACKAGES:
        try:
            known.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    today = datetime.now(UTC).date().isoformat()
    return f"{words}; {', '.join(known)}; Python {platform.python_version()}; {today}"


def words_of(names: Sequence[str], profile: Profile, finished: Finished) -> str:
    """Users and seeds that experiments really took: no more users than their sets have."""
    worlds = finished.shared.worlds.values()
    most = max(len(world.states) for world in worlds)
    fewer = any(len(w.states) < min(profile.people(w.classifier), most) for w in worlds)
    return replace(profile, users=min(profile.users, most)).words(names, fewer)


def write_results(
    reports: dict[str, Report],
    profile: Profile,
    finished: Finished,
    document: Path | None,
    note: str = "",
) -> Path:
    """Tables as Markdown and LaTeX, figures as SVG and PNG, a page of answers, and one of each
    experiment's figures and tables beside it."""
    folder = finished.store.folder
    stamp = stamp_of(words_of(tuple(reports), profile, finished))
    page = document or folder / "results.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    rows = finished.store.read(finished.tasks)
    effort = effort_table(rows)
    for table in [table for report in reports.values() for table in report.tables] + [effort]:
        place = folder / "tables" / table.name
        place.with_suffix(".md").write_text(f"{table.markdown()}\n{stamp}\n", encoding="utf-8")
        place.with_suffix(".tex").write_text(table.latex(stamp), encoding="utf-8")
    parts = [answers_page(reports, opening_words(stamp, rows, finished, note)), "## In detail\n"]
    shown = reports | {"effort": Report("What did it take?", tables=(effort,))}
    inner = page.with_suffix("")
    inner.mkdir(exist_ok=True)
    for name, report in shown.items():
        for picture in report.pictures:
            picture.save(folder / "figures", stamp)
            picture.save(page.parent / "images" / "results", stamp)
        back = f"[All results](../{page.name})\n"
        (inner / f"{name}.md").write_text(f"{_page_of(report)}\n{back}", encoding="utf-8")
        parts.append(f"- [{report.title}]({inner.name}/{name}.md)")
    page.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return page


def _page_of(report: Report) -> str:
    parts = [f"# {report.title}\n", *(words + "\n" for words in report.words)]
    for picture in report.pictures:
        place = f"../images/results/{picture.name}"
        parts.append(f"![{picture.title}]({place}.svg)\n\n{picture.words} ([PNG]({place}.png))\n")
    return "\n".join([*parts, *(table.markdown("##") for table in report.tables)])


def opening_words(stamp: str, rows: pd.DataFrame, finished: Finished, note: str) -> str:
    """What ran: said once, for all that follows."""
    done = [task for task in finished.tasks if finished.store.has(task)]
    missing = len(finished.tasks) - len(done)
    said = [f"Made by `pear bench`; {stamp}."]
    commits = sorted(set(rows["commit"]) - {""})
    if commits:
        said.append(f"Rows are of {', '.join(commits)}.")
    if missing:
        said.append(f"**Unfinished: {missing} of {len(finished.tasks)} tasks have no rows yet.**")
    if note:
        said.append(note)
    return " ".join(said)


def read_rows(folder: Path) -> pd.DataFrame:
    """All rows of a run's folder, whatever experiment they belong to, in one order."""
    files = sorted((folder / "rows").glob("*.parquet"))
    parts = [pd.read_parquet(path) for path in files]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

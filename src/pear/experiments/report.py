"""What is written of experiments? Verdicts on the paper's questions, and a page of each.

Every verdict is computed by a rule that is printed with it. Findings about causes are rows of
``findings.csv``, each with the command that made its figures.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from pear.errors import InvalidSetting
from pear.experiments import corruption, lengths, problems, regret, tables
from pear.experiments.drawing import Table
from pear.experiments.experiment import (
    DATASETS,
    METHODS,
    Experiment,
    Material,
    Report,
    Task,
    dataset_label,
    find_method,
)
from pear.experiments.profiles import DRAWN, SET_SIZE, Profile
from pear.experiments.run import (
    Finished,
    Follow,
    check_page,
    fit,
    keep_rows,
    kept_rows,
    run_experiments,
)
from pear.experiments.summary import final, whole_runs
from pear.experiments.tables import where_words

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        tables.COMPARED,
        regret.EXPERIMENT,
        corruption.EXPERIMENT,
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

    With ``run=False`` the page is made of the rows that are there, and says what is missing; rows
    that the folder lacks are read from those that the page's last report left beside it.
    ``note`` is printed at its top; ``say`` is told the users and seeds taken. Experiments of
    which the profile runs no method, or of which there are no rows to report on, are left out,
    and named on the page.
    """
    check_users(profile)
    kept = kept_rows(kept_at(document or folder / "results.md"))
    somewhere = kept is not None or any((folder / "rows").glob("*.parquet"))
    if not run and not set(names) <= set(DRAWN) and not somewhere:
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
        kept=kept,
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
    there = [task for task in fitted if task is not None and finished.store.knows(task)]
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
    return replace(report, words=(*report.words, *commit_words(rows)))


def commit_words(rows: pd.DataFrame) -> tuple[str, ...]:
    """Which code made the rows behind a page, where that is known."""
    ended = final(rows)
    known = ended[ended["commit"] != ""].groupby("commit").size()
    said = ", ".join(f"{commit} ({count:,})" for commit, count in known.items())
    return (
        (f"Outcomes (a user in a run each) by the commit of the code that made them: {said}.",)
        if said
        else ()
    )


def kept_at(page: Path) -> Path:
    """Where the rows behind a page are kept."""
    return page.with_suffix("") / "rows.parquet"


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
    parts = [answers_page(reports, opening_words(stamp, finished, note)), "## In detail\n"]
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
    keep_rows(pd.concat([rows, *finished.store.kept.values()]), kept_at(page))
    return page


def _page_of(report: Report) -> str:
    parts = [f"# {report.title}\n", *(words + "\n" for words in report.words)]
    for picture in report.pictures:
        place = f"../images/results/{picture.name}"
        parts.append(f"![{picture.title}]({place}.svg)\n\n{picture.words} ([PNG]({place}.png))\n")
    return "\n".join([*parts, *(table.markdown("##") for table in report.tables)])


def opening_words(stamp: str, finished: Finished, note: str) -> str:
    """What ran: said once, for all that follows."""
    done = [task for task in finished.tasks if finished.store.knows(task)]
    missing = len(finished.tasks) - len(done)
    said = [f"Made by `pear bench`; {stamp}."]
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


TOLERATED = 0.2
"""How much dearer plans may get with edges removed for Q3 to hold; the paper's own reach 0.18."""

QUESTIONS = {
    "Q1": "Does regret fall as PEAR asks more?",
    "Q2": "Does PEAR do better than its competitors in validity and cost?",
    "Q3": "Is PEAR robust to a wrong cost graph?",
}


def answers_page(reports: Mapping[str, Report], opening: str) -> str:
    """The beginning of the page: verdicts, one table, one figure, findings."""
    data = {name: table for report in reports.values() for name, table in report.data.items()}
    parts = ["# Results\n"]
    for name, verdict in verdicts(data).items():
        parts.append(f"**{name}. {QUESTIONS[name]}** {verdict}\n")
    table = headline(data)
    if table is not None:
        parts.append(table.markdown("##"))
    shown = [picture for report in reports.values() for picture in report.pictures]
    if any(picture.name == "regret" for picture in shown):
        parts.append("![Regret against questions](images/results/regret.svg)\n")
    parts.append(f"{opening}\n")
    known = findings()
    # They are about the paper's users: without any of those there is nothing to compare.
    if len(known) and "both" in data.get("compared", ()):
        parts.append("## What explains the differences\n")
        parts += [f"- {row.finding} (`{row.command}`)" for row in known.itertuples()]
        parts.append("")
    return "\n".join(parts)


def findings() -> pd.DataFrame:
    """What trials showed: ``finding`` and the ``command`` that made its figures."""
    with files("pear.experiments").joinpath("findings.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def verdicts(data: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """A verdict for each question there are rows for."""
    found = {}
    if len(data.get("regret_curves", ())):
        found["Q1"] = first_verdict(data["regret_curves"])
    rivals = [data[name] for name in ("rivals", "shallow_rivals") if len(data.get(name, ()))]
    if rivals:
        found["Q2"] = second_verdict(pd.concat(rivals, ignore_index=True))
    if len(data.get("removed", ())):
        found["Q3"] = third_verdict(data["removed"])
    return found


def first_verdict(curves: pd.DataFrame) -> str:
    """Holds where regret at the end is below 1 (no question) by its whole interval."""
    ours = curves[curves["low"].notna()]
    last = ours.loc[ours.groupby(["dataset", "system", "response", "k"])["questions"].idxmax()]
    failed = last[~(last["high"] < 1.0)]
    verdict = "Holds" if failed.empty else f"Does not hold: not for {', '.join(_curves(failed))}"
    worst = last.sort_values("regret").tail(1)
    said = (
        f"**{verdict}.** Regret by the paper's rule, 1 before the first question, ends at "
        f"{last['regret'].min():.2f} to {last['regret'].max():.2f} in the {len(last)} "
        f"conversations of the figure (most: {_curves(worst)[0]})"
    )
    theirs = curves[curves["system"] == "published PEAR"]
    if len(theirs):
        theirs = theirs.loc[theirs.groupby(["dataset", "response", "k"])["questions"].idxmax()]
        low, high = theirs["regret"].min(), theirs["regret"].max()
        said += f"; the published system's at {low:.2f} to {high:.2f}"
    return f"{said}."


def _curves(rows: pd.DataFrame) -> list[str]:
    return [
        f"{dataset_label(str(row.dataset))} {row.system} {row.response} k = {row.k}"
        for row in rows.itertuples()
    ]


def second_verdict(rivals: pd.DataFrame) -> str:
    """Holds where PEAR (L) solves at least as many, and is cheaper on users both solve."""
    against = rivals[rivals["validity_gap"].notna()]
    fewer = against[against["validity_gap"] < -0.005]
    dearer = against[against["low"] > 1.0]
    unclear = against[(against["low"] <= 1.0) & (against["high"] >= 1.0)]
    good = len(against) - len(pd.concat([fewer, dearer, unclear]).index.unique())
    verdict = "Holds" if good == len(against) else "Does not hold everywhere"
    said = [
        f"**{verdict}.** In {good} of {len(against)} comparisons (a competitor in a world) PEAR "
        "(L) solves at least as many users and is cheaper on those both solve, by the whole "
        "interval of the ratio"
    ]
    for words, rows in (("fewer solved", fewer), ("dearer", dearer), ("not told apart", unclear)):
        if len(rows):
            said.append(f"{words}: {', '.join(_against(rows))}")
    return "; ".join(said) + "."


def _against(rows: pd.DataFrame) -> list[str]:
    return [
        f"{row.rival} ({where_words(str(row.dataset), str(row.classifier), str(row.users))})"
        for row in rows.itertuples()
    ]


def third_verdict(removed: pd.DataFrame) -> str:
    """Holds where no share of edges makes plans dearer by more than :data:`TOLERATED`."""
    bad = removed[removed["ratio"] > 1.0 + TOLERATED]
    lost = removed[removed["validity_gap"] < -0.05]
    verdict = "Holds" if bad.empty and lost.empty else "Does not hold"
    worst = removed.loc[removed.groupby("line", sort=False)["ratio"].idxmax()]
    told = [
        f"{row.line} {float(str(row.ratio)) - 1.0:+.0%} "
        f"({where_words(str(row.dataset), 'network', str(row.users))} with "
        f"{row.corruption:.0%} of the edges removed; {float(str(row.told)) - 1.0:+.0%} where the "
        "same planner is told the true weights of the edges left)"
        for row in worst.itertuples()
    ]
    validity = "" if lost.empty else f"; validity falls by up to {-lost['validity_gap'].min():.2f}"
    return (
        f"**{verdict}.** In {len(bad)} of {len(removed)} cases plans are more than "
        f"{TOLERATED:.0%} dearer with edges removed, on users both solve; at worst "
        f"{'; '.join(told)}{validity}."
    )


def headline(data: Mapping[str, pd.DataFrame]) -> Table | None:
    """One row per world: the published PEAR, ours by the same algorithms, ours, the optimum."""
    parts = [data[name] for name in ("compared", "shallow") if len(data.get(name, ()))]
    if not parts:
        return None
    lines = pd.concat(parts, ignore_index=True)
    rows = []
    for (dataset, kind, users), part in lines.groupby(
        ["dataset", "classifier", "users"], sort=False
    ):
        known = part.set_index("line")
        pear, exact = find_method("pear-l").label, find_method("pear-exact-l").label
        best = find_method("exact-true").label
        if pear not in known.index:
            continue
        mine = known.loc[pear]
        rows.append(
            (
                where_words(str(dataset), str(kind), str(users)),
                f"{mine['people']:.0f}",
                f"{mine['paper_validity']:.2f}, {mine['paper_cost']:.0f}",
                f"{mine['validity']:.2f}, {mine['cost']:.0f}",
                _ratio(mine),
                *(_pair(known, name) for name in (exact, best)),
            )
        )
    if not rows:
        return None
    return Table(
        "headline",
        "PEAR with logistic answers, ten questions of two plans: validity, mean cost",
        (
            "Users",
            "n",
            "Published",
            "Ours, algorithms 1 and 2",
            "Ratio on users both solve (95%)",
            "Ours, exact",
            "Optimum",
        ),
        tuple(rows),
        (
            "Costs are under the true weights, count 1 for STOP, and are means over the users "
            "each system solves. The ratio leaves STOP out and is over the users both solve, "
            "since a system that solves more people has harder cases in its mean.",
        ),
    )


def _ratio(line: pd.Series) -> str:
    if "ratio" not in line or np.isnan(line["ratio"]):
        return "-"
    return f"{line['ratio']:.2f} ({line['low']:.2f} to {line['high']:.2f})"


def _pair(known: pd.DataFrame, name: str) -> str:
    if name not in known.index:
        return "-"
    line = known.loc[name]
    people = "" if line["people"] == known["people"].max() else f" (n = {line['people']:.0f})"
    return f"{line['validity']:.2f}, {line['cost']:.0f}{people}"


def effort_table(rows: pd.DataFrame) -> Table:
    """Rows asked and seconds per user of the finished conversation or plan, network classifiers."""
    chosen = rows[(rows["k"] <= 2) & (rows["corruption"] == 0)]
    keys = ["dataset", "users", "method", "classifier"]
    last = chosen.groupby(keys)["questions"].transform("max")
    chosen = chosen[(chosen["questions"] == last) & (chosen["classifier"] == "network")]
    texts = []
    for (name, dataset, users), part in chosen.groupby(["method", "dataset", "users"], sort=False):
        texts.append(
            (
                getattr(find_method(str(name)), "label", str(name)),
                where_words(str(dataset), "network", str(users)),
                f"{part['rows'].mean():,.0f}",
                f"{part['seconds'].mean():.2f}",
                f"{part['answered'].mean():.1f}",
            )
        )
    return Table(
        "effort",
        "Rows asked of the classifier and seconds, per user",
        ("Method", "Users", "Rows asked", "Seconds", "Questions answered"),
        tuple(texts),
        ("Seconds are of one process on the machine that ran it, beside whatever else ran.",),
    )

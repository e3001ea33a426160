"""``pear bench``: do we reproduce the paper, and what is the better answer beside it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NAMES = (
    "competitors",
    "regret",
    "corruption",
    "classifiers",
    "xpear",
    "cost-length",
    "score-length",
    "graphs",
    "actions",
)


def command(
    experiment: Annotated[str, typer.Argument(help=f"{', '.join(NAMES)}, or all.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run.")],
    profile: Annotated[
        str, typer.Option(help="smoke, reduced (the first 60 users of each set) or full.")
    ] = "smoke",
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Ray: 'auto', or 'ray://host:port'.")] = None,
    document: Annotated[
        Path | None, typer.Option(help="Page of results; else results.md in the folder.")
    ] = None,
    users: Annotated[
        int | None, typer.Option(help="Users of each set; else the profile's.")
    ] = None,
    shallow_users: Annotated[
        int | None, typer.Option(help="Users of each set with shallow classifiers.")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs; else the profile's.")] = None,
    corruption_runs: Annotated[
        int | None, typer.Option(help="Runs of the corruption table; else the profile's.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="Of policy training; else the profile's.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Only these, with commas; import paths of others too.")
    ] = None,
    without: Annotated[str, typer.Option(help="Methods to leave out, with commas.")] = "",
    not_shallow: Annotated[
        str | None, typer.Option(help="Methods to leave out for the shallow classifiers.")
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Only these, with commas; import paths of others too.")
    ] = None,
    note: Annotated[str, typer.Option(help="Printed at the top of the page.")] = "",
    max_minutes: Annotated[
        float | None,
        typer.Option(help="Stop after so long; the same command goes on where it was."),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing; report on the rows that are there.")
    ] = False,
) -> None:
    """Every table and figure of the paper, with the exact planner as an extra row.

    A run that was killed goes on where it stopped when it is started again. Rows are Parquet,
    tables Markdown and LaTeX, figures SVG and PNG.
    """
    from pear.errors import InvalidSetting
    from pear.experiments.experiment import METHODS, find_dataset, find_method
    from pear.experiments.profiles import find_profile

    names = NAMES if experiment == "all" else (experiment,)
    if not set(names) <= set(NAMES):
        raise InvalidSetting(
            f"'experiment' must be one of {', '.join(NAMES)} or all (got {experiment!r})"
        )
    taken = find_profile(profile)
    wanted = tuple(dict.fromkeys(_listed(methods) or taken.methods))
    for option, listed in (("without", _listed(without)), ("not-shallow", _listed(not_shallow))):
        for name in listed or ():
            if name not in (*wanted, *METHODS):
                raise InvalidSetting(
                    f"'--{option}' must name methods of this run (got {name!r}); it runs "
                    f"{', '.join(wanted)}"
                )
    kept = tuple(name for name in wanted if name not in (_listed(without) or ()))
    for name in kept:
        find_method(name)
    for name in _listed(datasets) or ():
        find_dataset(name)
    taken = taken.changed(
        users=users,
        shallow_users=shallow_users,
        runs=runs,
        corruption_runs=corruption_runs,
        iterations=iterations,
        methods=kept,
        datasets=_listed(datasets),
        not_shallow=_listed(not_shallow),
    )
    from pear.cli.main import Bar
    from pear.experiments.report import check_methods, run_suite

    if methods is not None:
        check_methods(names, taken)
    said: list[str] = []
    with Bar("bench") as bar:
        page = run_suite(
            names,
            taken,
            output,
            workers=workers,
            cluster=cluster,
            document=document,
            follow=bar.show,
            run=not report_only,
            note=note,
            say=said.append,
            minutes=max_minutes,
        )
    if page is None:
        typer.echo(f"{output}: the time is up; the same command goes on where this one stopped")
        return
    typer.echo(f"{page}: {' '.join(said)}")


def _listed(text: str | None) -> tuple[str, ...] | None:
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else None

"""pear plan: a certified plan for everyone a model refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def command(
    problem: Annotated[Path, typer.Argument(help="The problem file.")],
    people: Annotated[Path, typer.Argument(help="CSV or Parquet, or a folder of them.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help=".parquet, .csv, or a folder without ending.")
    ],
    model: Annotated[
        str | None, typer.Option(help=".onnx, .skops or http(s) address; else the problem's own.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="Table of weights, one row per person in the same order."),
    ] = None,
    prior: Annotated[
        Path | None, typer.Option(help="Prior (JSON); plans are of least mean cost under it.")
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Draws of the prior that costs are means over; 1: its mean weights.")
    ] = 32,
    conversations: Annotated[
        Path | None,
        typer.Option(help="Conversations (JSON lines): what they said and cannot do, by id."),
    ] = None,
    id: Annotated[str | None, typer.Option(help="Column that names people.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Ray: 'auto', or 'ray://host:port'.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Most changes of a plan.")] = None,
    max_rows: Annotated[int, typer.Option(help="Most rows asked per person.")] = 200_000,
    changes_per_feature: Annotated[
        int, typer.Option(min=1, help="Most changes of one feature.")
    ] = 1,
    together: Annotated[
        int, typer.Option(help="People searched in lockstep; more for a model slow to call.")
    ] = 64,
    chunk: Annotated[int, typer.Option(help="Rows done at a time.")] = 1_000,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard an unfinished run and an old output.")
    ] = False,
) -> None:
    """A certified plan for everyone of a table the model refuses.

    A run that was killed goes on where it stopped when it is started again. Rows that cannot
    be used are listed with the reason in a .bad.csv beside the output.
    """
    from pear.errors import InvalidSetting
    from pear.portfolio import Everyone, Search, plan_portfolio
    from pear.portfolio.conversations import read_conversations
    from pear.portfolio.sources import read_prior, read_problem_and_model

    if weights is not None and (prior is not None or conversations is not None):
        raise InvalidSetting(
            "'--weights' says it all; leave out '--prior' and '--conversations', or leave it out"
        )
    stated, place = read_problem_and_model(problem, model)
    given: Any = weights
    if weights is None:
        believed = read_prior(stated, problem, prior)
        answers = read_conversations(conversations, stated) if conversations else []
        given = Everyone.under(believed, samples, answers)
    with _progress() as report:
        summary = plan_portfolio(
            stated,
            place,
            people,
            output,
            given,
            id_name=id,
            search=Search(max_length, max_rows, changes_per_feature, together),
            chunk=chunk,
            workers=workers,
            cluster=cluster,
            restart=restart,
            progress=report,
        )
    typer.echo(summary.words())
    if not summary.people:
        raise typer.Exit(1)


class _progress:
    """A bar with the time left, on a terminal; nothing elsewhere."""

    def __enter__(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as TimeLeft

        self.bar = Progress(
            TextColumn("planning"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeLeft(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            disable=not Console(stderr=True).is_terminal,
            # A chunk of a slow model may take minutes; the time left needs two of them.
            speed_estimate_period=24 * 3600,
        )
        self.task = self.bar.add_task("planning", total=None, note="")
        self.bar.start()
        return self.report

    def report(self, progress: Any) -> None:
        """Show how far the run is; time left counts what this run itself has done."""
        note = f"{progress.planned:,} plans, {progress.bad:,} bad rows"
        self.bar.update(self.task, completed=progress.done, total=progress.rows, note=note)

    def __exit__(self, *problem: object) -> None:
        self.bar.stop()

"""pear plan: a certified plan for everyone a model refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pear.cli.options import Agree, Models, Trust

if TYPE_CHECKING:
    from pear.cli.main import Bar
    from pear.portfolio import Progress


def command(
    problem: Annotated[Path, typer.Argument(help="The problem file.")],
    people: Annotated[Path, typer.Argument(help="CSV or Parquet, or a folder of them.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help=".parquet, .csv, or a folder without ending.")
    ],
    model: Models = None,
    agree: Agree = 1.0,
    trust: Trust = None,
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
    max_rows: Annotated[int, typer.Option(help="Most rows asked per person.")] = 1_000_000,
    changes_per_feature: Annotated[
        int, typer.Option(min=1, help="Most changes of one feature.")
    ] = 1,
    together: Annotated[
        int, typer.Option(help="People searched and kept at a time; more for a slow endpoint.")
    ] = 64,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard an unfinished run and an old output.")
    ] = False,
) -> None:
    """A certified plan for everyone of a table the model refuses.

    Ctrl-C keeps everybody who is done, and the same command goes on, also after a kill. Rows that
    cannot be used are listed with the reason in a .bad.csv beside the output.
    """
    from pear.cli.main import Bar
    from pear.elicitation.files import read_conversations
    from pear.errors import InvalidSetting
    from pear.portfolio import Everyone, Search, plan_portfolio
    from pear.portfolio.beliefs import read_prior
    from pear.portfolio.run import read_problem_and_model

    if weights is not None and (prior is not None or conversations is not None):
        raise InvalidSetting(
            "'--weights' says it all; leave out '--prior' and '--conversations', or leave it out"
        )
    stated, place = read_problem_and_model(problem, model, agree=agree, trusted=trust or ())
    given: Any = weights
    if weights is None:
        believed = read_prior(stated, problem, prior)
        answers = read_conversations(conversations, stated) if conversations else []
        given = Everyone.under(believed, samples, answers)
    with Bar("planning") as bar:
        summary = plan_portfolio(
            stated,
            place,
            people,
            output,
            given,
            id_name=id,
            search=Search(max_length, max_rows, changes_per_feature, together),
            workers=workers,
            cluster=cluster,
            restart=restart,
            progress=_Progress(bar, output).report,
        )
    typer.echo(summary.words())
    if not summary.people:
        raise typer.Exit(1)


class _Progress:
    """The progress bar of a run, and a line about what is kept after Ctrl-C."""

    def __init__(self, bar: Bar, output: Path) -> None:
        self.bar, self.output, self.told = bar, output, False

    def report(self, now: Progress) -> None:
        """Show how far the run is; time left counts what this run itself has done."""
        self.bar.show(now.done, now.rows, f"{now.planned:,} plans, {now.bad:,} bad rows")
        if now.stopping and not self.told:
            self.told = True
            typer.echo(
                "Stopping once the people being searched are done; Ctrl-C again stops at once. "
                f"Everybody done is kept: the same command goes on to '{self.output}'.",
                err=True,
            )

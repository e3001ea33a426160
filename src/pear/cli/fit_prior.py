"""pear fit-prior: what people find costly, from the conversations they had."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    conversations: Annotated[Path, typer.Argument(help="Stored conversations (JSON lines).")],
    problem: Annotated[Path, typer.Option(help="The problem file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The prior (JSON).")],
    prior: Annotated[
        Path | None, typer.Option(help="The old prior (JSON); else the problem's own.")
    ] = None,
    components: Annotated[
        int | None, typer.Option(help="Kinds of people; chosen by the data by default.")
    ] = None,
    held_out: Annotated[float, typer.Option(help="Share of people kept for the check.")] = 0.3,
    level: Annotated[
        float, typer.Option(help="Probability of choosing one that is not better.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: Annotated[Path | None, typer.Option(help="The check as JSON.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.")] = None,
) -> None:
    """A population prior from choices, written only if it predicts held-out choices better."""
    import json as json_text

    from pear.elicitation.files import read_conversations
    from pear.portfolio.beliefs import read_prior
    from pear.portfolio.prior_fit import FitSettings, fit_prior
    from pear.problem.files import load_problem
    from pear.writing import check_writable, write_text

    check_writable(output, json)
    stated = load_problem(problem)
    fit = fit_prior(
        read_conversations(conversations, stated),
        read_prior(stated, problem, prior),
        FitSettings(components=components, held_out=held_out, level=level, seed=seed),
        workers,
    )
    if json is not None:
        write_text(json_text.dumps(fit.to_dict(), indent=2), json)
    typer.echo(fit.words())
    if not fit.better:
        raise typer.Exit(1)
    write_text(json_text.dumps(fit.prior.to_dict()), output)
    typer.echo(f"The prior is in {output}; name it in the problem to use it.")

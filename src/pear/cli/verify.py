"""``pear verify``: does a plan hold what it claims?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan as JSON.")],
    problem: Annotated[Path, typer.Option(help="The problem.toml it was made for.")],
    model: Annotated[
        str | None, typer.Option(help=".onnx, .skops or http(s) address; else the problem's own.")
    ] = None,
    max_rows: Annotated[
        int, typer.Option(help="Most states listed, and asked of the model, for the proof.")
    ] = 200_000,
) -> None:
    """Check a plan independently: its steps, costs and scores by the book, then the proof again.

    Ends with exit code 0 if everything claimed is confirmed, 1 if anything is refused, and 2 if
    nothing is refused but there were too many plans to prove it again.
    """
    from pear.decision.adapters import load_model
    from pear.errors import InvalidPlan, InvalidSetting
    from pear.planning.verify import verify
    from pear.problem import Plan
    from pear.problem.files import load_problem, model_location

    stated = load_problem(problem)
    place = model or model_location(stated, problem)
    if place is None:
        raise InvalidSetting(f"'{problem}' names no model; give one with --model")
    try:
        text = plan_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"the plan '{plan_file}' cannot be read: {error}") from None
    try:
        plan = Plan.from_json(text)
    except InvalidPlan as error:
        typer.echo(f"Refused: {error}")
        raise typer.Exit(1) from None
    typer.echo(f"{plan_file} claims:")
    for line in plan.words().splitlines():
        typer.echo(f"  {line}")
    report = verify(plan, stated, load_model(place, stated), max_rows=max_rows)
    typer.echo("Checked:")
    typer.echo(report.words())
    if not report.confirmed:
        raise typer.Exit(1 if report.refusals else 2)

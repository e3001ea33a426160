"""``pear init``: how does a table of people become a first ``problem.toml``?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pear.problem import Problem


def command(
    data: Annotated[Path, typer.Argument(help="Table of people: CSV or Parquet.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Column with the decision.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Model file (.onnx, .skops) or address.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path(
        "problem.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a first problem.toml from a table: kinds, bounds, categories, actions to review."""
    from pear.errors import InvalidSetting
    from pear.problem.draft import draft_problem, left_out_words
    from pear.problem.tables import read_table
    from pear.writing import write_text

    if output.exists() and not force:
        raise InvalidSetting(f"'{output}' exists already; give another --output, or --force")
    table, broken = read_table(data)
    if broken:
        row, first = next(iter(broken.items()))
        typer.echo(
            f"{len(broken):,} rows cannot be read and are passed over; the first: row {row}: "
            f"{first.reason}"
        )
    draft = draft_problem(table, target, data.name.split(".")[0], _reference(model, output))
    write_text(draft.text(), output)
    problem = draft.problem
    fixed = [feature.name for feature in problem.space.features if feature.immutable]
    typer.echo(
        f"Wrote {output}: {len(problem.space)} features, {len(problem.actions.actions)} actions "
        f"({len(problem.actions)} steps), from {len(table):,} people."
    )
    typer.echo(f"Taken for the favourable decision: {target} = {problem.goal.favourable[0]}.")
    if fixed:
        typer.echo(f"Taken for things nobody can change: {', '.join(fixed)}.")
    if draft.left_out:
        typer.echo(left_out_words(draft.left_out))
    if model is not None:
        _try_model(model, draft.problem)
    typer.echo(f"Read what is marked 'Review' in it, then: pear check {output} --data {data}")


def _reference(model: str | None, output: Path) -> str:
    """The model as the problem file names it: paths are relative to that file."""
    if model is None or model.startswith(("http://", "https://")):
        return model or ""
    return Path(os.path.relpath(model, output.parent)).as_posix()


def _try_model(model: str, problem: Problem) -> None:
    from pear.decision.adapters import load_model
    from pear.errors import PearError

    try:
        load_model(model, problem)
    except PearError as error:
        typer.echo(f"warning: the model does not answer this problem yet: {error}", err=True)

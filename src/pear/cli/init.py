"""``pear init``: how does a table of people become a first ``problem.toml``?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pear.cli.options import Trust

if TYPE_CHECKING:
    from pear.decision import BlackBox
    from pear.problem import Problem


def command(
    data: Annotated[Path, typer.Argument(help="Table of people: CSV or Parquet.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Column with the decision.")],
    favourable: Annotated[
        list[str] | None,
        typer.Option("--favourable", "-f", help="Class of it that people hope for; repeatable."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Model file (.onnx, .skops) or address.")
    ] = None,
    trust: Trust = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path(
        "problem.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a first problem.toml from a table: kinds, bounds, categories, actions to review."""
    from pear.errors import InvalidSetting
    from pear.problem.draft import draft_problem, left_out_words
    from pear.tables.reading import read_table
    from pear.writing import write_text

    if output.exists() and not force:
        raise InvalidSetting(f"'{output}' exists already; give another --output, or --force")
    table, broken = read_table(data)
    if broken:
        row, first = next(iter(broken.items()))
        typer.echo(
            f"{len(broken):,} {'row' if len(broken) == 1 else 'rows'} cannot be read and "
            f"{'is' if len(broken) == 1 else 'are'} passed over; the first: row {row}: "
            f"{first.reason}"
        )
    drafted = partial(
        draft_problem,
        table,
        target,
        favourable=favourable,
        name=data.name.split(".")[0],
        model=_reference(model, output),
    )
    draft = drafted()
    black_box = None if model is None else _loaded(model, draft.problem, trust or ())
    if black_box is not None:
        draft = drafted(score=black_box.score)
    write_text(draft.text(), output)
    space, actions = draft.problem.space, draft.problem.actions
    typer.echo(
        f"Wrote {output}: {len(space)} features, {len(actions.actions)} actions "
        f"({len(actions)} steps), from {len(table):,} people."
    )
    classes = ", ".join(str(value) for value in draft.problem.goal.favourable)
    said = "As you said, favourable" if favourable else "Favourable, by its name"
    typer.echo(f"{said}: {target} = {classes}.")
    personal = [f.name for f in space.features if f.protected]
    fixed = [f.name for f in space.features if f.immutable and not f.protected]
    changed = {action.feature for action in actions.actions}
    unclear = [f.name for f in space.features if not f.immutable and f.name not in changed]
    for words, listed in (
        ("Taken for personal attributes, immutable and protected", personal),
        ("Taken for things nobody can change", fixed),
        ("Without an action, for the reasons in the file", unclear),
    ):
        if listed:
            typer.echo(f"{words}: {', '.join(listed)}.")
    if draft.left_out:
        typer.echo(left_out_words(draft.left_out))
    typer.echo(f"Every action waits for review. Read {output}, then: pear check {output} -d {data}")


def _reference(model: str | None, output: Path) -> str:
    """The model as the problem file names it: paths are relative to that file."""
    if model is None or model.startswith(("http://", "https://")):
        return model or ""
    return Path(os.path.relpath(model, output.parent)).as_posix()


def _loaded(model: str, problem: Problem, trusted: Sequence[str]) -> BlackBox | None:
    from pear.decision import load_model
    from pear.errors import PearError

    try:
        return load_model(model, problem, trusted=trusted)
    except PearError as error:
        typer.echo(f"warning: the model does not answer this problem yet: {error}", err=True)
        return None

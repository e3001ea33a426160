"""``pear verify``: do plans hold what they claim?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pear.cli.options import Agree, Models, Trust

if TYPE_CHECKING:
    from pear.decision import BlackBox
    from pear.portfolio.plans import StoredPlan
    from pear.problem import Plan, Problem

SHOWN = 20
"""Refused plans of a table that are shown in full."""


def command(
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN", help="The plan as JSON, or a table of 'pear plan'.")
    ],
    problem: Annotated[Path, typer.Option(help="The problem.toml it was made for.")],
    model: Models = None,
    agree: Agree = 1.0,
    trust: Trust = None,
    row: Annotated[int | None, typer.Option(help="Whose plan of a table, counted from 0.")] = None,
    id: Annotated[str | None, typer.Option(help="Whose plan of a table, by their id.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every plan of a table.")] = False,
    prior: Annotated[
        Path | None, typer.Option(help="Prior (JSON) the plans were made under.")
    ] = None,
    max_rows: Annotated[
        int, typer.Option(help="Most states listed, and asked of the model, for each proof.")
    ] = 200_000,
) -> None:
    """Check plans independently: steps, costs and scores by the book, then the proof again.

    Ends with exit code 0 if everything claimed is confirmed, 1 if anything is refused, and 2 if
    nothing is refused but there were too many plans to prove it again.
    """
    from pear.errors import InvalidPlan, InvalidSetting
    from pear.portfolio.beliefs import read_prior
    from pear.portfolio.plans import plan_of, plans_of
    from pear.portfolio.run import read_problem_and_model
    from pear.tables.reading import open_table

    stated, place = read_problem_and_model(problem, model, agree=agree, trusted=trust or ())
    if is_table(plan_file):
        if [row is not None, id is not None, all_].count(True) != 1:
            raise InvalidSetting(
                f"'{plan_file}' holds the plans of many people; name one with --row or --id, or "
                "check them with --all"
            )
        believed = read_prior(stated, problem, prior)
        if all_:
            count = open_table(plan_file).rows
            everyone = plans_of(plan_file, stated, believed)
            _verify_all(everyone, count, stated, place.load(stated), max_rows)
            return
        found = plan_of(plan_file, stated, believed, row=row, id=id)
        _verify_one(f"{plan_file}, {found.name},", found.plan, stated, place.load(stated), max_rows)
        return
    if row is not None or id is not None or all_:
        raise InvalidSetting(
            f"'{plan_file}' holds one plan; --row, --id and --all are for a table of plans"
        )
    try:
        plan = read_plan(plan_file)
    except InvalidPlan as error:
        typer.echo(f"Refused: {error}")
        raise typer.Exit(1) from None
    _verify_one(str(plan_file), plan, stated, place.load(stated), max_rows)


def is_table(path: Path) -> bool:
    """Whether a path holds many plans: a folder, or a file that is not JSON."""
    from pear.errors import InvalidData

    if not path.exists():
        raise InvalidData(f"there is no file or folder '{path}'; give what 'pear plan' wrote")
    return path.is_dir() or path.suffix.lower() != ".json"


def read_plan(path: Path) -> Plan:
    """The plan of a JSON file."""
    from pear.errors import InvalidSetting
    from pear.problem import Plan

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"the plan '{path}' cannot be read: {error}") from None
    return Plan.from_json(text)


def _verify_one(name: str, plan: Plan, problem: Problem, model: BlackBox, max_rows: int) -> None:
    from pear.planning.verify import verify

    typer.echo(f"{name} claims:")
    for line in plan.words().splitlines():
        typer.echo(f"  {line}")
    report = verify(plan, problem, model, max_rows=max_rows)
    typer.echo("Checked:")
    typer.echo(report.words())
    if not report.confirmed:
        raise typer.Exit(1 if report.refusals else 2)


def _verify_all(
    everyone: Iterable[StoredPlan], count: int, problem: Problem, model: BlackBox, max_rows: int
) -> None:
    from pear.cli.main import Bar
    from pear.planning.verify import verify

    refused: list[str] = []
    checked = unproven = 0
    with Bar("verifying", count) as bar:
        for checked, found in enumerate(everyone, 1):
            report = verify(found.plan, problem, model, max_rows=max_rows)
            unproven += not report.confirmed and not report.refusals
            if report.refusals:
                refused.append(f"{found.name}: {report.words().splitlines()[-1]}")
            bar.show(checked, count, f"{len(refused):,} refused, {unproven:,} not proven again")
    for line in refused[:SHOWN]:
        typer.echo(line)
    if len(refused) > SHOWN:
        typer.echo(f"and {len(refused) - SHOWN:,} more; see each with --row.")
    typer.echo(
        f"{checked:,} plans checked: {checked - len(refused) - unproven:,} confirmed, "
        f"{len(refused):,} refused, {unproven:,} not refused and not all of it proven again."
    )
    if refused or unproven:
        raise typer.Exit(1 if refused else 2)

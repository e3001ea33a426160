"""``pear show``: which plan does somebody have?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN", help="The plan as JSON, or a table of 'pear plan'.")
    ],
    row: Annotated[int | None, typer.Option(help="Whose plan of a table, counted from 0.")] = None,
    id: Annotated[str | None, typer.Option(help="Whose plan of a table, by their id.")] = None,
) -> None:
    """Show one plan: its steps, what each is for and costs, the scores along it, and the proof."""
    from rich.markup import escape

    from pear.cli.conversation import make_console
    from pear.cli.verify import is_table, read_plan
    from pear.errors import InvalidSetting
    from pear.portfolio.plans import plan_of

    console = make_console()
    if not is_table(plan_file):
        plan, name = read_plan(plan_file), str(plan_file)
    elif (row is None) == (id is None):
        raise InvalidSetting(
            f"'{plan_file}' holds the plans of many people; name one with --row or --id"
        )
    else:
        _, _, plan = found = plan_of(plan_file, row=row, id=id)
        name = found.name
    console.print(f"[b]{escape(name)}[/b]")
    for key, value in plan.start.items():
        console.print(f"  {escape(key)}: {escape('unknown' if value is None else str(value))}")
    if not plan.success or not plan.steps:
        console.print(plan.words(), markup=False)
        return
    for number, step in enumerate(plan.steps, 1):
        console.print(f"{number}. {step.words}", markup=False)
        console.print(
            f"   score {step.score_before:.2f} → {step.score_after:.2f}, cost {step.cost:.1f}",
            style="dim",
            markup=False,
        )
        if step.reason:
            console.print(f"   {step.reason}", markup=False)
    console.print(f"Total cost {plan.cost:.1f}. {plan.certificate.words()}", markup=False)

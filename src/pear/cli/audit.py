"""pear audit: how recourse differs between protected groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pear.cli.options import Agree, Models, Trust


def command(
    problem: Annotated[Path, typer.Argument(help="The problem file.")],
    plans: Annotated[Path, typer.Argument(help="What 'pear plan' wrote.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Report as a page (.html).")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Report as JSON.")] = None,
    model: Models = None,
    agree: Agree = 1.0,
    trust: Trust = None,
    people: Annotated[
        Path | None, typer.Option(help="The table planned for, if --by names other columns of it.")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Attribute to group by; else the protected features.")
    ] = None,
    cut: Annotated[
        list[str] | None, typer.Option(help="Where to cut a number, such as age=25,40,60.")
    ] = None,
    conversations: Annotated[
        Path | None, typer.Option(help="Conversations (JSON lines): questions and prior by group.")
    ] = None,
    prior: Annotated[
        Path | None, typer.Option(help="Prior (JSON) the plans were made under.")
    ] = None,
    level: Annotated[float, typer.Option(help="Probability of any false alarm.")] = 0.05,
    smallest: Annotated[int, typer.Option(help="Fewest people of a group that is judged.")] = 30,
    flips: Annotated[int, typer.Option(help="Most people of a group that are flipped.")] = 200,
    max_length: Annotated[int | None, typer.Option(help="As given to 'pear plan'.")] = None,
    max_rows: Annotated[int, typer.Option(help="As given to 'pear plan'.")] = 1_000_000,
    changes_per_feature: Annotated[int, typer.Option(help="As given to 'pear plan'.")] = 1,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.")] = None,
) -> None:
    """Compare protected groups: share with a plan, cost, steps, questions, the prior's fit."""
    from pear.elicitation.files import read_conversations
    from pear.errors import InvalidSetting
    from pear.portfolio.audit import AuditSettings, audit, page
    from pear.portfolio.beliefs import read_prior
    from pear.portfolio.plans import read_plans
    from pear.portfolio.run import ModelPlace, Search
    from pear.problem.files import load_problem, model_location
    from pear.writing import check_writable, write_text

    check_writable(output, json)
    stated = load_problem(problem)
    place = model or model_location(stated, problem)
    edges: dict[str, list[float]] = {}
    for text in cut or []:
        name, _, places = text.partition("=")
        try:
            edges[name] = [float(place) for place in places.split(",")]
        except ValueError:
            raise InvalidSetting(f"'--cut' must read like age=25,40,60 (got {text!r})") from None
    report = audit(
        stated,
        read_plans(plans, stated),
        settings=AuditSettings(tuple(by or ()), edges, level, smallest, flips),
        model=ModelPlace(place, {"agree": agree, "trusted": trust or ()}) if place else None,
        people=people,
        conversations=read_conversations(conversations, stated) if conversations else (),
        prior=read_prior(stated, problem, prior),
        search=Search(max_length, max_rows, changes_per_feature),
        workers=workers,
    )
    if output is not None:
        write_text(page(report), output)
    if json is not None:
        write_text(report.to_json(), json)
    typer.echo(report.words())
    for kind, found in report.findings.items():
        typer.echo(f"{kind}, the largest first:")
        for words in found:
            typer.echo(f"  {words}")
    for words in report.cautions:
        typer.echo(f"Caution: {words}")

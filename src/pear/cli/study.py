"""``pear study``: a user study on the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pear.optional import require


def command(
    problem: Annotated[
        Path | None, typer.Argument(help="The problem file; left out, the built-in loan book.")
    ] = None,
    people: Annotated[
        Path | None, typer.Option(help="Table of invented people, for a problem of your own.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file that all that happens is kept in.")
    ] = Path("study.jsonl"),
    tasks: Annotated[int, typer.Option(min=1, help="Invented people each participant is.")] = 2,
    own: Annotated[bool, typer.Option("--own", help="A last task with own figures.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write what was found, anonymous (.csv), and exit.")
    ] = None,
    simulate: Annotated[
        int, typer.Option(min=0, help="With --export: so many simulated participants instead.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the assignment.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 8000,
) -> None:
    """Run a user study: consent, random assignment (PEAR, no questions, a list), tasks, ratings.

    $ pear study -o study.jsonl
    $ pear study -o study.jsonl --export found.csv

    The model and the prior are those the problem names. Stop it with Ctrl-C; the same command goes
    on where it stopped.
    """
    for package in ("fastapi", "uvicorn", "sqlalchemy", "pydantic_settings"):
        require(package)
    from pear.cli.serve import check_address, completed, ended_in_order, run
    from pear.errors import InvalidSetting
    from pear.service.settings import Stated
    from pear.study.app import Records, study_app
    from pear.study.design import Study
    from pear.study.design import export as export_of
    from pear.study.engine import make_study_engine
    from pear.study.simulated import simulate_study
    from pear.writing import check_writable

    if simulate and export is None:
        raise InvalidSetting("'--simulate' needs '--export': the file for what is found")
    check_writable(output if export is None else export)
    given: dict[str, Any] = {"problem": str(problem)} if problem else {"demo": True}
    stated = Stated.read(**given, host=host, port=port, workers=1)
    with ended_in_order(), completed(stated) as settings:
        engine = make_study_engine(settings)
        found = _people(settings, engine, people)
        study = Study(engine.problem, found, n_tasks=tasks, own=own, seed=seed)
        if export is not None:
            table = (
                simulate_study(study, engine, simulate, seed)
                if simulate
                else export_of(Records(study, output).participants, seed)
            )
            table.to_csv(export, index=False)
            n = table["participant"].nunique()
            typer.echo(f"{len(table):,} tasks of {n:,} participants are in {export}.")
            return
        check_address(host, port)
        typer.echo(f"The study is at http://{host}:{port}/study; what happens is in {output}.")
        run(settings, app=study_app(study, output, settings))


def _people(settings: Any, engine: Any, path: Path | None) -> dict[str, Any]:
    """The invented people that the model refuses, by name."""
    from pear.errors import InvalidSetting
    from pear.service.engine import example_people
    from pear.tables.people import read_people

    if path is not None:
        known = read_people(path, engine.problem.space)
        records = engine.problem.space.decode(known.states)
        found = dict(zip(map(str, known.ids), records, strict=True))
    else:
        found = example_people(settings)
    refused = {
        who: record
        for who, record in found.items()
        if not engine.score(record) > engine.problem.goal.required()
    }
    if not refused:
        raise InvalidSetting(
            "there is nobody to be: '--people' must be a table of invented people whom the model "
            "refuses"
        )
    return refused

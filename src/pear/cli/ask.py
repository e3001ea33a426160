"""``pear ask``: the conversation in the terminal, for a problem and a person of your own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pear.cli.options import Agree, Models, Trust

if TYPE_CHECKING:
    from pear.elicitation import Session
    from pear.problem import Problem
    from pear.tables.people import Person


def command(
    problem_file: Annotated[Path, typer.Argument(help="problem.toml", metavar="PROBLEM")],
    person_file: Annotated[
        Path,
        typer.Argument(help="The person's record as JSON, or a table of people.", metavar="PERSON"),
    ],
    model: Models = None,
    agree: Agree = 1.0,
    trust: Trust = None,
    row: Annotated[int | None, typer.Option(help="Who of a table, counted from 0.")] = None,
    id: Annotated[
        str | None, typer.Option(help="Who of a table, by id; or the name of a JSON record.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Column of a table that names people; else 'id'.")
    ] = None,
    conversation: Annotated[
        Path | None,
        typer.Option(
            help="Where conversations are kept, one per line; default PERSON.conversations.jsonl."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the plan as JSON here.")
    ] = None,
    k: Annotated[int, typer.Option(help="Plans per question.", min=2, max=4)] = 2,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    again: Annotated[bool, typer.Option("--again", help="Start anew instead of going on.")] = False,
) -> None:
    """Ask one person which plans they would rather do, and give them the cheapest for them.

    Every answer is kept on disk as it is given: quit or Ctrl-C, and the same command goes on.
    The file of conversations is what 'pear plan --conversations' takes.
    """
    from pear.cli.conversation import hold, make_console
    from pear.elicitation import Session
    from pear.elicitation.files import KeptConversation
    from pear.errors import InvalidSetting
    from pear.planning.exact import ExactPlanner
    from pear.portfolio.beliefs import read_prior
    from pear.portfolio.run import read_problem_and_model
    from pear.writing import check_writable, write_text

    console = make_console()
    problem, place = read_problem_and_model(problem_file, model, agree=agree, trusted=trust or ())
    person = _person(person_file, problem, row, id, id_column)
    conversation = conversation or person_file.with_suffix(".conversations.jsonl")
    check_writable(conversation, output)
    planner = ExactPlanner(problem, place.load(problem))
    prior = read_prior(problem, problem_file, None)
    kept = KeptConversation(conversation, person.key)
    stored = None if again else kept.read()
    if stored is not None:
        session = kept.resumed(stored, planner, prior)
        if stored["person"] != problem.space.decode(problem.state(person.record))[0]:
            raise InvalidSetting(
                f"'{kept.path}' holds a conversation about another record than '{person_file}'; "
                "use --again to start anew"
            )
        console.print(f"Going on after {_answers(session)} (kept in {kept.path}).", markup=False)
    else:
        session = Session(planner, person.record, prior, seed=seed, k=k)
    if planner.black_box.favourable(session.start[None])[0]:
        console.print("The decision is favourable already: nothing needs to change.")
        return

    def save() -> None:
        kept.write(session)

    save()
    try:
        result = hold(console, session, save)
    except (KeyboardInterrupt, EOFError):
        save()
        console.print(
            f"\nStopped. Nothing is lost: {kept.path} holds {_answers(session)}.",
            markup=False,
        )
        raise typer.Exit(130) from None
    if result is None:
        console.print(f"See you. {kept.path} holds {_answers(session)}.", markup=False)
        return
    if output is not None:
        write_text(result.plan.to_json(), output)
        console.print(f"The plan is in {output}.", markup=False)


def _answers(session: Session) -> str:
    return f"{session.n_answers} answer{'' if session.n_answers == 1 else 's'}"


def _person(
    path: Path, problem: Problem, row: int | None, id: str | None, id_column: str | None
) -> Person:
    """Who is asked, and what their conversation is kept under."""
    from pear.errors import InvalidSetting
    from pear.tables.people import Person, person_of

    if path.suffix.lower() == ".json":
        if row is not None or id_column is not None:
            raise InvalidSetting(
                f"'{path}' holds one person; --row and --id-column are for a table of people"
            )
        return Person(_record(path), {} if id is None else {"id": id})
    if (row is None) == (id is None):
        raise InvalidSetting(f"'{path}' holds many people; say who is asked with --row or --id")
    return person_of(path, problem.space, row=row, id=id, id_name=id_column)


def _record(path: Path) -> dict[str, Any]:
    """A person's record from a JSON file."""
    from pear.errors import InvalidRecord
    from pear.problem.values import kind_of

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidRecord(f"'{path}' cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # Lists in lists without end, too.
        raise InvalidRecord(f"'{path}' is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidRecord(f"'{path}' must hold one JSON object (got {kind_of(data)})")
    return data

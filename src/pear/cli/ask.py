"""``pear ask``: the conversation in the terminal, for a problem and a person of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pear.cli.files import Agree, Models

if TYPE_CHECKING:
    from pear.elicitation import Session
    from pear.planning.exact import ExactPlanner as Planner
    from pear.preferences import GaussianMixturePrior


def command(
    problem_file: Annotated[Path, typer.Argument(help="problem.toml", metavar="PROBLEM")],
    person_file: Annotated[
        Path, typer.Argument(help="The person's record as JSON.", metavar="PERSON")
    ],
    model: Models = None,
    agree: Agree = 1.0,
    conversation: Annotated[
        Path | None,
        typer.Option(help="Where the conversation is kept; default PERSON.conversation.json."),
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
    """
    from pear.cli.conversation import hold, make_console
    from pear.cli.files import read_record
    from pear.elicitation import Session
    from pear.errors import InvalidSetting
    from pear.planning.exact import ExactPlanner
    from pear.portfolio.beliefs import read_prior
    from pear.portfolio.run import read_problem_and_model
    from pear.writing import write_text

    console = make_console()
    problem, place = read_problem_and_model(problem_file, model, agree=agree)
    planner = ExactPlanner(problem, place.load(problem))
    prior = read_prior(problem, problem_file, None)
    record = read_record(person_file)
    kept = conversation or person_file.with_suffix(".conversation.json")
    if kept.exists() and not again:
        session = _resumed(kept, planner, prior)
        if session.to_dict()["person"] != problem.space.decode(problem.state(record))[0]:
            raise InvalidSetting(
                f"'{kept}' is a conversation about another record than '{person_file}'; "
                "use --again to start anew"
            )
        console.print(f"Going on after {session.n_answers} answers (kept in {kept}).", markup=False)
    else:
        session = Session(planner, record, prior, seed=seed, k=k)
    if planner.black_box.favourable(session.start[None])[0]:
        console.print("The decision is favourable already: nothing needs to change.")
        return

    def save() -> None:
        write_text(session.to_json(), kept)

    save()
    try:
        result = hold(console, session, save)
    except (KeyboardInterrupt, EOFError):
        save()
        console.print(
            f"\nStopped. Nothing is lost: {kept} holds {session.n_answers} answers.", markup=False
        )
        raise typer.Exit(130) from None
    if result is None:
        console.print(f"See you. {kept} holds {session.n_answers} answers.", markup=False)
        return
    if output is not None:
        write_text(result.plan.to_json(), output)
        console.print(f"The plan is in {output}.", markup=False)


def _resumed(kept: Path, planner: Planner, prior: GaussianMixturePrior) -> Session:
    """The conversation kept in a file, or what is wrong with it and how to start anew."""
    from pear.elicitation import Session
    from pear.errors import ConversationError, FingerprintMismatch

    try:
        return Session.from_json(kept.read_text(encoding="utf-8"), planner, prior)
    except (ConversationError, FingerprintMismatch) as error:
        raise type(error)(f"'{kept}': {error}; use --again to start anew") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConversationError(
            f"'{kept}' cannot be read ({error}); use --again to start anew"
        ) from None

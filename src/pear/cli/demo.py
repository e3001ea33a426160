"""``pear demo``: the whole job on the loan book, with you or with a simulated person."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

if TYPE_CHECKING:
    from rich.console import Console

    from pear.elicitation import Session
    from pear.planning.exact import ExactPlanner


def command(
    person: Annotated[str, typer.Option(help="Which applicant of the loan book.")] = "Amina",
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    k: Annotated[int, typer.Option(help="Plans per question, 2 to 4.", min=2, max=4)] = 2,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate the person even in a terminal.")
    ] = False,
) -> None:
    """Recourse for one refused applicant of a synthetic loan book.

    In a terminal it asks you; without one it simulates a person.
    """
    from pear.cli.conversation import hold, make_console
    from pear.datasets import (
        loan_book_classifier,
        loan_book_people,
        loan_book_problem,
    )
    from pear.elicitation import Session
    from pear.errors import InvalidSetting
    from pear.planning.exact import ExactPlanner
    from pear.preferences import default_prior

    console = make_console()
    people = loan_book_people()
    if person not in people:
        raise InvalidSetting(f"'person' must be one of {', '.join(people)} (got {person!r})")
    problem = loan_book_problem()
    with console.status("Training the lender's model on the loan book…"):
        black_box = loan_book_classifier(problem)
    planner = ExactPlanner(problem, black_box)
    session = Session(planner, people[person], default_prior(problem), seed=seed, k=k)
    record = ", ".join(
        f"{feature.words} {feature.show(code)}"
        for feature, code in zip(problem.space.features, session.start, strict=True)
    )
    score = float(black_box.score(session.start[None])[0])
    console.print(f"[b]{person}[/b] applied for a loan: {escape(record)}.")
    console.print(
        f"The lender's model gives a score of {score:.2f}; above {problem.goal.threshold:g} is "
        "approved. The application was [b]refused[/b].\n"
    )
    if sys.stdin.isatty() and not simulate:
        console.print(f"You are {person}. Which plans would you rather do?\n")
        try:
            hold(console, session)
        except (KeyboardInterrupt, EOFError):
            console.print("\nStopped.")
            raise typer.Exit(130) from None
    else:
        _simulate(console, session, planner, seed)


def _simulate(console: Console, session: Session, planner: ExactPlanner, seed: int) -> None:
    import numpy as np

    from pear.cli.conversation import LETTERS, show_question, show_result, with_reasons
    from pear.elicitation.simulation import SimulatedPerson, question_of

    problem = planner.problem
    rng = np.random.default_rng([seed, 7])
    weights = session.prior.sample(1, rng)[0][0]
    person = SimulatedPerson(weights, session.settings.response)
    console.print("Nobody is at the terminal, so a person is simulated.\n")
    while (question := session.ask()) is not None:
        show_question(console, session, question)
        choice = person.choose(question_of(session, question.plans), rng)
        console.print(f"The person picks plan {LETTERS[choice].upper()}.\n")
        session.answer(choice)
    result = with_reasons(session, session.result())
    show_result(console, result)
    best = planner.plan(session.start, weights)
    cost = float(
        problem.costs.sequence_cost(session.start, problem.actions, result.plan.moves, weights)
    )
    console.print(
        f"{session.n_answers} questions. By the simulated person's true preferences this plan "
        f"costs {cost:.1f}; the cheapest that exists costs {best.cost:.1f}: "
        f"regret {max(0.0, cost - best.cost):.1f}."
    )

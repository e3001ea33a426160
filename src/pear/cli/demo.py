"""``pear demo``: the whole job on the loan book, with you or with a simulated person."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pear.cli.conversation import Conversation
    from pear.planning.exact import ExactPlanner


def command(
    person: Annotated[str, typer.Option(help="Which applicant of the loan book.")] = "Amina",
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    k: Annotated[int, typer.Option(help="Plans per question, 2 to 4.", min=2, max=4)] = 2,
    language: Annotated[str, typer.Option(help="en, de, it or es.")] = "en",
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate the person even in a terminal.")
    ] = False,
) -> None:
    """Recourse for one refused applicant of a synthetic loan book.

    In a terminal it asks you; without one it simulates a person.
    """
    from pear.cli.conversation import Conversation, Whole, make_console, print_whole
    from pear.cli.keys import single_keys
    from pear.datasets import (
        loan_book_classifier,
        loan_book_people,
        loan_book_problem,
    )
    from pear.decision.used_features import mark_used
    from pear.elicitation import Session
    from pear.elicitation.words import points
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
    problem = mark_used(problem, black_box)
    planner = ExactPlanner(problem, black_box)
    session = Session(planner, people[person], default_prior(problem), seed=seed, k=k)
    conversation = Conversation(console, session, language)
    required = problem.goal.required()
    score = float(black_box.score(session.start[None])[0])
    refused = conversation.texts(
        "ask.refused", name=person, points=points(score, required), required=points(required)
    )
    print_whole(console, Whole(refused))
    features = conversation.words.problem.space.features
    facts = ", ".join(
        f"{feature.words} {feature.show(code)}"
        for feature, code in zip(features, session.start, strict=True)
        if feature.used
    )
    print_whole(console, Whole(conversation.texts("ask.used", facts=facts), "dim"))
    console.print()
    if sys.stdin.isatty() and not simulate:
        try:
            with single_keys():
                conversation.held(lambda: None)
        except (KeyboardInterrupt, EOFError):
            console.print("\nStopped.")
            raise typer.Exit(130) from None
    else:
        _simulate(conversation, planner, seed)


def _simulate(conversation: Conversation, planner: ExactPlanner, seed: int) -> None:
    import numpy as np

    from pear.elicitation.simulation import SimulatedPerson, question_of

    console, session, problem = conversation.console, conversation.session, planner.problem
    rng = np.random.default_rng([seed, 7])
    weights = session.prior.sample(1, rng)[0][0]
    person = SimulatedPerson(weights, session.settings.response)
    console.print("Nobody is at the terminal, so a person is simulated.\n")
    while (standing := session.standing()).question is not None:
        told = conversation.show_question(standing)
        choice = person.choose(question_of(session, standing.question.plans), rng)
        console.print(f"The person picks plan {told.letters[choice]}.\n")
        session.answer(choice)
    conversation.show_result(standing)
    assert standing.result is not None
    best, moves = planner.plan(session.start, weights), standing.result.plan.moves
    cost = float(problem.costs.sequence_cost(session.start, problem.actions, moves, weights))
    console.print(
        f"\n{session.n_answers} questions. By the simulated person's true preferences this plan "
        f"costs {cost:.1f}; the cheapest that exists costs {best.cost:.1f}: "
        f"regret {max(0.0, cost - best.cost):.1f}."
    )

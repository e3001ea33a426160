"""The walks of docs/architecture.md, held to what the loan book's people really pass through."""

import pytest

from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
from pear.decision.ceilings.white_box import Scorer, WhiteBox
from pear.elicitation import Session
from pear.planning.exact import ExactPlanner

from .walks import CLOSED, PAGE, files_entered, hold_to_the_page

# Like the model itself, its arithmetic with one person's options is no part of the walk.
DOORS = (*CLOSED, WhiteBox.specialise, WhiteBox.scores, WhiteBox.scorer, Scorer.scores)
FOR_LONG_SEARCHES = {"planning/exact/heuristics.py", "decision/ceilings/white_box.py"}
"""Told and counted, though not every person of the loan book passes them."""


@pytest.fixture(scope="module")
def planner():
    problem = loan_book_problem()
    planner = ExactPlanner(problem, loan_book_classifier(problem))
    planner.plan(problem.state(loan_book_people()["Amina"]), problem.usual_weights)
    assert planner.black_box.inside is not None
    return planner  # Everything that is derived only once is there now.


def split(entered):
    """Files of the walk, and the nouns of ``problem`` among them."""
    nouns = {name for name in entered if name.startswith("problem/")}
    return set(entered) - nouns, nouns


def test_the_walk_of_plan(planner):
    problem, people = planner.problem, loan_book_people()
    walked, seen = set(), set()
    for person in people.values():
        state = problem.state(person)
        entered, nouns = split(
            files_entered(lambda state=state: planner.plan(state, problem.usual_weights), DOORS)
        )
        seen |= nouns
        walked |= entered
    hold_to_the_page("plan", walked | FOR_LONG_SEARCHES, most=10)
    assert len(seen) <= 7
    assert all(f"`{name}`" in PAGE.read_text() for name in seen)


def test_the_walk_of_ask(planner):
    walked, seen = set(), set()
    for person in ("Amina", "Ben"):
        session = Session(planner, loan_book_people()[person])
        for _ in range(2):
            entered, nouns = split(files_entered(session.ask, DOORS))
            walked, seen = walked | entered, seen | nouns
            session.answer(0)
    hold_to_the_page("ask", walked | FOR_LONG_SEARCHES, most=16)
    assert all(f"`{name}`" in PAGE.read_text() for name in seen)


def test_what_a_walk_enters_is_seen_in_order():
    problem, person = loan_book_problem(), loan_book_people()["Amina"]
    entered = files_entered(lambda: problem.state(person))
    assert entered[:2] == ("problem/problem.py", "problem/features.py")
    assert files_entered(lambda: None) == ()


def test_nothing_behind_a_door_is_seen(planner):
    states = planner.problem.states([loan_book_people()["Amina"]])
    assert files_entered(lambda: planner.black_box.score(states)) == ("decision/blackbox.py",)
    assert len(files_entered(lambda: planner.black_box.score(states), ())) > 1

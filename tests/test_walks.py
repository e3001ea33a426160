"""The walks of docs/architecture.md, held to what the loan book's people really pass through."""

import pytest

from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
from pear.decision.ceilings.inside import Inside
from pear.elicitation import Session
from pear.planning.exact import ExactPlanner

from .walks import CLOSED, PAGE, files_entered, hold_to_the_page, walk_told

# Like the model itself, its arithmetic with one person's options is no part of the walk.
DOORS = (*CLOSED, Inside.specialise, Inside.scores)
MET_BY_SOME = {"planning/exact/heuristics.py", "decision/ceilings/inside.py"}


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
    seen = set()
    for name, person in people.items():
        state = problem.state(person)
        entered, nouns = split(
            files_entered(lambda state=state: planner.plan(state, problem.usual_weights), DOORS)
        )
        seen |= nouns
        if name == "Amina":
            hold_to_the_page("plan", entered, most=10, besides=MET_BY_SOME)
        assert entered <= set(walk_told("plan")) | MET_BY_SOME
    assert len(seen) <= 9
    assert all(f"`{name}`" in PAGE.read_text() for name in seen | MET_BY_SOME)


def test_the_walk_of_ask(planner):
    walked, seen = set(), set()
    for person in ("Amina", "Ben"):
        session = Session(planner, loan_book_people()[person])
        for _ in range(2):
            entered, nouns = split(files_entered(session.ask, DOORS))
            walked, seen = walked | entered, seen | nouns
            session.answer(0)
    hold_to_the_page("ask", walked, most=16, besides=MET_BY_SOME)
    assert all(f"`{name}`" in PAGE.read_text() for name in seen)


def test_what_a_walk_enters_is_seen_in_order():
    problem, person = loan_book_problem(), loan_book_people()["Amina"]
    entered = files_entered(lambda: problem.state(person))
    assert entered[:2] == ("problem/problem.py", "problem/feature_space.py")
    assert files_entered(lambda: None) == ()


def test_nothing_behind_a_door_is_seen(planner):
    states = planner.problem.states([loan_book_people()["Amina"]])
    assert files_entered(lambda: planner.black_box.score(states)) == ("decision/blackbox.py",)
    assert len(files_entered(lambda: planner.black_box.score(states), ())) > 1

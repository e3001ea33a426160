"""Questions and conversations as tables and pictures; showing them never searches."""

import pytest

from pear import ExactPlanner, Session
from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem


@pytest.fixture(scope="module")
def planner():
    problem = loan_book_problem()
    return ExactPlanner(problem, loan_book_classifier(problem))


@pytest.fixture
def session(planner):
    session = Session(planner, loan_book_people()["Amina"])
    session.ask()
    session.answer(1)
    session.exclude(feature="overdue")
    session.ask()
    session.answer("none")
    return session


def test_a_question_is_a_table_of_its_plans(planner):
    question = Session(planner, loan_book_people()["Amina"]).ask()
    table = question.to_frame()
    assert list(table.index.names) == ["plan", "step"]
    for place, plan in enumerate(question.plans):
        assert list(table.loc["AB"[place], "words"]) == [step.words for step in plan.steps]
    assert repr(question) == f"Question(1: 2 plans, {question.questions_left} left)"
    assert "which would you rather do" in question._repr_html_()


def test_a_conversation_is_a_table_of_what_was_said(session):
    table = session.to_frame()
    assert list(table["said"]) == ["answer", "exclude", "answer"]
    assert list(table["words"]) == ["plan B", "Change your overdue bills", "none of these"]
    session.undo()
    assert len(session.to_frame()) == 2


def test_the_plans_in_the_table_are_those_asked_about(planner):
    session = Session(planner, loan_book_people()["Amina"])
    question = session.ask()
    session.answer("same")
    row = session.to_frame().iloc[0]
    for letter, plan in zip("AB", question.plans, strict=True):
        assert row[letter] == "; ".join(step.words for step in plan.steps)


def test_showing_a_conversation_asks_the_model_nothing(session):
    before = session.planner.black_box.rows
    assert repr(session) == "Session(2 answers, 1 limit)"
    assert "Session(2 answers, 1 limit)" in session._repr_html_()
    assert session.finished is False
    pytest.importorskip("matplotlib").use("Agg")
    session.plot()
    for name in ("start", "limits", "n_answers", "finished", "posterior"):
        getattr(session, name)
    assert session.planner.black_box.rows == before


def test_an_accepted_plan_is_said(planner):
    session = Session(planner, loan_book_people()["Amina"])
    session.accept()
    assert repr(session) == "Session(0 answers, 0 limits, plan accepted)"
    assert list(session.to_frame()["words"]) == ["this one is fine"]


def test_what_is_believed_is_drawn_before_and_after(session):
    pytest.importorskip("matplotlib").use("Agg")
    axes = session.plot()
    said = [text.get_text() for text in axes.get_legend().get_texts()]
    assert said == ["before", "after 2 answers"]
    assert len(axes.get_yticks()) == len(session.planner.problem.actions.actionable)

"""What a person is told: plans aligned row by row, times and money, in words of one language."""

from dataclasses import replace

import numpy as np
import pytest

from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
from pear.elicitation import Session, Words
from pear.elicitation.says import DoneStep
from pear.elicitation.shown import Question, Standing, aligned, differences, tell
from pear.elicitation.words import catalogue
from pear.planning.exact import ExactPlanner
from pear.planning.planner import plan_from_moves
from pear.problem import Certificate
from pear.problem.limits import Limit
from tests.elicitation.small_lender import PERSON, lender

PLANNER, CERTIFICATE = lender(), Certificate("heuristic")
# Moves of the small lender: 0 to 3 earn 2, 4, 6, 8; 4 to 7 save; 8 to 11 repay; 12 settle.


def plans(*moves):
    state, weights = PLANNER.problem.state(PERSON), np.ones(7)
    return tuple(
        plan_from_moves(PLANNER, state, m, weights, Certificate("heuristic"), method="script")
        for m in moves
    )


def told_question(*moves, left=1):
    shown = plans(*moves)
    question = Question(1, shown, differences(shown), 1.0, questions_left=left)
    standing = Standing("question", 0.1, 0.5, 0, question=question)
    return tell(standing, Words(PLANNER.problem)).question


def test_rows_are_things_to_do_and_those_that_differ_come_first():
    rows = aligned(plans((0, 9), (3, 9, 12)))
    assert [(row.feature, row.shared) for row in rows] == [
        ("income", False),
        ("job", False),
        ("debt", True),
    ]
    assert [step and step.after for step in rows[1].steps] == [None, rows[1].step.after]
    assert rows[1].one_way
    assert not rows[0].one_way


def test_a_value_that_differs_stands_in_its_cell_and_one_step_is_done_or_not():
    question = told_question((0, 9), (3, 9, 12))
    income, settle = question.lines
    assert income.label == "Monthly income"
    assert income.now == "now\N{NO-BREAK SPACE}10"
    assert [cell.value for cell in income.cells] == ["12", "18"]
    assert all(cell.refusals for cell in income.cells)
    assert [cell.value for cell in settle.cells] == ["no", "yes"]
    assert [line.label for line in question.shared][:1] == [
        PLANNER.problem.say(plans((9,))[0].steps[0])
    ]


def test_the_same_steps_in_another_order_are_told_as_orders():
    (line,) = told_question((1, 9), (9, 1)).lines
    assert line.label == "Order"
    assert line.cells[0].value == "Monthly income, Monthly debt"
    assert line.cells[1].value == "Monthly debt, Monthly income"


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (1, "This may be the last question."),
        (2, "About 1 more after this."),
        (4, "About 3 more after this."),
    ],
)
def test_progress_is_what_is_left_after_this_question(left, words):
    assert told_question((1,), (9,), left=left).progress == words


@pytest.fixture(scope="module")
def loan_book():
    problem = loan_book_problem()
    session = Session(
        ExactPlanner(problem, loan_book_classifier(problem)), loan_book_people()["Amina"]
    )
    return problem, session, session.result()


def test_a_plan_says_its_time_its_loan_and_what_it_reaches(loan_book):
    problem, session, result = loan_book
    standing = replace(session.standing(), stage="plan", question=None, result=result)
    plan = tell(standing, Words(problem)).result.plan
    weeks = sum(step.weeks for step in result.plan.steps)
    assert plan.time == f"up to {Words(problem).time(weeks)}"
    assert "a month" in plan.loan
    assert plan.loan_in_all.startswith("You would pay back €")
    assert plan.points > 50
    assert [step.after for step in plan.steps][-1] == plan.points
    assert plan.money == "€150 once, plus an amount we don’t know", "what is owed is not known"
    dear = replace(result.plan.steps[0], once=200.0, monthly=15.0)
    standing = replace(standing, result=replace(result, plan=replace(result.plan, steps=(dear,))))
    assert tell(standing, Words(problem)).result.plan.money == "€200 once, €15 a month"


def test_a_stored_standing_is_told_in_every_language_with_its_own_words(loan_book):
    problem, session, _ = loan_book
    standing = Standing.from_dict(session.standing().to_dict())
    english = tell(standing, Words(problem)).question
    for language in ("de", "it", "es"):
        texts = replace(catalogue("en"), language=language)
        other = tell(standing, Words(problem, texts)).question
        assert len(other.lines) == len(english.lines)
        for mine, theirs in zip(english.lines, other.lines, strict=True):
            assert mine.label != theirs.label


def test_a_step_that_can_only_be_done_or_not_is_refused_whole(loan_book):
    words = Words(loan_book[0])
    assert words.limit(Limit("feature", "guarantor")) == "Find someone to vouch for you"
    assert words.limit(Limit("beyond", "savings", 3000.0, "up")) == "Savings: €3,000 or more"
    done = DoneStep("savings", 900.0, 1500.0, "old words")
    assert words.step(done) == "old words"


def test_a_step_that_is_done_does_not_say_what_is_now(loan_book):
    said = {
        language: Words(loan_book[0], catalogue(language)).step(
            DoneStep("debt_payments", 210.0, 160.0, "", "pay_down_debts", -50)
        )
        for language in ("en", "de")
    }
    assert said["en"] == "Bring your monthly payments on other debts down to €160"
    assert said["de"] == "Monatsraten für andere Schulden auf 160\N{NO-BREAK SPACE}€ senken"


def test_what_two_actions_do_is_named_by_what_it_is_about(loan_book):
    problem, session, _ = loan_book
    move = problem.actions.move
    plans = [
        problem.make_plan(
            session.start, [one], np.ones(problem.costs.n_weights), np.zeros(2), CERTIFICATE
        )
        for one in (move("pay_down_debts", -50), move("pay_off_debts", 0))
    ]
    question = Question(1, tuple(plans), differences(plans), 1.0)
    (line,) = tell(
        Standing("question", 0.1, 0.5, 0, question=question), Words(problem)
    ).question.lines
    assert line.label == "Monthly payments on other debts"
    assert line.now == "now\N{NO-BREAK SPACE}€210"


@pytest.mark.parametrize(
    ("weeks", "words"),
    [(0, "at once"), (1, "1 week"), (8, "8 weeks"), (13, "3 months"), (104, "2 years")],
)
def test_times_are_rough(weeks, words):
    assert Words(PLANNER.problem).time(weeks).replace("\N{NO-BREAK SPACE}", " ") == words


@pytest.mark.parametrize(("just_enough", "thin"), [(0.01, False), (0.05, True), (0.0, False)])
def test_what_only_just_enough_means_is_the_lenders_to_say(just_enough, thin):
    problem = PLANNER.problem
    own = replace(problem, goal=replace(problem.goal, just_enough=just_enough))
    assert own.fingerprint == problem.fingerprint, "no plan depends on it"
    [plan] = plans((3, 9))
    over = replace(plan, score=0.548)  # 54 points, 50 required.
    question = Question(1, (over, over), (), 1.0, questions_left=1)
    told = tell(Standing("question", 0.1, 0.5, 0, question=question), Words(own)).question
    assert [plan.thin for plan in told.plans] == [thin, thin]


def test_a_margin_of_the_goal_is_one_that_every_plan_keeps():
    problem = loan_book_problem()
    careful = replace(problem, goal=replace(problem.goal, margin=0.1))
    person = loan_book_people()["Ben"]
    session = Session(ExactPlanner(careful, loan_book_classifier(careful)), person)
    told = tell(session.standing(), Words(careful))
    assert told.required == 60
    assert min(plan.points for plan in told.question.plans) > 60
    assert session.recommend().plan.score > 0.6


def test_what_is_not_known_of_a_step_is_not_said_of_its_plan():
    problem = PLANNER.problem
    [plan] = plans((3, 9))
    steps = [replace(step, weeks=weeks, once=once) for step, weeks, once in zip(
        plan.steps, (8, None), (0, None), strict=True)]  # fmt: skip
    half, whole = (
        replace(plan, steps=tuple(chosen))
        for chosen in (steps, [replace(s, weeks=8, once=0) for s in steps])
    )
    paid = replace(whole, steps=tuple(replace(step, once=50) for step in whole.steps))
    unknown = replace(plan, steps=tuple(replace(step, weeks=None) for step in plan.steps))
    words = Words(problem)
    assert [words.plan_time(one) for one in (half, whole, unknown)] == [
        "at least 8\N{NO-BREAK SPACE}weeks", "up to 4\N{NO-BREAK SPACE}months", ""
    ]  # fmt: skip
    question = Question(1, (half, whole, paid, unknown), (), 1.0, questions_left=1)
    facts = tell(Standing("question", 0.1, 0.5, 0, question=question), words).question.facts
    time, money = ([cell.value for cell in line.cells] for line in facts[:2])
    assert time[3] == "not known"
    assert money[:2] == ["not known", "nothing to pay"]
    assert money[3] == "not known"

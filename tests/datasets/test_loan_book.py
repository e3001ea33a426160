"""The loan book: its people are plausible, its lender consistent, its plans sensible."""

import numpy as np
import pytest

from pear.datasets import (
    loan_book_classifier,
    loan_book_people,
    loan_book_problem,
    loan_book_table,
)
from pear.datasets.loan_book import UNSEEN, instalment, one_hot_columns
from pear.errors import InvalidSetting


@pytest.fixture(scope="module")
def problem():
    return loan_book_problem()


@pytest.fixture(scope="module")
def lender(problem):
    return loan_book_classifier(problem)


@pytest.fixture(scope="module")
def people(problem):
    return problem.space.encode(loan_book_table(4_000, seed=11).drop(columns="approved"))


def test_same_seed_same_people_and_another_seed_others():
    assert loan_book_table(500, seed=3).equals(loan_book_table(500, seed=3))
    assert not loan_book_table(500, seed=3).equals(loan_book_table(500, seed=4))


def test_the_default_book_holds_20000_applicants_of_16_columns():
    assert loan_book_table().shape == (20_000, 16)


def test_no_applicants_are_refused_with_the_value():
    with pytest.raises(InvalidSetting, match=r"'n' must be at least 1 \(got 0\)"):
        loan_book_table(0)


def test_the_structural_model_holds_what_it_says():
    table = loan_book_table(seed=2)
    by_sex = table.groupby("sex").monthly_income.mean()
    assert 0.88 < by_sex["female"] / by_sex["male"] < 0.97
    degree = table.education.isin(["bachelor's degree", "master's degree"])
    assert (table[degree].occupation == "manager").mean() > 0.15
    assert (table[~degree].occupation == "manager").mean() < 0.02
    assert (
        table[table.overdue == 0].approved.mean() > table[table.overdue > 1].approved.mean() + 0.2
    )
    refused = 1 - table.groupby("sex").approved.mean()
    assert refused["female"] > refused["male"]


def test_an_instalment_pays_the_loan_back_with_interest():
    # 12,000 over 12 months at 7.5%: 0.00625 * 12000 / (1 - 1.00625^-12) = 1041.09
    assert instalment(np.array([12_000.0]), np.array([12.0])) == pytest.approx([1_041.09], abs=0.01)


def test_the_problem_has_every_kind_of_feature(problem):
    kinds = {feature.kind for feature in problem.space.features}
    assert kinds == {"numeric", "integer", "categorical", "boolean"}
    assert problem.space["sex"].protected
    assert sum(archetype.share for archetype in problem.archetypes) == pytest.approx(1.0)
    low, high = problem.weight_ranges.T
    for archetype in problem.archetypes:
        assert ((low <= archetype.mean) & (archetype.mean <= high)).all(), archetype.name


def test_nobody_is_told_to_borrow_more_or_to_study_backwards(problem, people):
    allowed, results = problem.actions.allowed(people), problem.actions.results(people)
    current = people[:, problem.actions.feature_of]
    for feature, sign in {
        "debt_payments": -1,
        "card_use": -1,
        "overdue": -1,
        "loan_amount": -1,
        "education": 1,
        "monthly_income": 1,
        "savings": 1,
    }.items():
        here = problem.actions.feature_of == problem.space.index(feature)
        changes = ((results - current) * sign)[:, here]
        assert (changes[allowed[:, here]] > 0).all()


def test_a_managerial_job_needs_a_degree(problem):
    amina = problem.state(loan_book_people()["Amina"])
    manage = problem.actions.move("become_manager", "manager")
    study = problem.actions.move("study", "bachelor's degree")
    assert not problem.actions.allowed(amina)[0, manage]
    graduate = problem.actions.apply(amina[None], np.array([study]))
    assert problem.actions.allowed(graduate)[0, manage]


def test_steps_read_like_sentences(problem):
    ben = problem.state(loan_book_people()["Ben"])
    move = problem.actions.move("earn_more", 500)
    words = problem.actions.phrase(move, ben[problem.space.index("monthly_income")], 1_850)
    assert words == "Raise your monthly income to €1,850 (now €1,350)"


def test_the_lender_is_accurate_and_refuses_nearly_half(lender, problem):
    table = loan_book_table(4_000, seed=11)
    decided = lender.favourable(problem.space.encode(table.drop(columns="approved")))
    assert (decided == table.approved).mean() > 0.87
    assert 0.4 < (~decided).mean() < 0.5


def test_the_lender_never_sees_sex_or_education(lender, problem, people):
    changed = people.copy()
    for name in UNSEEN:
        column = problem.space.index(name)
        changed[:, column] = (changed[:, column] + 1) % len(problem.space[name].categories)
    assert np.array_equal(lender.score(changed), lender.score(people))
    assert len(one_hot_columns(problem.space, UNSEEN)) == 2 + 5


def test_steps_about_money_do_not_lower_the_score(lender, problem, people):
    scores = lender.score(people)
    allowed = problem.actions.allowed(people)
    money = ("earn_more", "save", "pay_down_debts", "catch_up", "ask_for_less", "find_guarantor")
    for move in range(len(problem.actions)):
        name = problem.actions.actions[problem.actions.action_of[move]].name
        here = allowed[:, move]
        if name in money and here.any():
            after = problem.actions.apply(people[here], np.full(here.sum(), move))
            assert (lender.score(after) - scores[here]).min() > -0.02, name


def test_same_seed_same_lender(problem, lender):
    assert loan_book_classifier(problem).fingerprint == lender.fingerprint
    assert loan_book_classifier(problem, seed=1).fingerprint != lender.fingerprint


@pytest.mark.parametrize("name", list(loan_book_people()))
def test_the_examples_are_refused_and_two_steps_that_suit_them_differ(name, problem, lender):
    person = problem.state(loan_book_people()[name])
    assert not lender.favourable(person[None])[0]
    plans = _favourable_pairs(problem, lender, person)
    assert len(plans) > 1
    means = np.array([archetype.mean for archetype in problem.archetypes])
    costs = np.array(
        [problem.costs.sequence_cost(person, problem.actions, plan, means) for plan in plans]
    )
    assert len(set(costs.argmin(axis=0).tolist())) > 1
    assert (costs.min(axis=0) > 1).all()
    assert (costs.min(axis=0) < 150).all()


def test_most_refused_people_have_a_plan_of_two_steps(problem, lender, people):
    refused = people[~lender.favourable(people)][:40]
    solved = [len(_favourable_pairs(problem, lender, person)) > 0 for person in refused]
    assert np.mean(solved) > 0.8


def _favourable_pairs(problem, lender, person):
    """All plans of two changes of different features that overturn the decision."""
    actions = problem.actions
    first = np.flatnonzero(actions.allowed(person[None])[0])
    middle = actions.apply(np.repeat(person[None], len(first), 0), first)
    rows, second = np.nonzero(actions.allowed(middle))
    other = actions.feature_of[first[rows]] != actions.feature_of[second]
    rows, second = rows[other], second[other]
    good = lender.favourable(actions.apply(middle[rows], second))
    return np.column_stack([first[rows], second])[good]

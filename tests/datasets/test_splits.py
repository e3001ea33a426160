"""Splits and user sets: sizes, seeds, and who is in them."""

import numpy as np
import pandas as pd
import pytest

from pear.datasets import adult_problem, load_dataset, loan_book_classifier, user_set
from pear.datasets.splits import expressible
from pear.decision import BlackBox
from pear.errors import InvalidSetting


@pytest.fixture(scope="module")
def book():
    return load_dataset("loan_book")


def test_everybody_is_in_exactly_one_part(book):
    parts = np.concatenate([book.train, book.validation, book.test])
    assert np.array_equal(np.sort(parts), np.arange(len(book.states)))
    assert (len(book.train), len(book.validation), len(book.test)) == (14_000, 2_000, 4_000)


def test_same_seed_same_split(book):
    assert load_dataset("loan_book").fingerprint == book.fingerprint
    other = load_dataset("loan_book", seed=1)
    assert other.fingerprint != book.fingerprint
    assert not np.array_equal(other.test, book.test)


def test_an_unknown_data_set_is_refused():
    with pytest.raises(InvalidSetting, match="must be one of adult, givemecredit, loan_book"):
        load_dataset("compas")


def test_all_users_are_refused_test_people(book):
    lender = loan_book_classifier(book.problem)
    users = user_set(book, lender, "all")
    assert len(users.rows) == len(set(users.rows.tolist())) == 300
    assert set(users.rows.tolist()) <= set(book.test.tolist())
    assert np.array_equal(users.states, book.states[users.rows])
    assert (users.scores <= 0.5).all()
    assert np.array_equal(lender.score(users.states), users.scores)


def test_hard_users_are_the_lowest_quarter(book):
    lender = loan_book_classifier(book.problem)
    scores = lender.score(book.states[book.test])
    edge = np.quantile(scores[scores <= 0.5], 0.25)
    hard = user_set(book, lender, "hard")
    assert len(hard.rows) == 300
    assert (hard.scores <= edge).all()
    assert hard.scores.mean() < user_set(book, lender, "all").scores.mean() / 2


def test_users_are_seeded_and_never_drawn_twice(book):
    lender = loan_book_classifier(book.problem)
    assert np.array_equal(user_set(book, lender).rows, user_set(book, lender).rows)
    assert not np.array_equal(user_set(book, lender).rows, user_set(book, lender, seed=1).rows)
    everybody = user_set(book, lender, n=10**6)
    assert len(set(everybody.rows.tolist())) == len(everybody.rows)


def test_a_lender_who_accepts_all_leaves_no_users(book):
    kind = BlackBox(lambda s: np.ones(len(s)), book.problem.space, name="kind")
    assert len(user_set(book, kind, "hard").rows) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"kind": "easy"}, "'kind' must be all or hard"), ({"n": 0}, "'n' must be at least 1")],
)
def test_settings_out_of_range(book, settings, message):
    with pytest.raises(InvalidSetting, match=message):
        user_set(book, loan_book_classifier(book.problem), **settings)


def test_rows_with_categories_the_problem_lacks_are_left_out():
    space = adult_problem().space
    row = {f.name: f.categories[0] for f in space.features if f.is_categorical}
    table = pd.DataFrame([row, row | {"native_country": "Holand-Netherlands"}])
    assert expressible(space, table).tolist() == [True, False]


@pytest.mark.parametrize(("name", "people"), [("adult", 45_220), ("givemecredit", 120_269)])
def test_the_real_tables(name, people, real_data):
    data = load_dataset(name)
    assert data.states.shape == (people, len(data.problem.space))
    assert len(data.test) == pytest.approx(0.2 * people, abs=1)

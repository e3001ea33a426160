"""A problem said in another language is the same problem, written as people write there."""

import numpy as np
import pytest

from pear.datasets import loan_book_people, loan_book_problem
from pear.errors import InvalidProblem
from pear.problem.files import problem_from_toml, problem_to_toml
from tests.problem.examples import mixed_problem

LANGUAGES = ("de", "it", "es")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_loan_book_says_everything_in_every_language(language):
    problem = loan_book_problem()
    said = problem.words[language]
    assert set(said.labels) == set(problem.space.names)
    assert set(said.phrases) == {action.name for action in problem.actions.actions}
    for feature in problem.space.features:
        if feature.is_categorical:
            assert set(said.categories[feature.name]) == set(feature.categories)


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_another_language_changes_no_state_and_no_move(language):
    problem = loan_book_problem()
    other = problem.in_language(language)
    assert other.fingerprint == problem.fingerprint
    for record in loan_book_people().values():
        state = problem.state(record)
        assert np.array_equal(other.state(record), state)
        assert np.array_equal(other.actions.allowed(state), problem.actions.allowed(state))


def test_a_step_is_said_as_the_language_says_it():
    problem = loan_book_problem()
    state = problem.state(loan_book_people()["Amina"])
    moves = [problem.actions.move("ask_for_less", -2000), problem.actions.move("catch_up", 0)]
    plan = problem.make_plan(
        state, moves, np.ones(problem.costs.n_weights), np.zeros(3), _heuristic()
    )
    said = {
        language: [problem.in_language(language).say(step) for step in plan.steps]
        for language in ("en", *LANGUAGES)
    }
    assert said["en"] == ["Ask for €6,000 instead of €8,000", "Pay your 1 overdue bill"]
    assert said["de"] == [
        "Nur 6.000\N{NO-BREAK SPACE}€ statt 8.000\N{NO-BREAK SPACE}€ beantragen",
        "1 überfällige Rechnung bezahlen",
    ]
    assert said["it"][1] == "Paghi 1 bolletta scaduta"
    assert said["es"][1] == "Pague 1 factura vencida"
    assert said["en"] == [step.words for step in plan.steps]


def test_what_has_no_words_is_said_plainly_in_the_language():
    german = mixed_problem().in_language("de")
    earn = german.actions.move("earn", 100)
    assert german.actions.phrase(earn, 2100.0, 2200.0) == (
        "Einkommen von 2.100\N{NO-BREAK SPACE}€ auf 2.200\N{NO-BREAK SPACE}€ erhöhen"
    )
    assert german.space["owner"].show(1.0) == "ja"
    assert german.space["job"].show(1.0) == "manager"
    french = mixed_problem().in_language("fr")
    assert french.actions.phrase(earn, 2100.0, 2200.5).startswith("Increase your monthly income")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("labels = { incme = 'x' }", "words.de.labels.incme"),
        ("phrases = { earn = '{who}' }", "unknown field {who}"),
        ("categories = { job = { cook = 'x' } }", "'job' has no category 'cook'"),
        ("labels = { income = 3 }", "words.de.labels: 'labels' of 'income' must be a text .got 3"),
    ],
)
def test_words_for_nothing_are_refused(part, message):
    text = problem_to_toml(mixed_problem()).split("[words.de")[0]
    with pytest.raises(InvalidProblem, match=message.replace("{", r"\{")):
        problem_from_toml(f"{text}\n[words.de]\n{part}\n")


def _heuristic():
    from pear.problem import Certificate

    return Certificate("heuristic")

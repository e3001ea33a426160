"""Priors from choices: learned where there is something to learn, refused where not."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pear.elicitation import Session
from pear.elicitation.files import (
    Conversation,
    conversation_from_dict,
    read_conversations,
)
from pear.errors import InvalidData, InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.portfolio import prior_fit
from pear.portfolio.audit import audit
from pear.portfolio.beliefs import learned_weights, predict_choices
from pear.portfolio.prior_fit import FitSettings, _read_all, fit_prior
from pear.preferences import Chosen, GaussianMixturePrior, Logistic, Question, default_prior
from pear.statistics import sign_test
from tests.portfolio.small_problem import PROBLEM, black_box, people
from tests.portfolio.test_audit import portfolio

WIDE = GaussianMixturePrior([[10.0, 10.0, 10.0]], [[36.0, 36.0, 36.0]])
PEOPLE = GaussianMixturePrior(
    [[16.0, 4.0, 10.0], [4.0, 16.0, 10.0]], np.full((2, 3), 1.0), background_weight=0.0
)
QUICK = FitSettings(rounds=3, n_particles=200, n_draws=8)


def conversations(prior, n=80, questions=5, seed=0, person=None):
    """People of a prior who choose between random plans of one or two steps."""
    rng = np.random.default_rng(seed)
    weights, _ = prior.sample(n, rng)
    found = []
    for number, own in enumerate(weights):
        answered = []
        for _ in range(questions):
            plans = [rng.uniform(0, 1, (int(rng.integers(1, 3)), 3)) for _ in range(2)]
            question = Question.from_plans(plans, floor=1.0)
            logs = Logistic(0.9).log_probabilities(question.costs(own[None]))[0]
            answered.append((question, Chosen(int(rng.random() < np.exp(logs[1])))))
        who = {"sex": "female", "age": 30} if person is None else person(number)
        found.append(Conversation(str(number), who, tuple(answered), finished=True))
    return found


def test_a_population_unlike_the_old_prior_is_learned():
    one_kind = GaussianMixturePrior([[16.0, 4.0, 10.0]], np.full((1, 3), 1.0), background_weight=0)
    fit = fit_prior(conversations(one_kind, 100), WIDE, QUICK)
    assert fit.better
    assert fit.new > fit.old
    assert fit.fitted_on + fit.checked_on == 100
    # The first is four times as hard for everybody; the old prior took both as equal.
    assert fit.prior.mean()[0] - fit.prior.mean()[1] > 6


def test_kinds_of_people_are_told_apart():
    fit = fit_prior(
        conversations(PEOPLE, 120, questions=8), WIDE, replace(QUICK, rounds=6, components=2)
    )
    assert fit.better
    contrasts = np.sort(fit.prior.means @ [1.0, -1.0, 0.0])
    assert contrasts[0] < -5
    assert contrasts[-1] > 5


def test_who_talked_twice_is_never_both_fitted_and_checked_on(monkeypatch):
    told = conversations(WIDE, 40, questions=2)
    twice = [replace(one, id=str(number // 2)) for number, one in enumerate(told)]
    sets = []

    def record(people, prior, settings, seed, workers):
        sets.append({one.id for one in people})
        return _read_all(people, prior, settings, seed, workers)

    monkeypatch.setattr(prior_fit, "_read_all", record)
    fit = fit_prior(twice, WIDE, replace(QUICK, rounds=1, components=1))
    assert (fit.fitted_on, fit.checked_on, fit.gain.n) == (14, 6, 6)
    assert not sets[0] & sets[-1]
    with pytest.raises(InvalidSetting, match="'held_out' must leave 10 people"):
        fit_prior(twice, WIDE, FitSettings(held_out=0.9))


@pytest.mark.parametrize("seed", range(3))
def test_a_prior_that_is_right_already_is_not_replaced(seed):
    fit = fit_prior(conversations(WIDE, 60, seed=seed), WIDE, QUICK)
    assert not fit.better
    assert "Refused" in fit.words()


def test_answers_at_random_teach_nothing():
    rng = np.random.default_rng(5)
    deaf = [
        Conversation(
            c.id, c.person, tuple((q, Chosen(int(rng.integers(2)))) for q, _ in c.answered)
        )
        for c in conversations(PEOPLE, 60)
    ]
    narrow = GaussianMixturePrior([[10.0, 10.0, 10.0]], [[0.01, 0.01, 0.01]])
    assert fit_prior(deaf, narrow, QUICK).new < -0.6


def test_a_prior_worse_than_a_guess_is_told():
    fit = fit_prior(conversations(PEOPLE, 30, 3), WIDE, replace(QUICK, rounds=1, components=1))
    assert fit.guess == pytest.approx(np.log(0.5))
    better = replace(fit, old=-0.938, new=-0.815, gain=replace(fit.gain, mean=0.6), p=0.001)
    assert better.better
    assert not better.beats_guessing
    assert "-0.693 for a guess" in better.words()
    assert "worse than a guess: do not rely on it" in better.words()
    assert better.to_dict()["guess"] == fit.guess
    assert "worse than a guess" not in replace(better, new=-0.6).words()


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter():
    told = conversations(PEOPLE, 40)
    settings = replace(QUICK, rounds=1, components=1)
    one, two = (fit_prior(told, WIDE, settings, workers) for workers in (1, 2))
    assert one.prior.to_dict() == two.prior.to_dict()
    assert one.to_dict() == two.to_dict()


def test_too_few_conversations_are_refused():
    with pytest.raises(InvalidData, match="at least 20"):
        fit_prior(conversations(PEOPLE, 19), WIDE)
    silent = [Conversation(str(i), {}, ()) for i in range(50)]
    with pytest.raises(InvalidData, match="got 0 in 50"):
        fit_prior(silent, WIDE)


@pytest.mark.parametrize(
    "settings", [{"held_out": 1.0}, {"level": 0.0}, {"rounds": 0}, {"seed": -1}]
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(InvalidSetting, match=next(iter(settings))):
        FitSettings(**settings)


@pytest.mark.slow
def test_the_sign_flip_test_is_fair_without_a_difference():
    rng = np.random.default_rng(0)
    below = [sign_test(rng.standard_normal(30), rng, "greater")[0] <= 0.05 for _ in range(200)]
    assert 1 <= sum(below) <= 22


@pytest.fixture(scope="module")
def session():
    planner = ExactPlanner(PROBLEM, black_box())
    for person in people(40).drop(columns="id").to_dict("records"):
        talk = Session(planner, person, default_prior(PROBLEM), seed=2, min_gain=0.0)
        for choice in (0, 1, "same"):
            if talk.ask() is not None:
                talk.answer(choice)
        if len(talk.events) == 3:
            return talk
    raise AssertionError("nobody was worth three questions")


def test_a_stored_session_is_read_as_it_was_held(session, tmp_path):
    line = json.dumps({**session.to_dict(), "id": "person 7"})
    (tmp_path / "talks.jsonl").write_text(line + "\n\n")
    [found] = read_conversations(tmp_path / "talks.jsonl", PROBLEM)
    assert found.id == "person 7"
    assert found.n_questions == 3
    assert [type(answer).__name__ for _, answer in found.answered] == [
        "Chosen",
        "Chosen",
        "AboutTheSame",
    ]
    event = session.events[0]
    features = PROBLEM.costs.sequence_features(session.start, PROBLEM.actions, event.plans[0])
    assert np.array_equal(found.answered[0][0].features[0][: len(features)], features)
    reading = predict_choices(found, default_prior(PROBLEM), np.random.default_rng(0))
    assert len(reading.log_likelihoods) == 2
    assert (reading.log_likelihoods <= 0).all()
    count = len(PROBLEM.weight_names)
    assert learned_weights([found], default_prior(PROBLEM), 8)["person 7"].shape == (8, count)
    assert learned_weights([found], default_prior(PROBLEM), 1)["person 7"].shape == (1, count)


def test_names_with_odd_signs_and_the_number_of_a_line_are_nobody_elses(session, tmp_path):
    said = session.to_dict()
    texts = [json.dumps({**said, "id": name}, ensure_ascii=False) for name in ("a\u2028b", "3", "")]
    (tmp_path / "talks.jsonl").write_text("\ufeff" + "\n".join(texts), encoding="utf-8")
    found = read_conversations(tmp_path / "talks.jsonl", PROBLEM)
    assert [(one.id, one.named) for one in found[:2]] == [("a\u2028b", True), ("3", True)]
    assert found[2].id != "3"
    assert not found[2].named


def test_what_one_person_said_twice_counts_twice_and_the_nameless_teach_about_nobody(session):
    def read(name, **more):
        return conversation_from_dict({**session.to_dict(), **more}, PROBLEM, name)

    prior = default_prior(PROBLEM)
    one = read("1", id="person 7")
    longer = replace(one, answered=one.answered * 2)
    once, twice, at_length = (
        learned_weights(talks, prior, 8)["person 7"] for talks in ([one], [one] * 2, [longer])
    )
    assert np.array_equal(twice, at_length)
    assert not np.array_equal(twice, once)
    assert learned_weights([read("7")], prior, 8) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem_fingerprint": "another"}, "another problem"),
        ({"events": [{"kind": "answer"}]}, "'state' of a question must be 5 numbers"),
        ({"events": None}, "'events' must be a list"),
        ({"events": [3]}, "an event must be a JSON object"),
        ({"settings": None}, "'settings' must be a JSON object"),
        ({"settings": {"response": 3}}, "'response' must be a JSON object"),
        ({"person": {"age": 30}}, "'income' is missing"),
        ({"id": ["7"]}, "'id' must be a text or a number"),
        ({"limits": {"features": ["shoes"]}}, "there is no feature 'shoes'"),
        ({"events": [{"kind": "limits", "limits": None}]}, "limits must be a JSON object"),
    ],
)
def test_other_lines_are_refused_by_number(session, tmp_path, change, message):
    lines = [json.dumps(session.to_dict()), json.dumps({**session.to_dict(), **change})]
    (tmp_path / "talks.jsonl").write_text("\n".join(lines))
    with pytest.raises(InvalidData, match=f"line 2: .*{message}"):
        read_conversations(tmp_path / "talks.jsonl", PROBLEM)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [None, 1, 0, 0, 30]}, "impossible 'income' .got None"),
        ({"state": [1, 1, 0, 0, -4]}, "impossible 'age' .got -4"),
        ({"state": [1, 1, 7, 0, 30]}, "impossible 'job' .got 7"),
        ({"state": [1, float("nan"), 0, 0, 30]}, "impossible 'savings'"),
        ({"plans": 5}, "'plans' must be a list"),
        ({"plans": [[0], [99]]}, "numbers of its moves, below 8 .got .99"),
        ({"answer": {"kind": "chosen"}}, "no answer to a question"),
        ({"answer": {"kind": "chosen", "plan": 9}}, "plans on offer"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_by_its_line(session, tmp_path, change, message):
    event = {**session.events[0].to_dict(), **change}
    line = json.dumps({**session.to_dict(), "events": [event]})
    (tmp_path / "talks.jsonl").write_text(line)
    with pytest.raises(InvalidData, match=f"line 1: .*{message}") as refused:
        read_conversations(tmp_path / "talks.jsonl", PROBLEM)
    assert "object is not" not in str(refused.value)


def test_what_is_no_conversation_is_refused(tmp_path):
    (tmp_path / "broken.jsonl").write_text('{"events": [')
    with pytest.raises(InvalidData, match="line 1: this is not JSON from character 13 on"):
        read_conversations(tmp_path / "broken.jsonl", PROBLEM)
    with pytest.raises(InvalidData, match="no 'events'"):
        conversation_from_dict({"answers": []}, PROBLEM, "1")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InvalidData, match="no conversation"):
        read_conversations(tmp_path / "empty.jsonl", PROBLEM)
    with pytest.raises(InvalidData, match="there is no file"):
        read_conversations(tmp_path / "nowhere.jsonl", PROBLEM)


def test_the_audit_finds_the_group_a_prior_does_not_fit():
    right = GaussianMixturePrior([[16.0, 4.0, 10.0]], np.full((1, 3), 1.0), background_weight=0.0)
    other = GaussianMixturePrior([[4.0, 16.0, 10.0]], np.full((1, 3), 1.0), background_weight=0.0)
    told = conversations(right, 60, person=lambda _: {"sex": "male", "age": 30})
    women = conversations(other, 60, 7, 1, person=lambda _: {"sex": "female", "age": 30})
    told += [replace(one, id=f"woman {one.id}") for one in women]
    report = audit(PROBLEM, portfolio(), conversations=told, prior=right)
    female, male = report.attributes[0].groups
    assert female.cells["fit"].flagged
    assert female.cells["fit"].difference < 0
    assert female.cells["questions"].estimate.mean == 7
    assert male.cells["questions"].estimate.mean == 5
    given_up = [replace(one, finished=False) for one in told if one.person["sex"] == "female"]
    left = audit(PROBLEM, portfolio(), conversations=told[:60] + given_up).attributes[0].groups[0]
    assert left.cells["finished"].estimate.mean == 0.0
    assert left.cells["finished"].flagged
    assert left.cells["questions"].too_small
    assert report.conversations == 120

"""Stored conversations: damaged ones are refused in words, sound ones resume anywhere."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from pear.elicitation import Session, Settings
from pear.errors import ConversationError, InvalidRecord, InvalidSetting, PearError
from pear.preferences import Logistic
from tests.elicitation.small_lender import PERSON, lender, prior

NAN = float("nan")


@pytest.fixture(scope="module")
def stored():
    session = Session(lender(), PERSON, prior(), min_gain=0.0, n_particles=300, draws=12)
    session.answer(0)
    session.answer("same")
    session.answer("none")
    session.exclude(feature="savings")
    return session.to_json()


def damaged(text, path, value):
    data = json.loads(text)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(data)


ANSWER = ("events", 0, "answer")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), 3),
        (("format",), "2"),
        (("seed",), -1),
        (("seed",), 1.5),
        (("settings",), None),
        (("settings", "k"), "2"),
        (("settings", "min_gain"), None),
        (("settings", "advance"), "yes"),
        (("settings", "speed"), 1),
        (("settings", "response"), None),
        (("settings", "response"), {"model": "logistic", "sharpness": "x"}),
        (("settings", "response"), {"model": "logistic", "heat": 1}),
        (("settings", "response"), {"model": "per_sample_logistic", "sharpness": [1.0]}),
        (("person",), [1]),
        (("person",), {}),
        (("limits",), None),
        (("limits",), {"features": ["height"]}),
        (("events",), None),
        (("events",), {}),
        (ANSWER, None),
        (ANSWER, {"kind": "shrug"}),
        (ANSWER, {"kind": "chosen", "plan": 5}),
        (ANSWER, {"kind": "chosen", "plan": "a"}),
        (ANSWER, {"kind": "chosen", "plan": True}),
        (ANSWER, {"kind": "chosen", "plan": 0.5}),
        (ANSWER, {"kind": "none_of_these", "reservation": NAN, "spread": 1.0}),
        (ANSWER, {"kind": "none_of_these", "reservation": "x", "spread": 1.0}),
        (ANSWER, {"kind": "none_of_these", "reservation": 1.0, "spread": -1.0}),
        (ANSWER, {"kind": "about_the_same", "tolerance": "x"}),
        (("events", 0, "state"), None),
        (("events", 0, "state"), [1.0]),
        (("events", 0, "state"), ["a"] * 4),
        (("events", 0, "state"), [NAN] * 4),
        (("events", 0, "plans"), []),
        (("events", 0, "plans"), [[], [1]]),
        (("events", 0, "plans"), [[1], [99]]),
        (("events", 0, "plans"), [[True], [1]]),
        (("events", 0, "plans"), ["ab", "c"]),
        (("events", 3), {"kind": "limits"}),
        (("events", 3), {"kind": "limits", "limits": {"features": ["height"]}}),
        (("events", 3), {"kind": "accept", "moves": "zz"}),
        (("events", 3), {"kind": "accept"}),
        (("events", 0), {"kind": "accept", "moves": [1]}),
    ],
)
def test_a_damaged_conversation_is_refused_in_words(stored, path, value):
    with pytest.raises(PearError) as refused:
        Session.from_json(damaged(stored, path, value), lender(), prior())
    assert len(str(refused.value)) > 20


def test_a_conversation_stored_before_there_was_a_format_is_read(stored):
    data = json.loads(stored)
    del data["format"]
    del data["settings"]["estimate"]
    assert Session.from_dict(data, lender(), prior()).to_json() == stored


@pytest.mark.slow
def test_another_process_with_another_hash_seed_asks_the_same(stored):
    code = (
        "import sys; from pear.elicitation import Session\n"
        "from tests.elicitation.small_lender import lender, prior\n"
        "session = Session.from_json(sys.stdin.read(), lender(), prior())\n"
        "question, found = session.ask(), session.recommend()\n"
        "print(question and [p.moves for p in question.plans], session.posterior.mean())\n"
        "print(found.plan.moves, found.confidence, found.gain)"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            input=stored,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] != ""


def test_an_answer_interrupted_half_way_was_never_given(monkeypatch):
    session = Session(lender(), PERSON, prior(), min_gain=0.0, n_particles=300, draws=12)
    session.answer(0)
    before, question = session.to_json(), session.ask()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(session.posterior), "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.answer(1)
    assert session.to_json() == before
    assert session.n_answers == 1
    assert [p.moves for p in session.ask().plans] == [p.moves for p in question.plans]
    session.answer(1)
    session.undo()
    session.undo()
    assert session.n_answers == session.posterior.n_answers == 0


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "0"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(InvalidSetting, match="'seed'"):
        Session(lender(), PERSON, prior(), seed=seed)


@pytest.mark.parametrize("person", [np.zeros(2), [0.0, NAN, 0.0, 0.0], "Amina", None])
def test_a_person_that_is_none_is_refused_at_once(person):
    with pytest.raises(InvalidRecord, match=r"must hold 4 numbers|cannot be nan|must be a dict"):
        Session(lender(), person, prior())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"speed": 3}, "no setting 'speed'"),
        ({"min_gain": "a"}, "'min_gain'"),
        ({"min_gain": NAN}, "'min_gain'"),
        ({"k": 2.0}, "'k'"),
        ({"response": None}, "'response'"),
        ({"posterior": "prayer"}, "'posterior' must be particles or slices"),
        ({"estimate": "mode"}, "'estimate' must be mean or best_quarter"),
        ({"advance": "yes"}, "'advance' must be False or True"),
    ],
)
def test_a_setting_out_of_its_range_is_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        Session(lender(), PERSON, prior(), **settings)


def test_settings_given_as_numpy_numbers_are_stored_as_plain_ones():
    settings = Settings(k=np.int64(3), min_gain=np.float64(0.25), response=Logistic(2.0))
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_a_prior_of_other_weights_is_refused_at_once():
    other = prior().with_background(0.0)
    other = type(other)(other.means[:, :3], other.covariances[:, :3])
    with pytest.raises(InvalidSetting, match="7 entries"):
        Session(lender(), PERSON, other)


def test_an_accepted_plan_is_kept():
    session = Session(lender(), PERSON, prior(), min_gain=0.0, n_particles=300, draws=12)
    assert session.accepted() is None
    plan = session.accept(1)
    assert plan.moves != session.recommend().plan.moves
    again = Session.from_json(session.to_json(), session.planner, session.prior)
    assert session.accepted().moves == again.accepted().moves == plan.moves
    assert session.accepted().success
    session.undo()
    best = session.accept()
    assert session.accepted().moves == best.moves
    assert session.accepted().certificate.verdict == best.certificate.verdict


def test_where_there_is_no_plan_none_can_be_accepted():
    session = Session(lender(), PERSON, prior(), n_particles=300, draws=12)
    for feature in ("income", "debt", "job"):
        session.exclude(feature=feature)
    with pytest.raises(ConversationError, match="no plan to accept"):
        session.accept()
    for choice in (True, "a", 1.0):
        with pytest.raises(ConversationError, match="no plan"):
            session.accept(choice)

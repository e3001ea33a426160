"""Simulated people: seeds, workers, and the regret they are measured by."""

import numpy as np
import pandas as pd
import pytest

from pear.decision import from_callable
from pear.elicitation import Session, Settings, SimulatedPerson, regret_table, simulate
from pear.elicitation.says import Answered
from pear.elicitation.simulation import converse
from pear.errors import InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.preferences import Chosen, GaussianMixturePrior, Logistic, Noiseless
from pear.problem import Action, Feature, Problem
from tests.elicitation.small_lender import PERSON, lender, prior

QUICK = Settings(n_particles=300, draws=12)


def run(workers=1, seed=0, **more):
    planner = lender()
    states = np.repeat(planner.problem.state(PERSON)[None], 4, axis=0)
    weights = prior().sample(4, np.random.default_rng(1))[0]
    return simulate(
        planner,
        states,
        weights,
        prior(),
        response=Noiseless(),
        settings=QUICK,
        n_questions=3,
        seed=seed,
        workers=workers,
        **more,
    )


def test_more_answers_bring_the_plan_to_the_optimum():
    table = regret_table(run())
    assert (table["validity"] == 1).all()
    assert table["excess"].iloc[-1] <= table["excess"].iloc[0] + 1e-9
    assert (table["excess"] >= -1e-9).all()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_rows_whatever_the_number_of_workers():
    pd.testing.assert_frame_equal(run(workers=1), run(workers=2))


def test_normalised_regret_follows_the_paper():
    rows = pd.DataFrame(
        {
            "person": [0, 1],
            "questions": [0, 0],
            "success": [1.0, 1.0],
            "cost": [30.0, 10.0],
            "optimum": [20.0, 10.0],
            "cost_for_mean": [40.0, 10.0],
        }
    )
    [row] = regret_table(rows).to_dict("records")
    assert row["normalised_regret"] == pytest.approx((30 - 20) / (40 - 20))
    assert row["without_room"] == 1
    assert row["normalised_average_regret"] == pytest.approx((40 - 30) / (50 - 30))
    assert row["excess"] == pytest.approx(40 / 30 - 1)


def test_people_without_a_plan_are_left_out_of_cost_and_optimum_alike():
    rows = pd.DataFrame(
        {
            "person": [0, 1],
            "questions": [0, 0],
            "success": [1.0, 0.0],
            "cost": [30.0, np.nan],
            "optimum": [20.0, 180.0],
            "cost_for_mean": [40.0, 200.0],
        }
    )
    [row] = regret_table(rows).to_dict("records")
    assert row["validity"] == 0.5
    assert row["optimum"] == 20.0
    assert row["excess"] == pytest.approx(30 / 20 - 1)
    assert row["without_room"] == 0


def test_progress_is_told_or_shown(capsys):
    told = []
    run(progress=lambda done, people: told.append((done, people)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert capsys.readouterr().err == ""
    run(progress=True)
    assert "4/4" in capsys.readouterr().err


def test_states_and_weights_must_go_together():
    planner = lender()
    with pytest.raises(InvalidSetting, match="at least one person"):
        simulate(planner, np.zeros((0, 4)), np.zeros((0, 7)), prior(), response=Noiseless())
    with pytest.raises(InvalidSetting, match="'seed'"):
        run(seed=-1)
    with pytest.raises(InvalidSetting, match="do not go with"):
        simulate(planner, np.zeros((2, 4)), np.zeros((1, 7)), prior(), response=Noiseless())


def test_somebody_unlike_anyone_before_is_asked_what_tells():
    """All known kinds avoid saving; a person who loves it must not end with their plan."""
    earn, save = (10.0,), (10.0,)
    problem = Problem(
        [Feature("income", scale=(0, 10)), Feature("savings", scale=(0, 10))],
        [Action("earn", "income", "add", earn), Action("save", "savings", "add", save)],
    )
    model = from_callable(lambda s: np.where(s.sum(axis=1) >= 10, 0.9, 0.1), problem)
    kinds = np.array([[5.0, 50.0], [8.0, 40.0]])
    prior = GaussianMixturePrior(kinds, np.ones_like(kinds), background_weight=0.02,
                                 background_deviation=[30.0, 30.0])  # fmt: skip
    planner = ExactPlanner(problem, model)
    session = Session(planner, np.zeros(2), prior, response=Noiseless(), min_gain=0.0)
    person = SimulatedPerson(np.array([60.0, 2.0]), Noiseless())
    *_, last = converse(session, person, 3, np.random.default_rng(0))
    assert [step.feature for step in last.steps] == ["savings"]


def answering(right, plans=((1,), (2,)), **changes):
    """A conversation with somebody who prefers savings to debt, as all we know do, or not."""
    problem = Problem(
        [Feature(name, scale=(0, 10)) for name in ("income", "savings", "debt")],
        [Action(f"do {name}", name, "add", (10.0,)) for name in ("income", "savings", "debt")],
    )
    model = from_callable(lambda s: np.where(s.sum(axis=1) >= 10, 0.9, 0.1), problem)
    kinds = np.array([[20.0, 40.0, 60.0]])
    prior = GaussianMixturePrior(kinds, np.full((1, 3), 9.0), background_weight=0.0)
    session = Session(ExactPlanner(problem, model), np.zeros(3), prior, min_gain=0.0, **changes)
    for answer in right:
        session.say(Answered(Chosen(0 if answer else 1), (0.0, 0.0, 0.0), plans))
    return session


def test_answers_like_those_of_people_we_know_are_no_surprise():
    session = answering([True, True, True])
    assert abs(session.surprise) < 1
    assert not session.so_far().unlike


def test_answers_that_fit_nobody_are_a_surprise_and_the_result_says_so():
    session = answering([False])
    assert session.surprise > 3
    assert session.so_far().unlike
    session.undo()
    assert session.surprise == 0


def test_who_is_like_nobody_gets_the_plan_that_is_good_for_many():
    # All we know find income easiest; this person says three times that savings are easier.
    session = answering([False] * 3, ((0,), (1,)), response=Logistic(0.9))
    weights = session.posterior.mean()
    assert weights[1] < weights[0]
    assert session.unlike
    assert session.so_far().plan.moves == session.recommend().plan.moves == (0,)
    assert session.recommend().plan.certificate.verdict == "optimal"


def test_what_is_believed_of_answers_may_differ_from_how_people_answer():
    problem = Problem(
        [Feature(name, scale=(0, 10)) for name in ("income", "savings")],
        [Action(f"do {name}", name, "add", (10.0,)) for name in ("income", "savings")],
    )
    model = from_callable(lambda s: np.where(s.sum(axis=1) >= 10, 0.9, 0.1), problem)
    prior = GaussianMixturePrior(np.array([[30.0, 31.0]]), np.full((1, 2), 100.0))
    weights = np.array([[40.0, 20.0]])
    each = [
        simulate(
            ExactPlanner(problem, model), np.zeros((1, 2)), weights, prior, response=Noiseless(),
            believed=believed, n_questions=1, settings=Settings(n_particles=200),
        )["cost"].tolist()
        for believed in (None, Noiseless(), Logistic(1e-9))
    ]  # fmt: skip
    assert each[0] == each[1]
    # One who is believed to answer by chance teaches nothing.
    assert each[2][0] == each[2][1]
    assert each[0][1] == 20.0

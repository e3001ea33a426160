"""The model is asked about the rows of a table themselves, too, and must say the same."""

import numpy as np
import pandas as pd
import pytest

from pear import recourse
from pear.decision import from_sklearn
from pear.decision.table_checks import (
    check_plans_on_table,
    raw_cells_doubt,
    raw_scores,
    raw_table_doubt,
)
from pear.errors import ModelOutput, ModelWarning
from pear.planning.exact import ExactPlanner
from pear.problem import Feature
from pear.tables.people import read_people
from pear.tables.reading import open_table

from .test_spellings import as_texts, problem, table

pytestmark = pytest.mark.filterwarnings("ignore::pear.errors.ModelWarning")


@pytest.fixture(scope="module")
def lender():
    frame, decided = table()
    frame = frame.astype({"job": object})
    model = as_texts(["owner", "cards", "job"]).fit(frame, decided)
    return frame, model


def test_a_table_of_whole_numbers_and_a_problem_of_truth_values(lender):
    frame, model = lender
    some = frame[model.predict(frame) == "no"].head(5)
    with pytest.raises(
        ModelOutput, match=r"gives row \d+ of the table .* \(5 of 5 rows differ, by 'owner'\)"
    ):
        recourse(model, some, problem())
    owner = Feature("owner", "integer", 0, 1, (0, 1))
    made = recourse(model, some, problem(owner=owner))
    assert set(made["verdict"]) <= {"optimal", "infeasible"}


def test_files_are_compared_as_pandas_reads_them(lender, tmp_path):
    frame, model = lender
    path = tmp_path / "people.csv"
    frame.head(50).assign(note="?").to_csv(path, index=False)
    for owner, differs in (
        (Feature("owner", "boolean"), True),
        (Feature("owner", "integer"), False),
    ):
        stated = problem(owner=owner)
        black_box = from_sklearn(model, stated)
        people = read_people(path, stated.space)
        cells = next(open_table(path).chunks(50)).frame
        assert raw_cells_doubt(black_box, cells, people) == ""  # Nobody knows what "?" stands for.
        doubt = raw_cells_doubt(black_box, cells.drop(columns="note"), people)
        assert ("50 of 50 rows differ, by 'owner'" in doubt) == differs


def test_a_plan_that_the_row_with_its_changes_does_not_bear_out_is_refused(lender):
    frame, model = lender
    stated = problem(owner=Feature("owner", "integer", 0, 1, (0, 1)))
    black_box = from_sklearn(model, stated)
    some = frame[model.predict(frame) == "no"].head(20)
    states = stated.states(some)
    plans = ExactPlanner(stated, black_box).plan_many(states)
    check_plans_on_table(black_box, some, states, plans)
    right = model.predict_proba

    def lower_where_rich(rows):
        given = right(rows)
        rich = (rows["income"] > some["income"].max()).to_numpy()
        return np.where(rich[:, None], [1.0, 0.0], given)

    assert any(plan.success for plan in plans)
    black_box.function.model = type("Other", (), {"predict_proba": staticmethod(lower_where_rich)})
    ends = [plan.start | {s.feature: s.after for s in plan.steps} for plan in plans if plan.steps]
    assert max(end["income"] for end in ends) > some["income"].max()
    with pytest.raises(ModelOutput, match=r"with the changes of its plan 0, where more than 0\.5"):
        check_plans_on_table(black_box, some, states, plans)


def test_rounding_at_one_threshold_is_told_and_not_refused(lender):
    frame, model = lender
    stated = problem(owner=Feature("owner", "integer", 0, 1, (0, 1)))
    black_box = from_sklearn(model, stated)
    right = model.predict_proba

    def a_little_other(rows):
        given = right(rows)
        place = np.argmax(given[:, 1])
        given[place] = [0.1, 0.9]
        return given

    states = stated.states(frame)
    black_box.function.of_table = a_little_other
    assert "1 of 400 rows differ" in raw_table_doubt(black_box, frame, states)
    with pytest.warns(ModelWarning, match="1 of 400 rows differ"):
        check_plans_on_table(black_box, frame, states, [])


def test_what_cannot_be_compared_says_nothing(lender):
    frame, model = lender
    stated = problem()
    black_box = from_sklearn(model, stated)
    states = stated.states(frame)
    assert raw_scores(black_box, frame.drop(columns="job"), states) is None
    assert raw_scores(black_box, frame.assign(income="much"), states) is None
    assert raw_scores(black_box, frame.head(0), states[:0]) is None
    twice = pd.concat([frame, frame[["job"]]], axis=1)
    assert raw_table_doubt(black_box, twice, states) == ""

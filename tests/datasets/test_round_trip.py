"""A record becomes a state and the same record again, exactly, for every data set."""

import numpy as np
import pandas as pd
import pytest

from pear.datasets import (
    adult_problem,
    clean_table,
    credit_problem,
    loan_book_problem,
    loan_book_table,
)
from pear.decision.blackbox import probe_states

PROBLEMS = [loan_book_problem(), adult_problem(), credit_problem()]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_random_records_survive_exactly(problem):
    space = problem.space
    records = space.decode(probe_states(space, 10_000, np.random.default_rng(7)))
    states = space.encode(records)
    assert space.decode(states) == records
    assert np.array_equal(space.encode(pd.DataFrame(records)), states)
    assert np.array_equal(space.encode(space.frame(states)), states)


def test_applicants_of_the_loan_book_survive_exactly():
    space = loan_book_problem().space
    table = loan_book_table(10_000, seed=5).drop(columns="approved")
    assert space.decode(space.encode(table)) == table.to_dict("records")


@pytest.mark.parametrize(
    ("name", "problem"), [("adult", PROBLEMS[1]), ("givemecredit", PROBLEMS[2])]
)
def test_people_of_the_public_tables_survive_exactly(name, problem, real_data):
    table = clean_table(name).drop(columns="favourable").sample(10_100, random_state=3)
    if name == "adult":
        table = table[table.native_country != "Holand-Netherlands"]
    records = table[list(problem.space.names)].head(10_000).to_dict("records")
    assert problem.space.decode(problem.space.encode(records)) == records

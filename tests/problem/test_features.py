"""Records to states and back, exactly, and every kind of record that must not pass."""

import numpy as np
import pandas as pd
import pytest

from pear.decision.encoding import unit_inputs
from pear.errors import InvalidProblem, InvalidRecord
from pear.problem import Feature, FeatureSpace
from tests.problem.examples import PROBLEMS, every_problem, mixed_space, random_records

RECORD = {
    "age": 40,
    "income": 2100.5,
    "debt": 3,
    "school": "school",
    "job": "clerk",
    "owner": True,
}


@every_problem
def test_ten_thousand_random_records_come_back_exactly(name):
    space = PROBLEMS[name]().space
    records = random_records(space, 10_000, np.random.default_rng(1))
    states = space.encode(records)
    assert space.decode(states) == records
    table = pd.DataFrame(records)
    assert np.array_equal(space.encode(table), states, equal_nan=True)
    assert np.array_equal(space.encode(space.frame(states)), states, equal_nan=True)
    assert [type(v) for v in space.decode(states)[0].values()] == [
        type(v) for v in records[0].values()
    ]


def test_a_dict_a_row_a_list_and_a_table_give_the_same_state():
    space = mixed_space()
    expected = [[40.0, 2100.5, 3.0, 1.0, 0.0, 1.0]]
    table = pd.DataFrame([RECORD])
    wider = table.assign(remark="regular customer")
    for given in (RECORD, [RECORD], table, wider, table.iloc[0], wider.iloc[0], [wider.iloc[0]]):
        assert space.encode(given).tolist() == expected


def test_nullable_columns_categories_and_numpy_scalars_are_read():
    space = mixed_space()
    table = pd.DataFrame([RECORD, {**RECORD, "debt": None, "owner": False}]).astype(
        {"age": "Int64", "income": "Float64", "debt": "Int8", "owner": "boolean"}
    )
    table["school"] = table["school"].astype("category")
    table["job"] = table["job"].astype("string")
    states = space.encode(table)
    assert np.where(np.isnan(states), None, states).tolist() == [
        [40.0, 2100.5, 3.0, 1.0, 0.0, 1.0],
        [40.0, 2100.5, None, 1.0, 0.0, 0.0],
    ]
    scalars = {
        **RECORD,
        "age": np.int32(40),
        "income": np.float64(2100.5),
        "job": np.str_("clerk"),
        "owner": np.bool_(True),
    }
    assert space.encode(scalars).tolist() == [[40.0, 2100.5, 3.0, 1.0, 0.0, 1.0]]


@pytest.mark.parametrize("absent", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_a_missing_value_is_a_value_where_it_is_allowed(absent):
    space = mixed_space()
    state = space.encode({**RECORD, "debt": absent})
    assert np.isnan(state[0, 2])
    assert np.isnan(space.encode(pd.DataFrame([{**RECORD, "debt": absent}]))[0, 2])
    assert space.decode(state)[0]["debt"] is None
    assert np.isnan(space.frame(state)["debt"][0])
    assert space["debt"].show(state[0, 2]) == "not known"
    assert space.scaled(state)[0, 2] == 0.0  # as missing_counts_as says
    with pytest.raises(InvalidRecord, match="'income' is missing; give a value, or declare"):
        space.encode({**RECORD, "income": absent})
    with pytest.raises(InvalidRecord, match="row 1: 'income' is missing"):
        space.encode(pd.DataFrame([RECORD, {**RECORD, "income": absent}]))


def test_a_column_that_is_not_there_is_refused_and_a_key_left_out_is_missing():
    space = mixed_space()
    table = pd.DataFrame([RECORD])
    assert np.isnan(space.encode({k: v for k, v in RECORD.items() if k != "debt"})[0, 2])
    with pytest.raises(InvalidRecord, match="lacks the columns debt; add them"):
        space.encode(table.drop(columns="debt"))
    with pytest.raises(InvalidRecord, match="the row lacks debt"):
        space.encode(table.drop(columns="debt").iloc[0])
    with pytest.raises(InvalidRecord, match="lacks the columns income, job; add them"):
        space.encode(table.drop(columns=["income", "job"]))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("income", "2100", r"'income' must be a number \(got '2100' that is a str\)"),
        ("income", True, r"'income' must be a number \(got True that is a bool\)"),
        ("income", float("inf"), "'income' must be a finite number"),
        ("income", -1.0, r"'income' must be at least 0 \(got -1.0\)"),
        ("income", 10**400, "2\\*\\*53"),
        ("income", 2**53 + 1, "2\\*\\*53"),
        ("age", 40.5, r"'age' must be a whole number \(got 40.5\); round it"),
        ("age", 17, "'age' must be at least 18"),
        ("age", 91, "'age' must be at most 90"),
        ("job", "cook", r"'job' must be one of clerk, manager.*\(got 'cook'\)"),
        ("job", ["clerk"], "'job' must be one of"),
        ("owner", "perhaps", "'owner' must be true or false"),
        ("owner", 2, "'owner' must be true or false"),
    ],
)
def test_a_wrong_value_is_refused_by_name_value_and_remedy(name, value, message):
    space = mixed_space()
    with pytest.raises(InvalidRecord, match=message):
        space.encode({**RECORD, name: value})
    if not isinstance(value, list):
        table = pd.DataFrame([RECORD, {**RECORD, name: value}], dtype=object)
        with pytest.raises(InvalidRecord, match="row 1: "):
            space.encode(table)
    with pytest.raises(InvalidRecord, match="row 1: "):
        space.encode([RECORD, {**RECORD, name: value}])


def test_a_truth_value_among_equal_numbers_is_found():
    # pandas would take True for 1 when both stand in one column of objects.
    space = FeatureSpace((Feature("n", "integer"),))
    with pytest.raises(InvalidRecord, match=r"row 1: 'n' must be a number \(got True"):
        space.encode(pd.DataFrame({"n": pd.Series([1, True, 0], dtype=object)}))
    with pytest.raises(InvalidRecord, match="row 0: 'n' must be a number"):
        space.encode(pd.DataFrame({"n": [True, False]}))


def test_whole_numbers_that_a_float_cannot_hold_are_refused_in_tables_too():
    space = FeatureSpace((Feature("n", "integer"),))
    assert space.encode({"n": 2**53})[0, 0] == 2.0**53
    for column in (np.array([1, 2**53 + 1]), np.array([1.0, 2.0**60])):
        with pytest.raises(InvalidRecord, match="row 1: 'n' must be a whole number"):
            space.encode(pd.DataFrame({"n": column}))


def test_a_list_in_a_table_cell_is_refused():
    space = FeatureSpace((Feature("n"),))
    with pytest.raises(InvalidRecord, match="row 0: 'n' must be a single value"):
        space.encode(pd.DataFrame({"n": [[1.0]]}))


def test_categories_given_as_numbers_are_taken_by_their_text():
    space = FeatureSpace((Feature("grade", "categorical", categories=("1", "2", "True")),))
    table = pd.DataFrame({"grade": pd.Categorical([2, 1, 2])})
    assert space.encode(table).tolist() == [[1.0], [0.0], [1.0]]
    assert space.encode([{"grade": 2.0}, {"grade": "2"}, {"grade": True}]).ravel().tolist() == [
        1.0, 1.0, 2.0,
    ]  # fmt: skip
    for value in (3, 1.5, [1], None):
        with pytest.raises(InvalidRecord, match="'grade' "):
            space.encode({"grade": value})


def test_records_of_the_wrong_shape_are_refused():
    space = mixed_space()
    with pytest.raises(InvalidRecord, match=r"unknown features: incme; the features are age, inc"):
        space.encode({**RECORD, "incme": 3.0})
    for wrong in ("age", 3, None):
        with pytest.raises(InvalidRecord, match="people must be a dict"):
            space.encode(wrong)
    with pytest.raises(InvalidRecord, match="must map feature names to values"):
        space.encode([[1, 2]])
    twice = pd.concat([pd.DataFrame([RECORD])] * 2, axis=1)
    with pytest.raises(InvalidRecord, match="the table has the column 'age' twice"):
        space.encode(twice)
    with pytest.raises(InvalidRecord, match="the row has the column 'age' twice"):
        space.encode(twice.iloc[0])
    assert space.encode([]).shape == (0, 6)


def test_a_code_that_is_no_category_is_refused():
    for code in (-1.0, 3.0, float("nan")):
        with pytest.raises(InvalidRecord, match="'school' has no category number"):
            mixed_space()["school"].value(code)


def test_booleans_are_read_from_words():
    owner = mixed_space()["owner"]
    assert [owner.code(v) for v in ("yes", "No", " TRUE ", 0, 1.0)] == [1.0, 0.0, 1.0, 0.0, 1.0]
    # A column of 0 and 1 in which some are missing is written so.
    assert [owner.code(v) for v in ("1.0", "0.0")] == [1.0, 0.0]


def test_scaling_clips_numbers_and_levels_ordered_categories():
    space = mixed_space()
    states = np.array([[18.0, 2500.0, 50.0, 1.0, 0.0, 1.0], [90.0, 9999.0, 0.0, 2.0, 2.0, 0.0]])
    assert space.scaled(states).tolist() == [
        [0.0, 0.5, 0.5, 0.5, 1.0, 1.0],
        [1.0, 1.0, 0.0, 1.0, 1.0, 0.0],
    ]
    assert space.scaled(states[0]).tolist() == space.scaled(states)[0].tolist()
    hot = unit_inputs(space)(states)
    assert hot.shape == (2, unit_inputs(space).width) == (2, 10)
    assert hot[1].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]


def test_values_are_shown_as_people_write_them():
    space = mixed_space()
    assert space["income"].show(2100.0) == "€2,100"
    assert space["income"].show(0.1 + 0.2) == "€0.3"
    assert space["owner"].show(1.0) == "yes"
    assert space["owner"].show(0.0) == "no"
    assert space["job"].show(2.0) == 'the "boss"'


@pytest.mark.parametrize(
    ("settings", "key", "message"),
    [
        ({"name": ""}, "name", "must be a text"),
        ({"name": "a->b"}, "name", "without '->'"),
        ({"kind": "number"}, "kind", "must be one of numeric, integer"),
        ({"unit": 3}, "unit", "must be a text"),
        ({"immutable": "yes"}, "immutable", "must be true or false"),
        ({"lower": "low"}, "lower", "must be a finite number"),
        ({"upper": float("inf")}, "upper", "leave it out for no bound"),
        ({"lower": 3, "upper": 2}, "lower", "3 is above 'upper' 2; swap them"),
        ({"scale": (1.0, 1.0)}, "scale", "two increasing numbers"),
        ({"scale": (1.0,)}, "scale", "two increasing numbers"),
        ({"scale": 3}, "scale", "must be a list"),
        ({"categories": ("a",)}, "categories", "only for categorical"),
        (
            {"missing_counts_as": "none"},
            "missing_counts_as",
            "does not fit the feature: 'x' must be a number",
        ),
        ({"missing_counts_as": float("nan")}, "missing_counts_as", "must be a value"),
        ({"kind": "boolean", "lower": 0}, "lower", "not for boolean"),
        ({"kind": "categorical"}, "categories", "must list each category once"),
        ({"kind": "categorical", "categories": ("a", "a")}, "categories", "once"),
        ({"kind": "categorical", "categories": "ab"}, "categories", "must be a list"),
        ({"kind": "categorical", "categories": (1, 2)}, "categories", "write it in quotes"),
        ({"kind": "categorical", "categories": ("a",), "lower": 1}, "lower", "remove it"),
        ({"kind": "categorical", "categories": ("a", "b"), "levels": (1.0,)}, "levels", "one num"),
        (
            {"kind": "categorical", "categories": ("a", "b"), "levels": (0.0, 2.0)},
            "levels",
            r"numbers in \[0, 1\]",
        ),
        (
            {
                "kind": "categorical",
                "categories": ("a", "b"),
                "ordered": True,
                "levels": (1.0, 0.0),
            },
            "levels",
            "must not fall",
        ),
    ],
)
def test_a_feature_that_contradicts_itself_is_refused(settings, key, message):
    with pytest.raises(InvalidProblem, match=message) as refusal:
        Feature(**{"name": "x", **settings})
    assert refusal.value.key == key


def test_a_space_needs_features_with_different_names():
    with pytest.raises(InvalidProblem, match="at least one feature"):
        FeatureSpace(())
    with pytest.raises(InvalidProblem, match=r"must differ \(twice: a\)"):
        FeatureSpace((Feature("a"), Feature("a")))
    with pytest.raises(InvalidProblem, match="there is no feature 'b'; the features are a"):
        FeatureSpace((Feature("a"),)).index("b")


def test_a_person_may_be_given_in_any_usual_form():
    space = small_space()
    record = {"income": 2100.0, "school": "degree", "owner": True}
    table = pd.DataFrame([record], index=["A7"]).assign(city="Trento")
    state = space.encode(record)
    for person in (table, table.iloc[0], [record], state, state[0], state[0].tolist(), [state[0]]):
        assert np.array_equal(space.encode(person), state)
    assert space.encode(pd.concat([table, table])).shape == (2, 3)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (np.zeros(2), r"must hold 3 numbers, one per feature \(got shape \(2,\)\)"),
        (np.zeros((1, 1, 3)), "must hold 3 numbers"),
        (np.array([0.0, 7.0, 1.0]), "row 0: 'school' cannot be 7.0 in a state"),
        (np.array([[0.0, 0.0, 1.0], [np.nan, 0.0, 1.0]]), "row 1: 'income' cannot be nan"),
        (np.array([np.inf, 0.0, 1.0]), "'income' cannot be inf"),
        (np.array(["a", "b", "c"]), "must hold 3 numbers"),
    ],
)
def test_an_array_that_is_no_state_is_refused(state, message):
    with pytest.raises(InvalidRecord, match=message):
        small_space().encode(state)


def small_space():
    return FeatureSpace(
        (
            Feature("income"),
            Feature("school", "categorical", categories=("school", "degree")),
            Feature("owner", "boolean"),
        )
    )

"""First drafts from tables: safe ones, and what someone has to review in them."""

import numpy as np
import pandas as pd
import pytest

from pear.errors import InvalidData, InvalidSetting
from pear.problem import column_names
from pear.problem.draft import draft_problem, nice_step, round_out
from pear.problem.files import problem_from_toml


def people(n=200):
    rng = np.random.default_rng(0)
    wages = rng.uniform(500, 4_300, n).round(2)
    late = rng.integers(0, 7, n)
    balance = rng.normal(0, 1000, n)
    job = rng.choice(["a", "b", "c"], n)
    owner = rng.choice(["yes", "no"], n)
    member = rng.integers(0, 2, n)
    wish = wages / 1000 - late + balance / 500 + 2 * (job == "b") + (owner == "yes") + 3 * member
    return pd.DataFrame(
        {
            "customer_id": np.arange(n),
            "note": [f"note {i}" for i in range(n)],
            "Age": rng.integers(18, 80, n),
            "gender": rng.choice(["f", "m"], n),
            "wages": np.where(rng.random(n) < 0.1, np.nan, wages),
            "late_payments": late,
            "balance": balance,
            "job": job,
            "owner": owner,
            "member": member,
            "branch": "main",
            "nothing": np.nan,
            "approved": np.where(wish > np.median(wish), "approved", "refused"),
        }
    )


def actions_of(draft):
    return {action.name: action for action in draft.problem.actions.actions}


def test_a_draft_guesses_kinds_bounds_and_what_nobody_can_change():
    table = people()
    draft = draft_problem(table, "approved")
    problem, space = draft.problem, draft.problem.space
    assert draft.left_out == {
        "customer_id": "names rows",
        "note": "names rows",
        "nothing": "empty",
    }
    kinds = {feature.name: feature.kind for feature in space.features}
    assert kinds == {
        "Age": "integer",
        "gender": "categorical",
        "wages": "numeric",
        "late_payments": "integer",
        "balance": "numeric",
        "job": "categorical",
        "owner": "categorical",
        "member": "boolean",
        "branch": "categorical",
    }
    assert [f.name for f in space.features if f.protected] == ["Age", "gender"]
    assert [f.name for f in space.features if f.immutable] == ["Age", "gender", "branch"]
    wages = space["wages"]
    assert (wages.lower, wages.upper) == (0.0, 4300.0)
    assert wages.missing_counts_as == pytest.approx(table["wages"].median())
    assert space["balance"].lower <= table["balance"].min() < 0
    assert problem.goal.favourable == ("approved",)
    grids = {name: action.arguments for name, action in actions_of(draft).items()}
    assert grids["increase_wages"] == tuple(200.0 * i for i in range(1, 11))
    assert grids["reduce_late_payments"] == (-1, -2, -3, -4, -5, -6)
    assert grids["change_job"] == ("b",)
    assert grids["change_member"] == (True,)
    assert {name.partition("_")[0] for name in grids if "balance" in name} == {"increase"}
    assert space.encode(table).shape == (200, 9)


def test_a_draft_reads_back_and_marks_what_to_review():
    draft = draft_problem(people(), "approved", name="loans", model="net.onnx")
    text = draft.text()
    assert problem_from_toml(text) == draft.problem
    assert draft.problem.model == "net.onnx"
    before, _, _ = text.partition("[features.gender]")
    assert before.endswith("a personal attribute, so it is immutable and protected.\n")
    assert not any(action.reviewed for action in draft.problem.actions.actions)
    assert text.count("reviewed = false") == len(draft.problem.actions.actions)
    for action in draft.problem.actions.actions:
        assert draft.comments[f"actions.{action.name}"].startswith("Review: ")
    assert text.splitlines()[3] == (
        "# Left out: customer_id (names rows), note (names rows), nothing (empty)."
    )


@pytest.mark.parametrize(
    ("target", "values", "favourable"),
    [
        ("approved", [0, 1], (1,)),
        ("SeriousDlqin2yrs", [0, 1], (0,)),
        ("loan_default", ["no", "yes"], ("no",)),
        ("deny", ["no", "yes"], ("no",)),
        ("granted", [True, False], (True,)),
        ("diagnosis", ["benign", "malignant"], ("benign",)),
        ("kredit", ["gut", "schlecht"], ("gut",)),
        ("esito", ["approvato", "rifiutato"], ("approvato",)),
        ("decision", ["approved", "approved later", "denied"], ("approved", "approved later")),
        ("decision", ["approved", "not approved"], ("approved",)),
    ],
)
def test_the_favourable_class_is_taken_where_the_names_leave_no_doubt(target, values, favourable):
    table = pd.DataFrame({"income": range(len(values) * 4), target: values * 4})
    assert draft_problem(table, target).problem.goal.favourable == favourable


@pytest.mark.parametrize(
    ("target", "values"),
    [
        ("income_class", ["<=50K", ">50K"]),
        ("credit_risk", [0, 1]),  # 1 is a good risk in one published table, a bad one in others
        ("target", [0, 1]),
        ("no_default", [0, 1]),
        ("level", [1.0, 2.0, 3.0]),
        ("decision", ["good", "poor", "unsure"]),
        ("card", ["no", "yes"]),
    ],
)
def test_the_favourable_class_must_be_said_where_it_is_not_certain(target, values):
    table = pd.DataFrame({"income": range(len(values) * 4), target: values * 4})
    with pytest.raises(InvalidSetting, match="is favourable is not certain") as refusal:
        draft_problem(table, target)
    for value in values:
        assert f"{value:g}" if isinstance(value, float) else str(value) in str(refusal.value)
    assert "(4 people)" in str(refusal.value)
    assert "--favourable" in str(refusal.value)
    drafted = draft_problem(table, target, favourable=str(values[-1]))
    assert drafted.problem.goal.favourable == (values[-1],)
    with pytest.raises(InvalidSetting, match=f"'{target}' has no class 'ghost'; its classes are"):
        draft_problem(table, target, favourable=["ghost"])
    with pytest.raises(InvalidSetting, match="must be favourable and some must not"):
        draft_problem(table, target, favourable=values)


def mortgages(n=600):
    """A small table with the columns of the Boston mortgage denials, and their troubles."""
    rng = np.random.default_rng(1)
    pirat, lvrat = rng.uniform(0.1, 0.6, n), rng.uniform(0.3, 1.1, n)
    ccs = rng.integers(1, 7, n).astype(float)
    ccs[0] = 2.1164  # the mean, filled in for somebody
    deny = 4 * pirat + lvrat + 0.3 * ccs + rng.normal(0, 0.3, n) > 3
    return pd.DataFrame(
        {
            "deny": np.where(deny, "yes", "no"),
            "pirat": pirat,
            "lvrat": lvrat,
            "debt_ratio": rng.uniform(0, 1, n),
            "ccs": ccs,
            "uria": rng.choice([1.8, 3.1, 3.2, 3.9, 10.6], n),
            "unemp": rng.uniform(1.8, 10.6, n),
            "region": rng.choice(["north", "south", "west"], n),
            "black": rng.choice(["yes", "no"], n),
            "single": rng.integers(0, 2, n),
            "rejected": deny.astype(int),
        }
    )


def test_a_draft_of_mortgages_asks_nothing_foolish():
    draft = draft_problem(mortgages(), "deny")
    space, actions = draft.problem.space, actions_of(draft)
    assert draft.problem.goal.favourable == ("no",)
    assert set(actions) == {"reduce_pirat", "reduce_lvrat", "reduce_debt_ratio", "reduce_ccs"}
    assert {a.direction for a in actions.values()} == {"decrease"}
    assert actions["reduce_ccs"].arguments == (-1, -2, -3, -4, -5)
    assert all(isinstance(amount, int) for amount in actions["reduce_ccs"].arguments)
    assert [f.name for f in space.features if f.protected] == ["black", "single"]
    assert [f.name for f in space.features if f.immutable and not f.protected] == [
        "uria",
        "unemp",
        "region",
        "rejected",
    ]
    assert "share 5 fractions" in draft.comments["features.uria"]
    assert "a rate nobody sets alone" in draft.comments["features.unemp"]
    assert "the same as the decision itself" in draft.comments["features.rejected"]


def test_the_model_says_which_way_helps_and_a_debt_is_never_raised():
    table = mortgages()

    def likes_ratios(states):
        column = {name: states[:, i] for i, name in enumerate(table.columns[1:])}
        return 0.5 + 0.2 * column["pirat"] - 0.2 * column["lvrat"] + 0.1 * column["debt_ratio"]

    draft = draft_problem(table, "deny", score=likes_ratios)
    actions = actions_of(draft)
    assert set(actions) == {"increase_pirat", "reduce_lvrat", "reduce_debt_ratio", "reduce_ccs"}
    said = draft.comments
    assert "labels in the table say the opposite" in said["actions.increase_pirat"]
    assert "both say this way" in said["actions.reduce_lvrat"]
    assert "the model does not react to it" in said["actions.reduce_ccs"]
    assert "or is it history?" in said["actions.reduce_debt_ratio"]


def test_of_many_categories_a_model_picks_those_that_help():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "school": rng.choice(["10th", "Bachelors", "Masters", "?", "other"], 200),
            "income": rng.uniform(0, 9, 200),
            "granted": rng.integers(0, 2, 200),
        }
    )
    value = np.array([0.0, 0.9, 0.8, 0.85, 0.9])  # by code: 10th, ?, Bachelors, Masters, other
    draft = draft_problem(table, "granted", score=lambda states: value[states[:, 0].astype(int)])
    assert actions_of(draft)["change_school"].arguments == ("Bachelors", "Masters")


def test_nobody_is_told_to_borrow_more_or_to_earn_less():
    n = 400
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(0, 100, n) for name in ("loan_amount", "loan_term", "income")}
    score = columns["loan_amount"] + columns["loan_term"] - columns["income"]
    table = pd.DataFrame({**columns, "granted": score > np.median(score)})
    draft = draft_problem(table, "granted")
    assert set(actions_of(draft)) == {"increase_loan_term", "increase_income"}
    assert "No action: it would mean to borrow more." in draft.comments["features.loan_amount"]


def test_a_feature_that_tells_nothing_gets_no_action():
    rng = np.random.default_rng(3)
    columns = {"x": rng.random(200), "income": rng.random(200), "granted": [0, 1] * 100}
    draft = draft_problem(pd.DataFrame(columns), "granted")
    assert set(actions_of(draft)) == {"increase_income"}
    assert "nothing tells which way would help" in draft.comments["features.x"]


PERSONAL_COLUMNS = """
age Age AGE alter Alter età edad sex gender Geschlecht sesso sexo genere race black is_black
nonwhite afam hispanic hispan Hispanic_origin latino minority Minderheit minoranza nationality
Nationalität nazionalita nacionalidad native_country foreign_worker straniero extranjero religion
Religion religione Konfession disability disabled Behinderung disabile discapacidad marital_status
Familienstand stato_civile estado_civil single married is_married sposato casado female isFemale
male weiblich maschio mujer dependents NumberOfDependents children Kinder figli hijos pregnant
schwanger dob birth_year Geburtsdatum data_nascita fecha_nacimiento citizenship cittadinanza
household_size union trade_union_member Gewerkschaft
"""
OTHER_COLUMNS = """
wages savings blacklisted_accounts average_balance agency mortgage percentage package manager traced
terrace engagement housing occupation hours_per_week erledigt
"""
FIXED_COLUMNS = """
unemployment_rate Arbeitslosenquote tasso_disoccupazione interest_rate region Regione PLZ city
provincia county application_date year issue_month fecha Jahr credit_history credit_score bankruptcy
zip_code
"""


@pytest.mark.parametrize("name", PERSONAL_COLUMNS.split())
def test_personal_attributes_are_known_in_four_languages(name):
    assert column_names.is_personal(name)


@pytest.mark.parametrize("name", OTHER_COLUMNS.split())
def test_words_that_only_look_like_them_are_not(name):
    assert not column_names.is_personal(name)


@pytest.mark.parametrize(
    "values",
    [
        ["male", "female"],
        ["F", "M"],
        ["male : single", "female : divorced", "male : married"],
        ["ledig", "verheiratet"],
        ["celibe", "nubile", "sposato"],
        ["Asian-Pac-Islander", "White", "Black"],
    ],
)
def test_personal_attributes_are_known_by_their_values(values):
    n = len(values)
    table = pd.DataFrame({"x7": values * 30, "income": range(30 * n), "ok": [0, 1] * (15 * n)})
    space = draft_problem(table, "ok", favourable=1).problem.space
    assert space["x7"].protected


@pytest.mark.parametrize("name", FIXED_COLUMNS.split())
def test_what_nobody_can_change_is_known_by_its_name(name):
    assert column_names.why_fixed(name)


def test_identifiers_name_rows_even_where_some_come_twice():
    table = pd.DataFrame(
        {"loan_id": [*range(99), 5], "income": range(100), "grade": [7] * 99 + [8]}
    )
    draft = draft_problem(table.assign(approved=[0, 1] * 50), "approved")
    assert draft.left_out == {"loan_id": "names rows"}


def test_dates_are_no_choice():
    days = pd.date_range("2020-01-31", periods=60).strftime("%Y-%m-%d").tolist()
    table = pd.DataFrame({"signed": days * 2, "income": range(120), "ok": [0, 1] * 60})
    draft = draft_problem(table, "ok", favourable=1)
    assert "its values are dates" in draft.comments["features.signed"]
    assert draft.problem.space["signed"].immutable


def test_names_that_shorten_to_the_same_words_keep_apart():
    x = np.arange(60)
    table = pd.DataFrame({"a b": x, "a_b": x, "A-b": x, "granted": x > 20})
    names = [action.name for action in draft_problem(table, "granted").problem.actions.actions]
    assert names == ["increase_a_b", "increase_a_b_2", "increase_a_b_3"]


def test_values_far_out_do_not_stretch_the_scale_and_no_action_leads_there():
    values = np.append(np.linspace(0, 10, 999), 1e6)
    draft = draft_problem(pd.DataFrame({"x": values, "granted": values > 4}), "granted")
    assert draft.problem.space["x"].scale == (0.0, 10.0)
    assert draft.problem.space["x"].upper == 1e6
    assert actions_of(draft)["increase_x"].upper == 10.0
    assert "far out" in draft.comments["features.x"]


@pytest.mark.parametrize(
    ("table", "target", "message"),
    [
        ({"x": [1, 2], "y": [0, 1]}, "z", "no column 'z'; its columns are x, y"),
        ({"x": [1, 2], "y": [1, 1]}, "y", "2 to 20 classes .got 1 different"),
        ({"x": [1] * 30, "y": range(30)}, "y", "2 to 20 classes .got 30 different"),
        ({"age": [1, 2], "approved": [0, 1]}, "approved", "no column that a person could change"),
        ({"approved": [0, 1]}, "approved", "no column that a person could change"),
    ],
)
def test_a_table_that_gives_no_problem_is_refused(table, target, message):
    with pytest.raises(InvalidData, match=message):
        draft_problem(pd.DataFrame(table), target)


def test_a_draft_of_a_table_with_odd_columns():
    n = 300
    rng = np.random.default_rng(0)
    on = rng.choice(["True", "False"], n)
    housing = rng.integers(1, 4, n)
    table = pd.DataFrame(
        {
            "Unnamed: 0": np.arange(n),
            "Monthly income (€)": rng.uniform(500, 4_000, n).round(2),
            "postcode": rng.integers(10_000, 99_999, n),
            "housing": housing,
            "foreign_worker": rng.integers(0, 2, n),
            "employer": [f"firm {i}" for i in rng.integers(0, 150, n)],
            "on": on,
            "Alter": rng.integers(18, 80, n),
            "decision": np.where((on == "True") & (housing > 1), "granted", "declined"),
        }
    )
    draft = draft_problem(table, "decision")
    space = draft.problem.space
    assert draft.left_out["Unnamed: 0"] == "names rows"
    assert draft.left_out["employer"].endswith(" different texts")
    income = space["Monthly income (€)"]
    assert (income.words, income.unit) == ("Monthly income", "€")
    assert space["postcode"].immutable
    assert not space["postcode"].protected
    assert "sounds like a place" in draft.comments["features.postcode"]
    assert (space["housing"].lower, space["housing"].upper) == (1, 3)
    assert "only 1, 2, 3 occur" in draft.comments["features.housing"]
    assert space["foreign_worker"].protected
    assert space["on"].kind == "boolean"
    assert (space["Alter"].protected, space["Alter"].upper) == (True, None)
    assert set(actions_of(draft)) == {"increase_monthly_income", "increase_housing", "change_on"}
    assert draft.problem.goal.favourable == ("granted",)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e308])
def test_numbers_no_person_has_are_refused_by_row(value):
    table = pd.DataFrame({"x": [1.0, 2.0, value, 3.0], "approved": [0, 1, 0, 1]})
    with pytest.raises(InvalidData, match=r"row 2: 'x' is too large for a number of a person"):
        draft_problem(table, "approved")


def test_round_numbers():
    assert [nice_step(x, whole=False) for x in (0.013, 0.5, 7.0, 5000.0)] == [0.01, 0.5, 5.0, 5e3]
    assert [nice_step(x, whole=True) for x in (0.2, 1.0, 27.0)] == [1, 1, 20]
    assert round_out(0.0, down=True) == 0.0
    assert round_out(0.0123, down=False) == 0.013
    assert round_out(123.0, down=False) == 130.0


def test_a_draft_fills_missing_values_of_every_kind_with_the_usual_one():
    table = pd.DataFrame(
        {
            "n": pd.array([1, 2, 2, None] * 5, "Int64"),
            "job": ["a", "a", None, "b"] * 5,
            "owner": ["true", "true", None, "false"] * 5,
            "flag": pd.array([True, False, None, False] * 5, "boolean"),
            "same": [4, 4, None, 4] * 5,
            "income": range(20),
            "approved": [0, 1] * 10,
        }
    )
    space = draft_problem(table, "approved").problem.space
    assert {f.name: f.missing_counts_as for f in space.features[:5]} == {
        "n": 2,
        "job": "a",
        "owner": True,
        "flag": False,
        "same": 4,
    }
    assert space["same"].scale is None
    assert np.isnan(space.encode(table)[2, 1:5]).all()
    costs_see = space.scaled(np.array([[2.0, 0, 1, 0, 4, 2]]))
    assert space.scaled(space.encode(table))[2].tolist() == costs_see[0].tolist()


def test_a_column_of_many_different_texts_is_left_out():
    who = [f"person {i // 2}" for i in range(300)]
    table = pd.DataFrame({"who": who, "income": range(300), "approved": [0, 1] * 150})
    assert draft_problem(table, "approved").left_out == {"who": "150 different texts"}

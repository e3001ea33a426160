"""Cleaning as behind the paper, on small tables by hand and on the real ones by count."""

import numpy as np
import pandas as pd
import pytest

from pear.datasets import clean_table
from pear.datasets.sources import clean_adult, clean_credit
from pear.errors import InvalidData


def adult_row(**changes):
    row = {"age": 30, "workclass": " Private", "native_country": "Cuba", "income_target": ">50K"}
    return row | changes


def test_adult_rows_with_question_marks_or_gaps_are_dropped():
    table = pd.DataFrame(
        [
            adult_row(),
            adult_row(workclass="?"),
            adult_row(native_country=None),
            adult_row(income_target="<=50K."),
        ]
    )
    cleaned = clean_adult(table)
    assert cleaned.workclass.tolist() == ["Private", "Private"]
    assert cleaned.favourable.tolist() == [True, False]


def test_an_unknown_income_class_is_refused():
    with pytest.raises(InvalidData, match=r"must be <=50K or >50K \(got 'rich'\)"):
        clean_adult(pd.DataFrame([adult_row(income_target="rich")]))


def credit_table(**columns):
    base = {
        "SeriousDlqin2yrs": [0, 1],
        "RevolvingUtilizationOfUnsecuredLines": [0.5, 3.0],
        "DebtRatio": [0.2, 61_106.5],
        "MonthlyIncome": [5_000, 3_008_750],
        "NumberOfTime30-59DaysPastDueNotWorse": [2, 98],
        "NumberOfTimes90DaysLate": [0, 96],
        "NumberOfTime60-89DaysPastDueNotWorse": [17, 90],
    }
    return pd.DataFrame(base | columns)


def test_credit_values_are_capped_and_codes_set_to_18():
    cleaned = clean_credit(credit_table())
    assert cleaned.favourable.tolist() == [True, False]
    assert cleaned.iloc[0, :-1].tolist() == [0.5, 0.2, 5_000, 2, 0, 17]
    assert cleaned.iloc[1, :-1].tolist() == [1.0, 1.0, 17_000, 18, 18, 90]


def test_credit_rows_with_gaps_are_dropped():
    assert len(clean_credit(credit_table(MonthlyIncome=[np.nan, 1.0]))) == 1


def test_credit_decisions_in_words_and_odd_ones():
    assert clean_credit(credit_table(SeriousDlqin2yrs=["No", "Yes"])).favourable.tolist() == [
        True,
        False,
    ]
    with pytest.raises(InvalidData, match=r"must be 0 or 1 \(got '2'\)"):
        clean_credit(credit_table(SeriousDlqin2yrs=[0, 2]))


def test_the_real_adult(real_data):
    table = clean_table("adult")
    assert len(table) == 45_221
    assert "fnlwgt" not in table
    assert "education_num" not in table
    assert table.favourable.mean() == pytest.approx(0.248, abs=0.001)


def test_the_real_give_me_some_credit(real_data):
    table = clean_table("givemecredit")
    assert len(table) == 120_269
    assert table[["DebtRatio", "RevolvingUtilizationOfUnsecuredLines"]].max().tolist() == [1, 1]
    assert table.MonthlyIncome.max() == 17_000
    assert table["NumberOfTimes90DaysLate"].max() == 18
    assert table.favourable.mean() == pytest.approx(0.9305, abs=0.0001)

"""Which rows and values of the public tables do the experiments use?

As behind the paper: rows with missing values are dropped. Adult loses ``fnlwgt`` and
``education_num``; GiveMeSomeCredit has its debt ratio and utilisation capped at 1, its
income at 17,000, and past-due counts above 90 (codes, not counts) set to 18.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from pear.datasets.sources import Fetcher, raw_table, source_of
from pear.errors import InvalidData

CAPS = {"RevolvingUtilizationOfUnsecuredLines": 1.0, "DebtRatio": 1.0, "MonthlyIncome": 17_000.0}
PAST_DUE = (
    "NumberOfTime30-59DaysPastDueNotWorse",
    "NumberOfTimes90DaysLate",
    "NumberOfTime60-89DaysPastDueNotWorse",
)
PAST_DUE_CODES_ABOVE, PAST_DUE_SET_TO = 90, 18


def clean_adult(table: pd.DataFrame) -> pd.DataFrame:
    """Adult without missing values; ``favourable`` is an income above 50,000 $."""
    texts = table.select_dtypes(exclude="number").columns
    table = table.assign(**{name: table[name].astype(str).str.strip() for name in texts})
    missing = table[texts].isin(["?", "nan", "None", "<NA>", ""]).any(axis=1)
    missing |= table.isna().any(axis=1)
    kept = table[~missing].reset_index(drop=True)
    target = kept.pop("income_target").str.rstrip(".")
    if odd := sorted(set(target) - {"<=50K", ">50K"}):
        raise InvalidData(f"'income_target' must be <=50K or >50K (got {odd[0]!r})")
    return kept.assign(favourable=target == ">50K")


def clean_credit(table: pd.DataFrame) -> pd.DataFrame:
    """GiveMeSomeCredit without missing values; ``favourable`` is no serious delinquency."""
    kept = table.dropna().reset_index(drop=True)
    target = kept.pop("SeriousDlqin2yrs").astype(str).str.lower()
    known = {"0": True, "0.0": True, "no": True, "1": False, "1.0": False, "yes": False}
    if odd := sorted(set(target) - set(known)):
        raise InvalidData(f"'SeriousDlqin2yrs' must be 0 or 1 (got {odd[0]!r})")
    kept = kept.astype(float)
    for name, cap in CAPS.items():
        kept[name] = kept[name].clip(upper=cap)
    for name in PAST_DUE:
        kept[name] = kept[name].mask(kept[name] > PAST_DUE_CODES_ABOVE, PAST_DUE_SET_TO)
    return kept.assign(favourable=target.map(known).astype(bool))


CLEANERS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "adult": clean_adult,
    "givemecredit": clean_credit,
}


def clean_table(name: str, fetch: Fetcher | None = None) -> pd.DataFrame:
    """The cleaned table of ``adult`` or ``givemecredit``, with the decision in ``favourable``."""
    source_of(name)
    return CLEANERS[name](raw_table(name, fetch))

"""Where are the tables of Adult and GiveMeSomeCredit, and which of their rows are used?

Looked for in this order: the folder named by ``PEAR_DATA``, our cache, OpenML (through
scikit-learn; what it gives is put in the cache). Nothing of them ships with the package.

As behind the paper, rows with missing values are dropped. Adult loses ``fnlwgt`` and
``education_num``; GiveMeSomeCredit has its debt ratio and utilisation capped at 1, its
income at 17,000, and past-due counts above 90 (codes, not counts) set to 18.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pear.errors import DataUnavailable, InvalidData, InvalidSetting
from pear.writing import replacing

Fetcher = Callable[[int], pd.DataFrame]
"""Gives the whole table of an OpenML data set by its number."""


@dataclass(frozen=True)
class Source:
    """One public table: its file, its number at OpenML, its columns and other names of them."""

    file: str
    openml: int
    columns: tuple[str, ...]
    aliases: dict[str, str]


SOURCES = {
    "adult": Source(
        "adult.csv.gz",
        1590,
        (
            "age",
            "workclass",
            "education",
            "marital_status",
            "occupation",
            "relationship",
            "race",
            "sex",
            "capital_gain",
            "capital_loss",
            "hours_per_week",
            "native_country",
            "income_target",
        ),
        {"class": "income_target", "income": "income_target"},
    ),
    "givemecredit": Source(
        "give_me_some_credit.csv.gz",
        46929,
        (
            "SeriousDlqin2yrs",
            "RevolvingUtilizationOfUnsecuredLines",
            "age",
            "NumberOfTime30-59DaysPastDueNotWorse",
            "DebtRatio",
            "MonthlyIncome",
            "NumberOfOpenCreditLinesAndLoans",
            "NumberOfTimes90DaysLate",
            "NumberRealEstateLoansOrLines",
            "NumberOfTime60-89DaysPastDueNotWorse",
            "NumberOfDependents",
        ),
        {"FinancialDistressNextTwoYears": "SeriousDlqin2yrs"},
    ),
}


def raw_table(name: str, fetch: Fetcher | None = None) -> pd.DataFrame:
    """The table as published, with our column names; ``fetch`` stands in for OpenML."""
    source = source_of(name)
    for folder in (data_folder(), cache_folder()):
        if folder is not None and (folder / source.file).is_file():
            return _named(_read(folder / source.file), source)
    try:
        table = (fetch or fetch_openml)(source.openml)
    except Exception as error:
        raise DataUnavailable(
            f"the data set '{name}' is not on this machine, and OpenML did not give it "
            f"({type(error).__name__}: {error}); put {source.file} into a folder and set "
            "PEAR_DATA to it"
        ) from error
    table = _named(table, source)
    _keep(table, cache_folder() / source.file)
    return table


def source_of(name: str) -> Source:
    """Where a data set comes from; an unknown name is refused with the known ones."""
    if name not in SOURCES:
        raise InvalidSetting(f"'name' must be one of {', '.join(SOURCES)} (got {name!r})")
    return SOURCES[name]


def data_folder() -> Path | None:
    """The folder named by ``PEAR_DATA``, if it is set."""
    folder = os.environ.get("PEAR_DATA")
    return Path(folder) if folder else None


def cache_folder() -> Path:
    """Where we keep what can be made again: ``PEAR_CACHE``, or the system's cache folder."""
    if chosen := os.environ.get("PEAR_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pear"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "pear" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pear"


def fetch_openml(number: int) -> pd.DataFrame:
    """A table from OpenML."""
    import sklearn.datasets

    frame: pd.DataFrame = sklearn.datasets.fetch_openml(
        data_id=number, as_frame=True, parser="auto"
    ).frame
    return frame


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except Exception as error:
        raise InvalidData(f"'{path}' cannot be read as a table: {error}; get it again") from error


def _named(table: pd.DataFrame, source: Source) -> pd.DataFrame:
    """The columns we use, by our names: OpenML writes ``capital-gain``, we ``capital_gain``."""
    ours = {_plain(column): column for column in source.columns}
    ours |= {_plain(other): column for other, column in source.aliases.items()}
    known = {column: ours[_plain(str(column))] for column in table if _plain(str(column)) in ours}
    renamed = table[list(known)].rename(columns=known)
    absent = [column for column in source.columns if column not in renamed]
    if absent:
        raise InvalidData(
            f"the table for {source.file} lacks the columns {', '.join(absent)}; "
            "is it the right file?"
        )
    return renamed[list(source.columns)]


def _plain(column: str) -> str:
    return column.lower().replace("-", "").replace("_", "").replace(".", "").replace(" ", "")


def _keep(table: pd.DataFrame, path: Path) -> None:
    """Write the table whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        table.to_csv(part, index=False, compression="gzip")


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


def clean_table(name: str) -> pd.DataFrame:
    """The cleaned table of ``adult`` or ``givemecredit``, with the decision in ``favourable``."""
    source_of(name)
    return CLEANERS[name](raw_table(name))

"""Where are the tables of Adult and GiveMeSomeCredit?

Looked for in this order: the folder named by ``PEAR_DATA``, our cache, OpenML (through
scikit-learn; what it gives is put in the cache). Nothing of them ships with the package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pear.errors import DataUnavailable, InvalidData, InvalidSetting

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
    unfinished = path.with_name(f".{os.getpid()}-{path.name}")
    table.to_csv(unfinished, index=False, compression="gzip")
    os.replace(unfinished, path)

"""How is a table of people read from a file, and which of its rows fit a problem?"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import InvalidData, InvalidRecord
from pear.problem.feature import Feature
from pear.problem.feature_space import FeatureSpace, States

MISSING_TEXTS = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>"})
"""Texts that stand for a missing value, unless the feature has a category of that name."""


def read_table(path: str | os.PathLike[str], space: FeatureSpace | None = None) -> pd.DataFrame:
    """A CSV (also compressed) or Parquet file as a table.

    With ``space``, columns are read as the kinds of its features, so that a category "1"
    stays a text; without, kinds are guessed.
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidData(f"there is no file '{file}'; give a CSV or Parquet file")
    texts_only = file.suffix.lower() not in (".parquet", ".pq")
    try:
        if not texts_only:
            table = pd.read_parquet(file)
        else:
            table = _read_texts(file)
    except UnicodeDecodeError as error:
        raise InvalidData(
            f"'{file}' cannot be read as a table: {error}; save it as UTF-8"
        ) from None
    except Exception as error:  # pandas and pyarrow raise many kinds, some of them bare
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidData(f"'{file}' cannot be read as a table: {first}") from None
    if not len(table) or not len(table.columns):
        raise InvalidData(f"'{file}' holds no rows; give a table with a header and people in it")
    table.columns = [str(name).strip() for name in table.columns]
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise InvalidData(f"'{file}' has the column '{twice[0]}' twice; rename one of them")
    for name in table.columns:
        feature = space[name] if space is not None and name in space.names else None
        table[name] = _typed(table[name], feature, texts_only=texts_only)
    return table


def _read_texts(file: Path) -> pd.DataFrame:
    """A text file with every value as it stands; columns are parted by commas, tabs or ``;``.

    The header is read as a row: pandas would rename a column that comes twice, silently.
    """
    settings: dict[str, Any] = {
        "dtype": str,
        "header": None,
        "keep_default_na": False,
        "na_filter": False,
        "skipinitialspace": True,
        "encoding": "utf-8-sig",
    }
    first = pd.read_csv(file, sep="\x1f", nrows=1, quoting=csv.QUOTE_NONE, **settings).iloc[0, 0]
    separator = max("\t;" if ".tsv" in file.suffixes else ",;\t", key=first.count)
    rows = pd.read_csv(file, sep=separator, **settings)
    table: pd.DataFrame = rows.iloc[1:].reset_index(drop=True)
    names = [str(name).strip() for name in rows.iloc[0]]
    table.columns = pd.Index(
        [name or f"Unnamed: {place}" for place, name in enumerate(names)], dtype=object
    )
    if separator == ";":
        # Where ';' parts the columns, a comma stands before the decimals.
        for place in range(table.shape[1]):
            column = table.iloc[:, place]
            if column.str.fullmatch(r"\s*(-?\d+(,\d+)?)?\s*").all():
                table.isetitem(place, column.str.replace(",", ".").to_numpy())
    return table


def _typed(column: pd.Series, feature: Feature | None, *, texts_only: bool) -> pd.Series:
    """A column as its feature needs it; texts of a CSV become numbers where they are such."""
    if feature is not None and feature.is_categorical:
        if not pd.api.types.is_string_dtype(column):
            known = column.astype(object)
            return known.where(column.isna(), known.map(str))
        return _with_missing(column.str.strip(), MISSING_TEXTS.difference(feature.categories))
    if not texts_only:
        return column
    texts = _with_missing(column.str.strip())
    present = texts.dropna()
    if feature is not None and feature.kind == "boolean":
        return texts
    try:
        numbers = present.astype(float)
    except (TypeError, ValueError):
        if feature is None:
            return texts
        listed = texts.tolist()
        bad = next(i for i, t in enumerate(listed) if t is not None and not _is_number_text(t))
        raise InvalidData(
            f"row {bad}: '{feature.name}' must be a number (got {listed[bad]!r}); "
            "correct the table, or make the feature categorical"
        ) from None
    return numbers.reindex(column.index) if len(present) else pd.Series(np.nan, column.index)


def _with_missing(column: pd.Series, texts: frozenset[str] = MISSING_TEXTS) -> pd.Series:
    return column.astype(object).where(~column.isin(texts), None)


def _is_number_text(text: object) -> bool:
    try:
        float(str(text))
    except ValueError:
        return False
    return True


def fitting_states(
    space: FeatureSpace, table: pd.DataFrame
) -> tuple[States, NDArray[np.intp], str]:
    """States of the rows that fit the features, those rows, and why the first other does not.

    Returns states ``(n, d)``, row numbers ``(n,)`` and a message, empty if all rows fit.
    """
    rows = np.arange(len(table))
    try:
        return space.encode(table), rows, ""
    except InvalidRecord as error:
        message = str(error)
    if not message.startswith("row "):
        raise InvalidData(message)
    fits = np.ones(len(table), bool)
    for feature in space.features:
        if feature.name in table.columns:
            fits &= _fits(feature, table[feature.name])
    kept = table[fits]
    return (space.encode(kept) if len(kept) else np.zeros((0, len(space)))), rows[fits], message


def _fits(feature: Feature, column: pd.Series) -> NDArray[np.bool_]:
    known: dict[object, bool] = {}
    fits = np.empty(len(column), bool)
    for row, value in enumerate(column.to_numpy(dtype=object)):
        key = (type(value), value)
        if key not in known:
            try:
                feature.code(value)
                known[key] = True
            except InvalidRecord:
                known[key] = False
        fits[row] = known[key]
    return fits

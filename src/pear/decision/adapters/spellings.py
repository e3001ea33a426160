"""Does the model answer the same however a table writes a value?

A table may hold yes as True, 1 or 1.0, a whole number as 3 or 3.0, a missing text as NaN or None,
and pandas categories in any order. To nearly every model these are one. To one that turns numbers
into texts, or reads the codes of categories, they are not; and what its table looks like in
production, a problem does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.decision.adapters.frames import FrameMaker
from pear.decision.blackbox import probe_states, with_gaps
from pear.decision.first_look import SAME
from pear.problem.features import Feature

Ask = Callable[[pd.DataFrame], NDArray[np.float64]]
"""The model's scores of a table."""

Spelling = Callable[[Feature, Any], Any]
"""A column written in another way; None where there is no other."""


def spelling_doubts(ask: Ask, maker: FrameMaker, learnt: Collection[str], name: str) -> list[str]:
    """Columns that the model reads otherwise when their values are written otherwise, in words.

    Columns that the problem declares are taken for looked at; of those ``learnt``, it is known what
    stands for a missing value.
    """
    rng = np.random.default_rng(9)
    probes = probe_states(maker.space, 64, rng)
    if any(feature.may_be_missing for feature in maker.space.features):
        probes[::2] = with_gaps(maker.space, probes[::2], rng)
    read = {
        column: feature
        for column in maker.columns
        if column not in maker.declared and (feature := maker.values_of(column)) is not None
    }
    for place, feature in enumerate(maker.space.features):
        if feature.kind == "numeric":
            probes[:, place] = np.rint(probes[:, place])  # What may be written 3.0 or 3.
    table = maker(probes)
    return list(_doubts(ask, table, read, learnt, name))


def _doubts(
    ask: Ask, table: pd.DataFrame, read: Mapping[str, Feature], learnt: Collection[str], name: str
) -> Iterator[str]:
    try:
        usual = ask(table)
    except Exception:
        return  # What the model cannot take is told with the row by the first look.
    told: set[str] = set()
    for spelling, words in SPELLINGS:
        changed = {
            column: other
            for column, feature in read.items()
            if column not in told
            and not (spelling is _missing and column in learnt)
            and (other := spelling(feature, table[column])) is not None
        }
        if not _differs(ask, table, changed, usual):
            continue
        for column, other in changed.items():
            if _differs(ask, table, {column: other}, usual):
                told.add(column)
                yield (
                    f"model '{name}' answers otherwise when '{column}' comes as "
                    f"{words.format(**_how(read[column]))}, or declare [model.inputs.{column}] to "
                    "say that it is right"
                )


def _differs(
    ask: Ask, table: pd.DataFrame, changed: Mapping[str, Any], usual: NDArray[np.float64]
) -> bool:
    if not changed:
        return False
    try:
        return bool((np.abs(ask(table.assign(**changed)) - usual) > SAME).any())
    except Exception:
        return False  # A spelling that the model refuses cannot mislead it.


def _how(feature: Feature) -> dict[str, str]:
    whole = feature.kind == "integer" and not feature.may_be_missing
    truth = "1.0" if feature.may_be_missing else "True"
    return {
        "truth": truth,
        "number": "3" if whole else "3.0",
        "kind": feature.kind,
        "feature": feature.name,
    }


def _truth_as(kind: type) -> Spelling:
    """Truth values as True, 1 or 1.0."""

    def spelled(feature: Feature, column: pd.Series) -> Any:
        if feature.kind != "boolean" or column.dtype == object or column.dtype == kind:
            return None
        values = [np.nan if value != value else kind(value) for value in column]
        return pd.Series(values, dtype=object if column.isna().any() else kind)

    return spelled


def _number(feature: Feature, column: pd.Series) -> Any:
    """Whole numbers as decimals, whole decimals as whole numbers."""
    if not feature.is_number:
        return None
    if column.dtype.kind == "i":
        return column.astype(float)
    values = [np.nan if value != value else int(value) for value in column]
    return pd.Series(values, dtype=object if column.isna().any() else int)


def _missing(feature: Feature, column: pd.Series) -> Any:
    gone = column.isna()
    text = feature.is_categorical and not isinstance(column.dtype, pd.CategoricalDtype)
    if not gone.any() or not text:
        return None
    values = column.astype(object)
    other = np.nan if any(value is None for value in values[gone]) else None
    return pd.Series([other if g else v for v, g in zip(values, gone, strict=True)], dtype=object)


def _categories(feature: Feature, column: pd.Series) -> Any:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return None
    return column.cat.reorder_categories(column.cat.categories[::-1])


SPELLINGS: tuple[tuple[Spelling, str], ...] = (
    (
        _truth_as(bool),
        "True than as {truth}, and is given {truth}: take its 'missing_counts_as' out of the "
        "problem if it is never missing",
    ),
    (
        _truth_as(int),
        "1 than as {truth}, and is given {truth}: make '{feature}' an integer from 0 to 1 if it is "
        "1 in production",
    ),
    (
        _truth_as(float),
        "1.0 than as {truth}, and is given {truth}: make '{feature}' numeric from 0 to 1 if it is "
        "1.0 in production",
    ),
    (
        _number,
        "a whole number (3) than as a decimal (3.0), and is given {number} because '{feature}' is "
        "{kind}: give it the kind that it has in production",
    ),
    (
        _missing,
        "None than as NaN where it is missing: declare under [model.inputs] what stands for a "
        "missing '{feature}'",
    ),
    (
        _categories,
        "a category in another order: the codes of categories are read; list those of '{feature}' "
        "in the order they had in training",
    ),
)

"""Can anything be proved about this model? It is checked when it is loaded.

A proof is about a function: the same record has the same score, whoever else is asked about and
however often. The rows asked here are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import expit

from pear.arrays import Floats
from pear.decision import blackbox
from pear.errors import EndpointFailed, ModelError, ModelOutput
from pear.problem.features import Feature, States

if TYPE_CHECKING:
    from pear.decision.adapters.frames import FrameMaker
    from pear.decision.blackbox import BlackBox


SAME = 1e-5
"""How far the scores of one record may differ by the rounding of single precision."""

PROBES, FEW = 64, 2

PIECES = (1, 2, 3, 4, 5, 9, 24)
"""Where the probes are split, to be scored in other batches: five of them alone."""


def check_model(black_box: BlackBox) -> list[str]:
    """Refuse a model whose score is not a function of the record; return what looks wrong, as
    sentences."""
    rng = np.random.default_rng(6)
    probes = blackbox.probe_states(black_box.space, PROBES, rng)
    scores = black_box.probe(probes)
    _refuse_unstable(black_box, probes, scores)
    _refuse_missing(black_box, probes)
    if any(feature.may_be_missing for feature in black_box.space.features):
        # Every other one, since what is filled in may be computed from those that have a value.
        probes[::2] = blackbox.with_gaps(black_box.space, probes[::2], rng)
        _refuse_unstable(black_box, probes, black_box.probe(probes))
    return list(_suspicious_scores(black_box, scores))


def _refuse_unstable(black_box: BlackBox, probes: States, scores: States) -> None:
    """Refuse a model that is random, or whose scores depend on the other rows it is given."""
    turned = black_box.probe(np.ascontiguousarray(probes[::-1]))[::-1]
    apart = np.concatenate([black_box.probe(piece) for piece in np.split(probes, PIECES)])
    differs = (np.abs(turned - scores) > SAME) | (np.abs(apart - scores) > SAME)
    if not differs.any():
        return
    row = int(np.flatnonzero(differs)[0])
    again = black_box.probe(probes)
    if (np.abs(again - scores) > SAME).any():
        row = int(np.argmax(np.abs(again - scores)))
        raise ModelError(
            f"model '{black_box.name}' does not answer the same twice ({scores[row]:.4g}, then "
            f"{again[row]:.4g}, for {black_box.space.decode(probes[row])[0]}); nothing can be "
            "proved about it: switch off what is random in it (dropout, noise, sampling)"
        )
    other = apart[row] if abs(apart[row] - scores[row]) > SAME else turned[row]
    raise ModelError(
        f"the scores of model '{black_box.name}' depend on which other people it is asked about "
        f"({scores[row]:.4g} or {other:.4g} for {black_box.space.decode(probes[row])[0]}); nothing "
        "can be proved about it: take out what is computed over a batch (its mean, ranks, batch "
        "normalisation in training mode)"
    )


def _refuse_missing(black_box: BlackBox, probes: States) -> None:
    """Refuse a model that fails where the problem lets a value be missing."""
    for column, feature in enumerate(black_box.space.features):
        if not feature.may_be_missing:
            continue
        some = probes[:FEW].copy()
        some[:, column] = np.nan
        try:
            black_box.probe(some)
        except EndpointFailed as error:
            raise _missing_refusal(black_box, feature.name, str(error)) from error
        except ModelOutput as error:
            raise _missing_refusal(
                black_box, feature.name, str(error.__cause__ or error)
            ) from error


def _missing_refusal(black_box: BlackBox, name: str, why: str) -> ModelError:
    first = (why.strip().splitlines() or ["it fails"])[0][:160]
    return ModelError(
        f"the problem lets '{name}' be missing, and model '{black_box.name}' cannot take that "
        f"({first}); put an imputer into the model, declare what stands for a missing value as "
        f"'missing' of {name} under [model.inputs], or take 'missing_counts_as' of '{name}' out of "
        "the problem"
    )


def _suspicious_scores(black_box: BlackBox, scores: States) -> Iterator[str]:
    low, high = float(scores.min()), float(scores.max())
    required = black_box.goal.required()
    name = f"model '{black_box.name}'"
    ranged = all(f.scale or not f.is_number for f in black_box.space.features)
    if high - low <= SAME and ranged:
        yield f"{name} gives all of {len(scores)} invented people the score {low:.4g}"
    elif np.isin(scores, (0.0, 1.0)).all():
        yield (
            f"every score of {name} is 0 or 1, like a class and not a probability: a margin means "
            "nothing, and people cannot see how close they are"
        )
    elif low >= 0.5 and high <= SIGMOID_OF_ONE and required <= 0.5:
        yield (
            f"all scores of {name} lie between 0.5 and 0.731, as if a sigmoid were applied twice: "
            "check its output"
        )
    elif low >= 1 - SIGMOID_OF_ONE and high <= SIGMOID_OF_ONE and _crowded(scores, low, high):
        yield (
            f"all scores of {name} lie between 0.269 and 0.731, many at the very ends, as if a "
            "softmax were applied twice: check its output"
        )


SIGMOID_OF_ONE = float(expit(1.0))


def _crowded(scores: States, low: float, high: float) -> bool:
    """Whether scores crowd at the ends of what a second softmax makes of 0 and 1."""
    near = (scores < 1 - SIGMOID_OF_ONE + 0.03) | (scores > SIGMOID_OF_ONE - 0.03)
    return bool(near.mean() > 0.2)


# Does it answer the same however a table writes a value?

Ask = Callable[[pd.DataFrame], Floats]
"""The model's scores of a table."""

Spelling = Callable[[Feature, Any], Any]
"""A column written in another way; None where there is no other."""


def spelling_doubts(ask: Ask, maker: FrameMaker, learnt: Collection[str], name: str) -> list[str]:
    """Warnings about columns for which the way a value is written changes the score.

    Columns that the problem declares count as checked; for those in ``learnt`` it is known what
    stands for a missing value.
    """
    rng = np.random.default_rng(9)
    probes = blackbox.probe_states(maker.space, 64, rng)
    if any(feature.may_be_missing for feature in maker.space.features):
        probes[::2] = blackbox.with_gaps(maker.space, probes[::2], rng)
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
        return  # What the model cannot take, `check_model` reports with the row.
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
                    f"model '{name}' gives other scores when '{column}' is written as "
                    f"{words.format(**_how(read[column]))}, or declare [model.inputs.{column}] to "
                    "say that it is right"
                )


def _differs(ask: Ask, table: pd.DataFrame, changed: Mapping[str, Any], usual: Floats) -> bool:
    if not changed:
        return False
    try:
        return bool((np.abs(ask(table.assign(**changed)) - usual) > SAME).any())
    except Exception:
        return False  # A way of writing that the model refuses cannot mislead it.


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
        "True and not as {truth}, as it is here: take its 'missing_counts_as' out of the "
        "problem if it is never missing",
    ),
    (
        _truth_as(int),
        "1 and not as {truth}, as it is here: make '{feature}' an integer from 0 to 1 if it is "
        "1 in production",
    ),
    (
        _truth_as(float),
        "1.0 and not as {truth}, as it is here: make '{feature}' numeric from 0 to 1 if it is "
        "1.0 in production",
    ),
    (
        _number,
        "a whole number (3) and not as a decimal (3.0), and it gets {number} because '{feature}' "
        "is {kind}: give it the kind that it has in production",
    ),
    (
        _missing,
        "None and not as NaN where it is missing: declare under [model.inputs] what stands for a "
        "missing '{feature}'",
    ),
    (
        _categories,
        "a pandas category in another order: the model reads the codes of categories; list those "
        "of '{feature}' in the order they had in training",
    ),
)

"""Is this a model about which anything can be proved? A look at it when it is loaded.

A proof is about a function: the same record has the same score, whoever else is asked about and
however often. The rows asked here are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pear.decision import blackbox
from pear.errors import EndpointFailed, ModelError, ModelOutput
from pear.problem.features import States

if TYPE_CHECKING:
    from pear.decision.blackbox import BlackBox

SAME = 1e-5
"""How far the scores of one record may differ by the rounding of single precision."""

PROBES, FEW = 64, 2

PIECES = (1, 2, 3, 4, 5, 9, 24)
"""Where the probes are cut to be asked in other company: five of them alone."""


def first_look(black_box: BlackBox) -> list[str]:
    """Refuse a model whose answer is not decided by the record; what is odd, as sentences."""
    rng = np.random.default_rng(6)
    probes = blackbox.probe_states(black_box.space, PROBES, rng)
    scores = black_box.probe(probes)
    _refuse_what_changes(black_box, probes, scores)
    _refuse_missing(black_box, probes)
    if any(feature.may_be_missing for feature in black_box.space.features):
        # Every other one: what is filled in may be taken from those who gave it.
        probes[::2] = blackbox.with_gaps(black_box.space, probes[::2], rng)
        _refuse_what_changes(black_box, probes, black_box.probe(probes))
    return list(_oddities(black_box, scores))


def _refuse_what_changes(black_box: BlackBox, probes: States, scores: States) -> None:
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
            raise _cannot_miss(black_box, feature.name, str(error)) from error
        except ModelOutput as error:
            raise _cannot_miss(black_box, feature.name, str(error.__cause__ or error)) from error


def _cannot_miss(black_box: BlackBox, name: str, why: str) -> ModelError:
    first = (why.strip().splitlines() or ["it fails"])[0][:160]
    return ModelError(
        f"the problem lets '{name}' be missing, and model '{black_box.name}' cannot take that "
        f"({first}); put an imputer into the model, declare what stands for a missing value as "
        f"'missing' of {name} under [model.inputs], or take 'missing_counts_as' of '{name}' out of "
        "the problem"
    )


def _oddities(black_box: BlackBox, scores: States) -> Iterator[str]:
    low, high = float(scores.min()), float(scores.max())
    required = black_box.goal.required()
    name = f"model '{black_box.name}'"
    ranged = all(f.scale or not f.is_number for f in black_box.space.features)
    if high - low <= SAME and ranged:
        yield f"{name} gives all of {len(scores)} invented people the score {low:.4g}"
    elif np.isin(scores, (0.0, 1.0)).all():
        yield (
            f"every score of {name} is 0 or 1, as of classes instead of probabilities: a margin "
            "says nothing, and nobody is told how near they are"
        )
    elif low >= 0.5 and high <= SIGMOID_OF_ONE and required <= 0.5:
        yield (
            f"all scores of {name} lie between 0.5 and 0.731, as where a sigmoid is applied twice: "
            "look at what it answers"
        )
    elif low >= 1 - SIGMOID_OF_ONE and high <= SIGMOID_OF_ONE and _crowded(scores, low, high):
        yield (
            f"all scores of {name} lie between 0.269 and 0.731, many at the very ends, as where a "
            "softmax is applied twice: look at what it answers"
        )


SIGMOID_OF_ONE = 1 / (1 + np.exp(-1.0))


def _crowded(scores: States, low: float, high: float) -> bool:
    """Whether scores crowd at the ends of what a second softmax makes of 0 and 1."""
    near = (scores < 1 - SIGMOID_OF_ONE + 0.03) | (scores > SIGMOID_OF_ONE - 0.03)
    return bool(near.mean() > 0.2)

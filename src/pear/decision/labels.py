"""Do a model's scores agree with the decisions taken on the people of a table?

A model that is given shuffled columns, or whose favourable class is reversed, raises no error.
Where a table has the decisions, the scores are compared with them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Flags, Floats
from pear.decision.blackbox import BlackBox
from pear.problem.features import FeatureSpace, States
from pear.problem.problem import Goal
from pear.problem.values import class_key, is_missing, plain

MOST_ROWS = 2_000
"""People who are compared at most, evenly from the table."""

FEWEST = 10
"""Fewer people than this with either decision say nothing."""

WEAKER = 0.1
"""How far a model's AUC may be below that of a simple model of the same columns."""

CLEARLY, MOST_EXCHANGED = 0.01, 16
"""The gain in AUC from swapping two columns that counts as evidence, and how many number columns
are tried."""

OFF = 0.15
"""How far the share of people refused may be from that of unfavourable decisions."""


@dataclass(frozen=True)
class Comparison:
    """Scores beside the decisions taken on n people.

    ``auc`` is the chance that somebody with a favourable decision has a higher score than somebody
    without; ``simple`` that of a simple model fitted on the same columns (NaN where none was).
    ``refused`` and ``unfavourable`` are shares of the n; ``right_above`` and ``right_below`` the
    shares with a favourable decision among those the model approves and refuses; ``swapped`` two
    columns of the model's array that give a better AUC when swapped, and that AUC.
    """

    target: str
    n: int
    auc: float
    simple: float
    refused: float
    unfavourable: float
    right_above: float
    right_below: float
    swapped: tuple[str, str, float] | None = None

    def words(self) -> str:
        """The comparison as a sentence."""
        parts = [f"AUC {self.auc:.2f}"]
        if np.isfinite(self.simple):
            parts[0] += f" (a simple model of the same columns: {self.simple:.2f})"
        parts.append(f"{self.refused:.0%} refused, {self.unfavourable:.0%} decided unfavourably")
        if np.isfinite(self.right_above) and np.isfinite(self.right_below):
            parts.append(
                f"of those the model approves {self.right_above:.0%} were decided favourably, of "
                f"those it refuses {self.right_below:.0%}"
            )
        return f"Scores beside '{self.target}' of {self.n:,} people: {'; '.join(parts)}."

    def doubts(self) -> list[str]:
        """What seems wrong with the model, or with how it is called, as sentences; usually
        nothing."""
        return list(self._doubts())

    def _doubts(self) -> Iterator[str]:
        good = round(self.n * (1 - self.unfavourable))
        bad = self.n - good
        chance = 3 * np.sqrt((self.n + 1) / (12 * good * bad))
        if self.auc < 0.5 - max(chance, 0.03):
            yield (
                f"the favourable class looks reversed: people with a favourable '{self.target}' "
                f"get lower scores (AUC {self.auc:.2f}); check 'favourable' of the goal and "
                "the order of the model's classes"
            )
        elif self.auc < 0.5 + max(chance, 0.05):
            yield (
                f"the model looks like noise beside '{self.target}' (AUC {self.auc:.2f}, 0.50 is "
                "chance): its inputs may be shuffled, or scaled or encoded differently than in "
                "training; check [model.inputs], or give the right model"
            )
        elif self.simple > self.auc + max(WEAKER, chance):
            yield (
                f"a simple model of the same columns has AUC {self.simple:.2f} and this one only "
                f"{self.auc:.2f}: its inputs look shuffled, or scaled or encoded differently than "
                "in training; check [model.inputs]"
            )
        if self.swapped is not None:
            one, other, better = self.swapped
            yield (
                f"the columns '{one}' and '{other}' look swapped: with each in the other's place "
                f"the model has AUC {better:.2f} instead of {self.auc:.2f}; check the order of "
                "[model.inputs]"
            )
        if not 0 < self.refused < 1:
            who = "nobody" if self.refused == 0 else "everybody"
            yield (
                f"the model refuses {who}, and {self.unfavourable:.0%} were decided unfavourably; "
                "check the threshold, and whether its scores are probabilities of the "
                "favourable class"
            )
        elif abs(self.refused - self.unfavourable) > OFF:
            yield (
                f"the model refuses {self.refused:.0%}, and {self.unfavourable:.0%} were decided "
                "unfavourably; weights of classes in training do that, and so does a wrong "
                "threshold or scaling: check them"
            )


def compare_with_labels(
    black_box: BlackBox, states: States, labels: Sequence[Any], target: str
) -> Comparison | str:
    """Scores of states ``(n, d)`` beside the decisions ``labels`` ``(n,)``; or why it cannot be."""
    good, why = favourable_labels(black_box.goal, labels, target)
    known = np.flatnonzero(~np.isnan(good))
    known = known[np.unique(np.linspace(0, max(len(known) - 1, 0), MOST_ROWS).astype(int))][
        : len(known)
    ]
    states, decided = states[known], good[known] > 0
    if why or min(decided.sum(), (~decided).sum()) < FEWEST:
        return why or f"too few people have a '{target}' of each kind to compare the model with"
    scores = black_box.probe(states)
    approved = scores > black_box.goal.required()
    return Comparison(
        target,
        n=len(states),
        auc=auc(scores, decided),
        simple=_simple(black_box.space, states, decided),
        refused=float((~approved).mean()),
        unfavourable=float((~decided).mean()),
        right_above=float(decided[approved].mean()) if approved.any() else np.nan,
        right_below=float(decided[~approved].mean()) if (~approved).any() else np.nan,
        swapped=_swapped(black_box, states, decided, auc(scores, decided)),
    )


def _swapped(
    black_box: BlackBox, states: States, good: Flags, now: float
) -> tuple[str, str, float] | None:
    """Two number columns of an array that give a clearly better AUC when swapped."""
    of_matrix = getattr(black_box.function, "of_matrix", None)
    found = of_matrix() if of_matrix is not None else None
    if found is None:
        return None
    inputs, answers = found
    numbers = [place for place, name in enumerate(inputs.names) if name in inputs.number_names][
        :MOST_EXCHANGED
    ]
    matrix, best = inputs(states), None
    for one, other in combinations(numbers, 2):
        changed = matrix.copy()
        changed[:, [one, other]] = matrix[:, [other, one]]
        then = auc(black_box.probe_with(states, _given(answers, changed)), good)
        if then > max(now + CLEARLY, best[2] if best else 0.0):
            best = (inputs.names[one], inputs.names[other], then)
    return best


def _given(answers: Callable[[States], States], rows: States) -> Callable[[States], States]:
    return lambda _: answers(rows)


def favourable_labels(goal: Goal, labels: Sequence[Any], target: str) -> tuple[Floats, str]:
    """1 where a decision was favourable, 0 where not, NaN where unknown; and what is odd."""
    keys = [None if is_missing(label) else class_key(plain(label)) for label in labels]
    classes = sorted(
        {key for key in keys if key is not None}, key=lambda key: (str(type(key)), key)
    )
    wanted = [class_key(value) for value in goal.favourable] or classes[-1:]
    good = np.array([np.nan if key is None else float(key in wanted) for key in keys])
    if not set(wanted) & set(classes):
        shown = ", ".join(str(value) for value in classes[:6])
        return good, (
            f"'{target}' never has a favourable class ({', '.join(map(str, goal.favourable))}): it "
            f"has {shown or 'no value'}"
        )
    return good, ""


def auc(scores: Floats, good: Flags) -> float:
    """The chance that one of the good has a higher score than one of the others.

    >>> auc(np.array([0.9, 0.4, 0.6, 0.1]), np.array([True, True, False, False]))
    0.75
    """
    ranks = pd.Series(scores).rank().to_numpy()
    n, m = int(good.sum()), int((~good).sum())
    return float((ranks[good].sum() - n * (n + 1) / 2) / (n * m))


def _simple(space: FeatureSpace, states: States, good: Flags) -> float:
    """The AUC of a simple model of the same columns on people it was not fitted on."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    if min(good.sum(), (~good).sum()) < 3 * FEWEST:
        return float("nan")
    few = [feature.is_categorical and len(feature.categories) < 200 for feature in space.features]
    model = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=8, min_samples_leaf=10, categorical_features=few, random_state=0
    )
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guessed = cross_val_predict(model, states, good, cv=folds, method="predict_proba")[:, 1]
    return auc(guessed, good)

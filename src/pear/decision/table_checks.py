"""Does the model agree with a table: with its raw rows, and with the decisions in it?

A table becomes records by the problem, and records become the model's input by its adapter. Where
both are right, the model gives the same scores for the table itself, which is how its owner asks
it. Otherwise nothing is proved about it. A model that is given shuffled columns, or whose
favourable class is reversed, raises no error: where a table has the decisions, the scores are
compared with them.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Flags, Floats
from pear.decision.blackbox import BlackBox
from pear.decision.load_checks import SAME
from pear.errors import ModelOutput, ModelWarning
from pear.problem import Goal, Plan
from pear.problem.features import FeatureSpace, States, Value
from pear.problem.values import class_key, is_missing, plain
from pear.tables.people import People
from pear.tables.reading import UNKNOWN

ROUNDED = 0.02
"""Rows in which single precision or a tie at a threshold of a tree may make a difference."""

READ = 500
"""Rows of a file that are compared."""


def raw_scores(black_box: BlackBox, table: pd.DataFrame, states: States) -> Floats | None:
    """The model's own scores of a table whose rows are ``states`` ``(n, d)``, shape ``(n,)``.

    None where the model takes no table, or the table lacks columns or cannot be read by the model:
    then its owner cannot ask it that way either.
    """
    function = black_box.function
    maker = getattr(function, "maker", None)
    of_table, columns = getattr(function, "of_table", None), getattr(maker, "columns", ())
    if of_table is None or not len(states) or getattr(maker, "declared", True):
        return None
    if not set(columns) <= set(table.columns) or not table.columns.is_unique:
        return None
    try:
        answered = of_table(table[list(columns)])
        return black_box.probe_with(states, lambda _: answered)
    except Exception:
        return None


def raw_table_doubt(black_box: BlackBox, table: pd.DataFrame, states: States) -> str:
    """A warning where the model gives the table itself other scores; empty where it does not."""
    return _compared(black_box, table, states)[0]


def raw_cells_doubt(black_box: BlackBox, cells: pd.DataFrame, people: People) -> str:
    """The same for a file whose ``cells`` are indexed by row, as pandas reads it by default."""
    shown = np.isin(people.rows, cells.index)
    rows, states = people.rows[shown][:READ], people.states[shown][:READ]
    table = cells.loc[rows]
    texts = [name for name in table.columns if pd.api.types.is_string_dtype(table[name])]
    if texts:  # Text files hold only text; what pandas makes of a column depends on all its rows.
        table = pd.read_csv(io.StringIO(table.to_csv(index=False))).set_axis(table.index, axis=0)
    # A question mark may be a missing value that its owner's program replaces first.
    certain = ~(table.astype(str) == UNKNOWN).any(axis=1).to_numpy()
    return raw_table_doubt(black_box, table[certain], states[certain])


def _compared(black_box: BlackBox, table: pd.DataFrame, states: States) -> tuple[str, bool]:
    """The doubt, and whether it is more than rounding at a few thresholds."""
    own = raw_scores(black_box, table, states)
    if own is None:
        return "", False
    ours, required = black_box.probe(states), black_box.goal.required()
    differs = np.abs(own - ours) > SAME
    if not differs.any():
        return "", False
    row = int(np.argmax(np.abs(own - ours)))
    by = _differing_columns(black_box, table, states, differs)
    grave = bool(differs.mean() > ROUNDED or ((own > required) != (ours > required)).any())
    return (
        f"model '{black_box.name}' gives row {table.index[row]} of the table {own[row]:.4g} as it "
        f"stands and {ours[row]:.4g} as the problem describes it ({int(differs.sum()):,} of "
        f"{len(own):,} rows differ{by}): check the "
        "kinds and categories of the features, or declare under [model.inputs] what the columns are"
    ), grave


def _differing_columns(
    black_box: BlackBox, table: pd.DataFrame, states: States, differs: Flags
) -> str:
    """The columns whose raw values alone change the score, in words."""
    function = black_box.function
    made, ours = function.table(states[differs]), black_box.probe(states[differs])  # type: ignore[attr-defined]
    found = []
    for column in made.columns:
        mixed = made.assign(**{column: table[column].to_numpy()[differs]})
        mixed[column] = mixed[column].astype(table[column].dtype)
        own = raw_scores(black_box, mixed, states[differs])
        if own is None or (np.abs(own - ours) > SAME).any():
            found.append(repr(column))
    return f", by {', '.join(found[:4])}" if found else ""


def check_plans_on_table(
    black_box: BlackBox, table: pd.DataFrame, states: States, plans: Sequence[Plan]
) -> None:
    """Refuse plans for the rows of a table if the model gives the rows themselves other scores.

    The rows are checked as they are, and each with the changes of its plan, in columns of the same
    types.
    """
    doubt, grave = _compared(black_box, table, states)
    if grave:
        raise ModelOutput(f"{doubt}; nothing is proved about what it says of records")
    if doubt:
        warnings.warn(doubt, ModelWarning, stacklevel=3)
    some = [place for place, plan in enumerate(plans) if plan.steps]
    changed = table.iloc[some].copy()
    for column in {step.feature for place in some for step in plans[place].steps}:
        values = changed[column].tolist() if column in changed.columns else []
        for row, place in enumerate(some):
            for step in plans[place].steps if values else ():
                if step.feature == column:
                    values[row] = _as_written_in(table[column], step.after)
        if values:
            changed[column] = _column_like(table[column], values, changed.index)
    ends = black_box.space.encode([_end(plans[place]) for place in some]) if some else states[:0]
    own = raw_scores(black_box, changed, ends)
    if own is None:
        return
    for place, score in zip(some, own, strict=True):
        required = black_box.goal.required(plans[place].limits)
        if plans[place].success and not score > required:
            raise ModelOutput(
                f"model '{black_box.name}' gives row {table.index[place]} with the changes of its "
                f"plan {score:.6g}, where more than {required:g} is needed; such a plan is not "
                "handed out: check how the table holds what the plan changes "
                f"({', '.join(step.feature for step in plans[place].steps)})"
            )


def _end(plan: Plan) -> dict[str, Value | None]:
    return dict(plan.start) | {step.feature: step.after for step in plan.steps}


def _as_written_in(column: pd.Series, value: Value | None) -> object:
    """A value as the column writes it: the number 2 where it has no text "2"."""
    if not isinstance(value, str):
        return value
    known = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    values = list(pd.unique(known.dropna()))
    same = [other for other in values if str(plain(other)).removesuffix(".0") == value]
    return value if value in values or len(same) != 1 else same[0]


def _column_like(column: pd.Series, values: list[object], index: pd.Index) -> pd.Series:
    """Values as a column of the same kind, where it can hold them."""
    made = pd.Series([None if is_missing(v) else v for v in values], index=index, dtype=object)
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = dict.fromkeys([*column.cat.categories, *made.dropna()])
        return made.astype(pd.CategoricalDtype(list(known), column.cat.ordered))
    try:
        same = made.astype(column.dtype)
    except (TypeError, ValueError):
        return made.infer_objects()
    return same if (same.astype(object) == made)[made.notna()].all() else made.infer_objects()


# Do the scores agree with the decisions in the table?

MOST_ROWS = 2_000
"""People who are compared at most, evenly from the table."""

FEWEST = 10
"""With fewer people than this of either decision, nothing is compared."""

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
        return why or f"'{target}' has too few people of either decision to compare the model with"
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
    """1 where a decision was favourable, 0 where not, NaN where unknown; and what is wrong."""
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

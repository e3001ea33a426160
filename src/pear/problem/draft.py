"""What is a first problem for a table of people, to be reviewed by someone who knows them?

A draft is careful: what tells who a person is, where they live, or what nobody can change gets no
action; every action goes one way only, and carries ``reviewed = false`` until a person agrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Flags, Floats
from pear.errors import InvalidData, InvalidSetting
from pear.problem import column_names
from pear.problem.actions import Action, ActionSpace
from pear.problem.costs import CostGraph
from pear.problem.features import LARGEST_WHOLE, Feature, FeatureSpace, States
from pear.problem.files import problem_to_toml
from pear.problem.problem import Goal, Problem
from pear.problem.schema import toml_path
from pear.problem.values import check_type, class_key, plain

Score = Callable[[States], Floats]

MOST_CLASSES = 20
MOST_CATEGORIES = 100
FEW_VALUES = 10
"""Whole numbers with so few different values may be codes; no value beyond them is assumed."""
SHARED_VALUES = 25
"""A fraction of at most so many values, each of many people, belongs to a group, not a person."""
ROWS_NAMED = 0.95
"""Share of different values from which a column counts as an identifier, even if some occur
twice."""
LARGEST = 1e100
"""Numbers beyond this are mistakes, or marks for something else."""
STEPS = 10
"""A drafted grid has about this many steps."""
ASKED = 400
"""People of the table whose changed records the model scores."""


@dataclass(frozen=True)
class Draft:
    """A first problem, and what its author should look at, by table of the file."""

    problem: Problem
    comments: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that gave no feature, and why not."""

    def text(self) -> str:
        """The draft as the text of a ``problem.toml`` with its comments."""
        return problem_to_toml(self.problem, self.comments)


def draft_problem(
    table: pd.DataFrame,
    target: str,
    *,
    favourable: Any = None,
    name: str = "draft",
    model: str = "",
    score: Score | None = None,
) -> Draft:
    """A first problem from a table with one row per person and the decision in ``target``.

    Parameters
    ----------
    table, target
        People, and the name of the column with the decision.
    favourable
        The favourable class of ``target``, or a list of them. It may be left out where the names
        of the column and of its classes leave no doubt.
    name, model
        What the problem is called; where the model is kept, as the problem file should name it.
    score
        The model's scores of states ``(n, d)``, shape ``(n,)``, if there is a model: it is asked
        which way each feature helps. Without it, only the labels in the table tell.

    Returns
    -------
    Draft
        The problem, with comments on what was decided and why.

    Raises
    ------
    InvalidData
        Where the table has no such column, or its classes do not tell which one is favourable.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 50, 41], "income": [900.0, 2500.5, 1800.0],
    ...                       "approved": [0, 1, 1]})
    >>> draft = draft_problem(table, "approved")
    >>> [(action.name, action.reviewed) for action in draft.problem.actions.actions]
    [('increase_income', False)]
    >>> draft.problem.space["age"].protected, draft.problem.goal.favourable
    (True, (1,))
    """
    check_type("table", table, pd.DataFrame)
    if target not in table.columns:
        raise InvalidData(
            f"the table has no column '{target}'; its columns are {', '.join(table.columns)}"
        )
    goal = Goal(_favourable(table[target], target, favourable), target=target)
    good = (
        table[target]
        .map(lambda value: class_key(plain(value)))
        .isin([class_key(value) for value in goal.favourable])
    )
    comments, left_out, features = {}, {}, []
    for column in table.columns:
        if column == target:
            continue
        drafted = draft_feature(column, table[column], table[target])
        if isinstance(drafted, str):
            left_out[column] = drafted
            continue
        feature, comment = drafted
        features.append(feature)
        if comment:
            comments[toml_path("features", column)] = comment
    actions = []
    if features:
        space = FeatureSpace(tuple(features))
        known = table[target].notna().to_numpy()
        states = space.encode(table)[known]
        evidence = _Evidence(space, states, good.to_numpy()[known], score)
        actions = list(_actions(space, table, evidence, comments))
    if not actions:
        raise InvalidData(
            "the table has no column that a person could change for the better (got "
            f"{', '.join(table.columns)}); give a table with more columns or rows, or write the "
            "problem by hand"
        )
    problem = Problem(
        space, ActionSpace(space, tuple(actions)), CostGraph(space), goal, name=name, model=model
    )
    comments[""] = _head(len(table), left_out)
    comments["costs"] = "Review: add edges, [parent, child], where one thing makes another harder."
    comments["weights"] = "Review: the range in which most people's weights lie."
    return Draft(problem, comments, left_out)


def left_out_words(left_out: dict[str, str]) -> str:
    """Columns that were left out, each with its reason.

    >>> left_out_words({"customer": "names rows", "note": "250 different texts"})
    'Left out: customer (names rows), note (250 different texts).'
    """
    return f"Left out: {', '.join(f'{name} ({why})' for name, why in left_out.items())}."


def _head(rows: int, left_out: dict[str, str]) -> str:
    lines = [
        f"A first draft from a table of {rows:,} people. Read what is marked 'Review', correct it,",
        "set 'reviewed = true' on each action that someone who knows these people agrees to,",
        "remove the others, and run 'pear check' on the result.",
    ]
    if left_out:
        lines.append(left_out_words(left_out))
    return "\n".join(lines)


def _favourable(column: pd.Series, target: str, given: Any) -> tuple[Any, ...]:
    counts = column.value_counts()
    if not 2 <= len(counts) <= MOST_CLASSES:
        raise InvalidData(
            f"the target '{target}' must have 2 to {MOST_CLASSES} classes (got {len(counts)} "
            "different values); name the column with the decision"
        )
    people = {_whole(plain(value)): int(count) for value, count in counts.items()}
    classes = sorted(people, key=lambda value: (str(type(value)), value))
    shown = ", ".join(f"{value} ({people[value]:,} people)" for value in classes)
    if given is None:
        certain = certain_favourable(target, classes)
        if certain:
            return certain
        raise InvalidSetting(
            f"which class of '{target}' is favourable is not certain: neither the name of the "
            f"column nor its classes tell. The classes are {shown}; say which of them people hope "
            "for as 'favourable' (--favourable)"
        )
    wanted = list(given) if isinstance(given, (list, tuple, set)) else [given]
    chosen = []
    for value in wanted:
        found = [known for known in classes if class_key(known) == class_key(plain(value))]
        if not found:
            raise InvalidSetting(f"'{target}' has no class {value!r}; its classes are {shown}")
        chosen += found
    if not wanted or len(set(chosen)) == len(classes):
        raise InvalidSetting(
            f"some class of '{target}' must be favourable and some must not (got {wanted!r}); its "
            f"classes are {shown}"
        )
    return tuple(chosen)


def certain_favourable(target: str, classes: Sequence[Any]) -> tuple[Any, ...]:
    """The favourable classes where the names leave no doubt; empty where they do.

    >>> certain_favourable("deny", ["no", "yes"]), certain_favourable("class", ["good", "bad"])
    (('no',), ('good',))
    >>> certain_favourable("income", ["<=50K", ">50K"]), certain_favourable("credit_risk", [0, 1])
    ((), ())
    """
    said = [column_names.outcome(str(value)) for value in classes]
    if 0 not in said and len(set(said)) == 2:
        return tuple(value for value, side in zip(classes, said, strict=True) if side > 0)
    asked = 0 if column_names.NEGATION.found_in(target) else column_names.outcome(target)
    texts = [str(value).strip().lower() for value in classes]
    yes = [value for value, text in zip(classes, texts, strict=True) if text in column_names.YES]
    no = [value for value, text in zip(classes, texts, strict=True) if text in column_names.NO]
    if asked and len(yes) == len(no) == 1 and len(classes) == 2:
        return tuple(yes if asked > 0 else no)
    return ()


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value == int(value) else value


def draft_feature(
    name: str, column: pd.Series, decision: pd.Series | None = None
) -> tuple[Feature, str] | str:
    """A feature and what to review about it, or why the column gives none."""
    present = column.dropna()
    if not len(present):
        return "empty"
    numbers = _numbers(name, present)
    distinct = present.nunique()
    whole = numbers is not None and bool((numbers == np.rint(numbers)).all())
    if distinct >= ROWS_NAMED * len(present):
        identifier = column_names.is_identifier(name) and (numbers is None or whole)
        if identifier or (numbers is None and distinct > MOST_CATEGORIES // 5):
            return "names rows"
    if numbers is None and distinct > MOST_CATEGORIES:
        return f"{distinct:,} different texts"
    notes: list[str] = []
    named, unit = column_names.unit_of(name)
    settings: dict[str, Any] = {"label": column_names.label_of(named) if named == name else named}
    truth = _is_truth(present, numbers)
    if numbers is None or truth:
        kind_settings: dict[str, Any] = _named_values(present, truth=truth)
    else:
        settings["unit"] = unit
        kind_settings = _number_settings(numbers, whole, notes)
    categories = kind_settings.get("categories", ())
    fixed = _why_immutable(name, categories, present, numbers, truth=truth, decision=decision)
    if column_names.is_personal(name, categories):
        settings["immutable"] = settings["protected"] = True
        notes.append("Review: taken for a personal attribute, so it is immutable and protected.")
    elif fixed:
        settings["immutable"] = True
        notes.append(f"Review: immutable, because {fixed}.")
    if settings.get("immutable"):
        kind_settings.pop("upper", None)  # It would only keep people out.
    if len(present) < len(column):
        kind_settings["missing_counts_as"] = _usual(present, kind_settings)
        absent = f"{len(column) - len(present):,} of {len(column):,} values are missing"
        notes.append(f"Review: {absent}; costs see the usual one.")
    return Feature(name, **settings, **kind_settings), "\n".join(notes)


def _why_immutable(
    name: str,
    categories: Sequence[str],
    present: pd.Series,
    numbers: Any,
    *,
    truth: bool,
    decision: pd.Series | None,
) -> str:
    """Why no action should change a column, in words; empty if one might."""
    distinct = present.nunique()
    if distinct == 1:
        return "everybody in the table has the same value"
    if why := column_names.why_fixed(name):
        return f"it sounds like {why}"
    if decision is not None and _same_split(present, decision):
        return "it says the same as the decision itself"
    if (truth or categories) and distinct == 2 and column_names.is_owed(name):
        return "it tells what happened, which nobody can undo"
    if _are_dates(present):
        return "its values are dates"
    fractions = numbers is not None and not truth and not _mostly_whole(numbers)
    if fractions and distinct <= SHARED_VALUES and len(present) >= SHARED_VALUES * distinct:
        return f"{len(present):,} people share {distinct} fractions, as of a region or a trade"
    return ""


def _same_split(column: pd.Series, decision: pd.Series) -> bool:
    pairs = pd.DataFrame({"column": column, "decision": decision.loc[column.index]}).dropna()
    n = pairs["decision"].nunique()
    return (
        len(pairs) >= SHARED_VALUES
        and n > 1
        and pairs["column"].nunique() == n == len(pairs.drop_duplicates())
    )


def _are_dates(present: pd.Series) -> bool:
    if pd.api.types.is_datetime64_any_dtype(present):
        return True
    form = r"\d{4}-\d{1,2}(-\d{1,2}.*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}.*"
    return not pd.api.types.is_numeric_dtype(present) and bool(
        present.astype(str).str.fullmatch(form).all()
    )


def _numbers(name: str, present: pd.Series) -> Any:
    if not pd.api.types.is_numeric_dtype(present):  # Truth values count as numbers here.
        return None
    numbers = present.to_numpy(float)
    beyond = ~(np.abs(numbers) < LARGEST)
    if beyond.any():
        row = present.index[np.flatnonzero(beyond)[0]]
        raise InvalidData(
            f"row {row}: '{name}' is too large for a number of a person (got "
            f"{numbers[beyond][0]:g}); correct it, or leave it empty if it is not known"
        )
    return numbers


def _mostly_whole(numbers: Floats) -> bool:
    """A few fractions among whole numbers are means that somebody filled in."""
    return bool((numbers == np.rint(numbers)).mean() >= 0.95)


def _is_truth(present: pd.Series, numbers: Any) -> bool:
    if numbers is not None:
        return pd.api.types.is_bool_dtype(present) or set(np.unique(numbers)) == {0.0, 1.0}
    # Texts such as "yes" stay texts: a model trained on the table knows them as such.
    return {str(value).lower() for value in present.unique()} == {"true", "false"}


def _named_values(present: pd.Series, *, truth: bool) -> dict[str, Any]:
    if truth:
        return {"kind": "boolean"}
    return {"kind": "categorical", "categories": tuple(sorted(str(v) for v in present.unique()))}


def _number_settings(numbers: Any, whole: bool, notes: list[str]) -> dict[str, Any]:
    least, most = float(numbers.min()), float(numbers.max())
    low, high = (float(q) for q in np.quantile(numbers, [0.005, 0.995]))
    integer = whole and max(abs(least), abs(most)) < LARGEST_WHOLE
    number: Any = int if integer else float
    settings: dict[str, Any] = {"kind": "integer" if integer else "numeric"}
    settings["lower"] = number(0) if least >= 0 else number(round_out(least, down=True))
    settings["upper"] = number(round_out(most, down=False))
    values = np.unique(numbers)
    if _mostly_whole(numbers) and 2 < len(values) <= FEW_VALUES:
        settings["lower"], settings["upper"] = number(least), number(most)
        shown = ", ".join(f"{value:g}" for value in values)
        notes.append(f"Review: only {shown} occur; if they are codes, remove what changes them.")
    if low < high and most - least > 10 * (high - low):
        settings["scale"] = (number(math.floor(low)), number(math.ceil(high)))
        notes.append("Review: a few values lie far out; costs see the range of nearly everybody.")
    elif least < most:
        settings["scale"] = (number(least), number(most))
    return settings


def _usual(present: pd.Series, settings: dict[str, Any]) -> Any:
    kind = settings["kind"]
    if kind == "numeric":
        return float(present.median())
    if kind == "integer":
        return round(float(present.median()))
    common = present.mode().iloc[0]
    if kind == "categorical":
        return str(common)
    return str(common).lower() in ("true", "1", "1.0")


def round_out(value: float, *, down: bool) -> float:
    """A number with two significant digits that is not inside of a value.

    >>> round_out(17_342.0, down=False), round_out(-3.21, down=True), round_out(1.0, down=False)
    (18000.0, -3.3, 1.0)
    """
    if value == 0:
        return 0.0
    digits = 1 - math.floor(math.log10(abs(value)))
    scaled = round(value * 10.0**digits, 6)
    rounded = math.floor(scaled) if down else math.ceil(scaled)
    return round(rounded / 10.0**digits, max(digits, 0))


def nice_step(size: float, *, whole: bool) -> Any:
    """The round step (1, 2 or 5 times a power of ten) nearest below a size.

    >>> nice_step(430.0, whole=True), nice_step(0.13, whole=False), nice_step(0.3, whole=True)
    (200, 0.1, 1)
    """
    if whole and size < 1:
        return 1
    power = 10.0 ** math.floor(math.log10(size))
    step = max(m * power for m in (1, 2, 5) if m * power <= size * (1 + 1e-9))
    return round(step) if whole else float(f"{step:.1e}")


@dataclass(frozen=True)
class _Evidence:
    """Which way a feature helps, by the labels and the model.

    ``states`` ``(n, d)`` are the people whose decision is known, ``good`` ``(n,)`` tells who of
    them got a favourable one.
    """

    space: FeatureSpace
    states: States
    good: Flags
    score: Score | None

    def direction_by_labels(self, feature: Feature) -> int:
        """1 if people with a favourable decision have more of it, -1 if less, 0 if it is unclear.

        Mann and Whitney's test, two standard deviations wide.
        """
        codes = self.states[:, self.space.index(feature.name)]
        known = ~np.isnan(codes)
        ranks = pd.Series(codes[known]).rank().to_numpy()
        good = self.good[known]
        n, m = int(good.sum()), int((~good).sum())
        if not n or not m:
            return 0
        above = ranks[good].sum() - n * (n + 1) / 2 - n * m / 2
        return int(np.sign(above)) if above**2 > 4 * n * m * (n + m + 1) / 12 else 0

    def better_categories(self, feature: Feature) -> list[str]:
        """Categories with which people fare better than on average, by the model if there is one.

        The model's mean score of everybody with the category against that of everybody as they
        are; without a model, the share of favourable decisions.
        """
        column, found = self.space.index(feature.name), []
        usual = np.mean(self.good if self.score is None else self.score(self.asked))
        for code, category in enumerate(feature.categories):
            if self.score is None:
                here = self.states[:, column] == code
                mean = np.mean(self.good[here]) if here.any() else 0.0
            else:
                changed = self.asked.copy()
                changed[:, column] = code
                mean = np.mean(self.score(changed))
            if mean > usual:
                found.append(category)
        return found

    @cached_property
    def asked(self) -> States:
        """People whose changed records the model scores."""
        chosen = np.unique(np.linspace(0, len(self.states) - 1, ASKED).astype(int))
        return np.asarray(self.states[chosen])

    def direction_by_model(self, feature: Feature, amounts: Sequence[float]) -> int:
        """1 if the model's scores of the same people rise with it, -1 if they fall, else 0."""
        if self.score is None:
            return 0
        states, column = self.asked, self.space.index(feature.name)
        low, high = (feature.lower, feature.upper) if feature.is_number else (0, 1)
        effect = 0.0
        for amount in amounts:
            sides = []
            for sign in (1, -1):
                changed = states.copy()
                changed[:, column] = np.clip(states[:, column] + sign * amount, low, high)
                sides.append(float(np.mean(self.score(changed))))
            effect += (sides[0] - sides[1]) / len(amounts)
        return int(np.sign(effect)) if abs(effect) > 1e-6 else 0


def _actions(
    space: FeatureSpace, table: pd.DataFrame, evidence: _Evidence, comments: dict[str, str]
) -> Iterator[Action]:
    taken: set[str] = set()
    for feature in space.features:
        if feature.immutable:
            continue
        name = "_".join(column_names.words_of(feature.name)) or feature.name
        plain_name, number = name, 1
        while name in taken:
            number += 1
            name = f"{plain_name}_{number}"
        taken.add(name)
        if feature.is_categorical and len(feature.categories) > 2:
            action = _choice(feature, name, evidence.better_categories(feature))
            why = "others fare better with these; which of them can a person choose?"
        else:
            amounts = (
                _amounts(feature, table[feature.name].dropna().to_numpy(float))
                if feature.is_number
                else (1,)
            )
            way, why = _direction(feature, amounts, evidence)
            if not way:
                _add(comments, toml_path("features", feature.name), f"No action: {why}.")
                continue
            action = _one_way(feature, name, way, amounts)
        if action is not None:
            comments[toml_path("actions", action.name)] = f"Review: {why}"
            yield action


def _add(comments: dict[str, str], key: str, line: str) -> None:
    comments[key] = f"{comments[key]}\n{line}" if key in comments else line


def _choice(feature: Feature, name: str, better: Sequence[str]) -> Action | None:
    said = tuple(category for category in better if column_names.is_answer(category))
    return Action(f"change_{name}", feature.name, "set", said, reviewed=False) if said else None


def _direction(feature: Feature, amounts: Sequence[float], evidence: _Evidence) -> tuple[int, str]:
    """1 for more of it, -1 for less, 0 for neither; and why, in words."""
    labels, model = (
        evidence.direction_by_labels(feature),
        evidence.direction_by_model(feature, amounts),
    )
    if feature.is_number and column_names.is_owed(feature.name, feature.label):
        return -1, "can this really be brought down, or is it history?"
    if feature.is_number and column_names.is_earned(feature.name):
        against = ", though the model's scores fall" if model < 0 else ""
        return 1, f"only upwards, because of its name{against}; is that in a person's hands?"
    if (model or labels) > 0 and feature.is_number and column_names.is_borrowed(feature.name):
        return 0, "it would mean to borrow more"
    if model and labels == -model:
        return (
            model,
            "the model's scores say this way, but the labels in the table say the opposite.",
        )
    if model and labels:
        return model, "the model's scores and the labels in the table both say this way."
    if model:
        return model, "the model's scores say this way; the labels in the table do not tell."
    if labels:
        asked = "the model does not react to it" if evidence.score else "no model was asked"
        return labels, f"the labels in the table say this way; {asked}."
    return 0, "nothing tells which way would help"


def _one_way(feature: Feature, name: str, way: int, amounts: Sequence[float]) -> Action:
    if feature.is_categorical:
        value = feature.categories[1 if way > 0 else 0]
        return Action(f"change_{name}", feature.name, "set", (value,), reviewed=False)
    if feature.kind == "boolean":
        return Action(f"change_{name}", feature.name, "set", (way > 0,), reviewed=False)
    # Beyond the scale, costs do not see how large a change is.
    first, last = feature.scale or (None, None)
    if way > 0:
        upper = None if last is None or last == feature.upper else last
        return Action(
            f"increase_{name}", feature.name, "add", tuple(amounts), "increase",
            upper=upper, reviewed=False,
        )  # fmt: skip
    lower = None if first is None or first == feature.lower else first
    return Action(
        f"reduce_{name}", feature.name, "add", tuple(-a for a in amounts), "decrease",
        lower=lower, reviewed=False,
    )  # fmt: skip


def _amounts(feature: Feature, values: Floats) -> tuple[Any, ...]:
    """Round amounts up to the range in which nearly all people lie; whole ones stay whole."""
    low, high = np.quantile(values, [0.05, 0.95])
    if low == high:
        low, high = values.min(), values.max()
    step = nice_step((high - low) / STEPS, whole=_mostly_whole(values))
    n = max(1, min(STEPS, int((high - low) / step + 1e-9)))
    return tuple(
        step * i if isinstance(step, int) else round(step * i, 12) for i in range(1, n + 1)
    )

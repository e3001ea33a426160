"""Which keys may stand in ``problem.toml``, and of which type is each?

The tables below are the only list of keys: the reader checks against them, and a test
holds ``docs/problem-file.md`` to them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from pear.errors import InvalidProblem
from pear.problem.checks import is_finite, is_number, is_whole, plain, shown
from pear.problem.toml_text import toml_path

Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Key:
    """What a key holds, in words and as a test; ``required`` keys may not be left out."""

    words: str
    check: Check
    required: bool = False


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_value(value: Any) -> bool:
    return isinstance(value, (str, bool)) or is_number(value)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number_or_none(value: Any) -> bool:
    return is_number(value) or value == "none"


def _is_pair(check: Check) -> Check:
    return lambda value: _list_of(check)(value) and len(value) == 2


TEXT = Key("a text", _is_text)
NUMBER = Key("a number", is_number)
FLAG = Key("true or false", lambda value: isinstance(value, bool))
VALUE = Key("a text, a number or true or false", _is_value)
VALUES = Key("a list of texts, numbers or truth values", _list_of(_is_value))
TABLE = Key("a table", _is_table)
RANGE = Key("a list of two numbers", _is_pair(is_number))
FACT = Key(
    "a number, or a list with one for each argument",
    lambda value: is_number(value) or _list_of(is_number)(value),
)
NUMBER_OR_NONE = Key('a number or "none"', _is_number_or_none)

PROBLEM_KEYS = {
    "format": Key("1", lambda value: value == 1 and is_whole(value)),
    "name": TEXT,
    "max_length": Key("a whole number", is_whole),
    "goal": TABLE,
    "features": Key("a table", _is_table, required=True),
    "actions": Key("a table", _is_table, required=True),
    "costs": TABLE,
    "weights": TABLE,
    "archetypes": Key("a list of tables", _list_of(_is_table)),
    "model": TABLE,
    "prior": TABLE,
    "asked": TABLE,
    "words": TABLE,
}
ASKED_KEYS = {"amount": Key("a text", _is_text, required=True), "months": TEXT, "rate": NUMBER}
GOAL_KEYS = {"favourable": VALUES, "threshold": NUMBER, "margin": NUMBER, "target": TEXT}
FEATURE_KEYS = {
    "kind": Key("a text", _is_text, required=True),
    "label": TEXT,
    "unit": TEXT,
    "lower": NUMBER,
    "upper": NUMBER,
    "scale": RANGE,
    "categories": Key("a list of texts", _list_of(_is_text)),
    "ordered": FLAG,
    "levels": Key("a list of numbers", _list_of(is_number)),
    "immutable": FLAG,
    "protected": FLAG,
    "missing_counts_as": VALUE,
    "used": FLAG,
}
ACTION_KEYS = {
    "feature": Key("a text", _is_text, required=True),
    "mode": Key("a text", _is_text, required=True),
    "arguments": Key(
        "a list, or a range of from, to and step or count",
        lambda value: _is_table(value) or _list_of(_is_value)(value),
        required=True,
    ),
    "direction": TEXT,
    "from_missing": FLAG,
    "lower": NUMBER,
    "upper": NUMBER,
    "requires": Key("a list of tables", _list_of(_is_table)),
    "phrase": TEXT,
    "reviewed": FLAG,
    "weeks": FACT,
    "once": FACT,
    "monthly": FACT,
    "priority": Key("a whole number", is_whole),
    "tolerance": NUMBER,
}
REQUIREMENT_KEYS = {
    "feature": Key("a text", _is_text, required=True),
    "values": VALUES,
    "lower": NUMBER,
    "upper": NUMBER,
}
COST_KEYS = {
    "floor": NUMBER_OR_NONE,
    "offset": NUMBER,
    "zero_change": NUMBER_OR_NONE,
    "edges": Key("a list of [parent, child] pairs", _list_of(_is_pair(_is_text))),
}
WEIGHT_KEYS = {"default": RANGE, "ranges": TABLE}
ARCHETYPE_KEYS = {
    "name": Key("a text", _is_text, required=True),
    "share": NUMBER,
    "mean": Key("a table of numbers", _is_table, required=True),
    "spread": Key(
        "a number or a table of numbers",
        lambda value: is_number(value) or _is_table(value),
        required=True,
    ),
}
MODEL_KEYS = {"path": TEXT, "url": TEXT, "output": TEXT, "classes": VALUES, "inputs": TABLE}
INPUT_KEYS = {
    "feature": TEXT,
    "encoding": TEXT,
    "categories": Key("a list of texts", _list_of(_is_text)),
    "codes": Key("a list of numbers", _list_of(is_number)),
    "subtract": NUMBER,
    "divide": NUMBER,
    "clip": FLAG,
    "missing": VALUE,
}
PRIOR_KEYS = {"path": Key("a text", _is_text, required=True)}
TEXTS = Key(
    "a table of texts", lambda value: _is_table(value) and all(map(_is_text, value.values()))
)
WORD_KEYS = {
    "labels": TEXTS,
    "units": TEXTS,
    "phrases": TEXTS,
    "categories": Key(
        "a table of tables of texts",
        lambda value: _is_table(value) and all(map(TEXTS.check, value.values())),
    ),
}

ALL_KEYS: dict[str, dict[str, Key]] = {
    "": PROBLEM_KEYS,
    "goal": GOAL_KEYS,
    "features.NAME": FEATURE_KEYS,
    "actions.NAME": ACTION_KEYS,
    "actions.NAME.requires": REQUIREMENT_KEYS,
    "costs": COST_KEYS,
    "weights": WEIGHT_KEYS,
    "archetypes": ARCHETYPE_KEYS,
    "model": MODEL_KEYS,
    "model.inputs.NAME": INPUT_KEYS,
    "prior": PRIOR_KEYS,
    "asked": ASKED_KEYS,
    "words.LANGUAGE": WORD_KEYS,
}
"""Every key by the table it stands in, for the reader and for the documentation."""

RENAMED = {
    "missing": "it used to be put in before the model was asked; now the model gets the missing "
    "value itself. Write 'missing_counts_as' for what costs see, and leave filling in to the model",
}
"""Keys that meant something else once, and what to write today."""


def checked_table(content: Any, keys: Mapping[str, Key], *path: str) -> dict[str, Any]:
    """A table whose keys are known and of their types, or a refusal naming the key's path.

    >>> checked_table({"floor": 1}, COST_KEYS, "costs")
    {'floor': 1}
    >>> checked_table({"flor": 1}, COST_KEYS, "costs")
    Traceback (most recent call last):
    pear.errors.InvalidProblem: costs.flor is not a key (got 1); did you mean 'floor'?
    """
    if not isinstance(content, dict):
        raise InvalidProblem(f"{toml_path(*path)} must be a table (got {shown(content)})")
    for name, value in content.items():
        where = toml_path(*path, name)
        if name not in keys:
            if name in RENAMED:
                raise InvalidProblem(f"{where} is not a key (got {value!r}); {RENAMED[name]}")
            near = difflib.get_close_matches(name, keys, 1)
            remedy = f"did you mean '{near[0]}'?" if near else f"the keys are {', '.join(keys)}"
            raise InvalidProblem(f"{where} is not a key (got {value!r}); {remedy}")
        if not keys[name].check(value):
            raise InvalidProblem(f"{where} must be {keys[name].words} (got {shown(value)})")
    for name, key in keys.items():
        if key.required and name not in content:
            raise InvalidProblem(
                f"{toml_path(*path, name)} is missing (got {', '.join(content) or 'nothing'}); "
                f"it must be {key.words}"
            )
    return content


MOST_VALUES = 10_000
"""An action with more arguments than this is refused: no search could look at them all."""

GRID_KEYS = ("from", "to", "step", "count")


def expand_grid(grid: Any) -> tuple[Any, ...]:
    """The values of a grid, in order; both ends of a range are included.

    Steps are added in decimal, so that a step of 0.1 gives 0.3 and not 0.30000000000000004.

    >>> expand_grid({"from": 100, "to": 500, "step": 200})
    (100, 300, 500)
    >>> expand_grid({"from": 0, "to": 1, "count": 5})
    (0.0, 0.25, 0.5, 0.75, 1.0)
    >>> expand_grid(["yes", "no"])
    ('yes', 'no')
    """
    if isinstance(grid, (list, tuple)):
        return tuple(grid)
    if not isinstance(grid, Mapping):
        raise InvalidProblem(
            f"must be a list, {{from, to, step}} or {{from, to, count}} (got {shown(grid)})"
        )
    unknown = [key for key in grid if key not in GRID_KEYS]
    if unknown:
        raise InvalidProblem(
            f"has the unknown key '{unknown[0]}' (got {grid[unknown[0]]!r}); "
            "a range has from, to and step, or from, to and count"
        )
    if "from" not in grid or "to" not in grid or ("step" in grid) == ("count" in grid):
        raise InvalidProblem(
            f"must have from, to and one of step and count (got {', '.join(map(str, grid))})"
        )
    for key, number in grid.items():
        if not is_finite(number):
            raise InvalidProblem(f"needs a number for '{key}' (got {shown(number)})")
    if "count" in grid:
        return _evenly(float(grid["from"]), float(grid["to"]), grid["count"])
    return _stepped(plain(grid["from"]), plain(grid["to"]), plain(grid["step"]))


def _stepped(first: Any, last: Any, step: Any) -> tuple[Any, ...]:
    if step == 0 or (last - first) * step < 0:
        raise InvalidProblem(
            f"needs a 'step' that leads from {first} to {last} (got {step}); "
            "change its sign or swap the ends"
        )
    start, stride = Decimal(repr(first)), Decimal(repr(step))
    n = int((Decimal(repr(last)) - start) / stride) + 1
    if n > MOST_VALUES:
        raise InvalidProblem(
            f"has {n:,} values, more than {MOST_VALUES:,}; use a larger 'step' (got {step})"
        )
    number = int if is_whole(first) and is_whole(step) else float
    return tuple(number(start + i * stride) for i in range(n))


def _evenly(first: float, last: float, count: Any) -> tuple[float, ...]:
    if not is_whole(count) or not 2 <= count <= MOST_VALUES:
        raise InvalidProblem(
            f"needs a whole 'count' from 2 to {MOST_VALUES:,} (got {count!r}); "
            "write a single value as a list"
        )
    if first == last:
        raise InvalidProblem(f"needs two different ends (got {first} twice)")
    return tuple(np.linspace(first, last, count).tolist())


def shorten_grid(values: Sequence[Any]) -> Any:
    """The shortest way to write values that :func:`expand_grid` reads back exactly.

    >>> shorten_grid((100, 200, 300, 400))
    {'from': 100, 'to': 400, 'step': 100}
    >>> shorten_grid((1, 5, 7, 100))
    [1, 5, 7, 100]
    """
    plain_list = [plain(value) for value in values]
    if len(plain_list) < 4 or not all(is_finite(value) for value in plain_list):
        return plain_list
    first, second, last = plain_list[0], plain_list[1], plain_list[-1]
    step = Decimal(repr(second)) - Decimal(repr(first))
    whole = is_whole(first) and is_whole(second)
    written = int(step) if whole else float(step)
    for grid in (
        {"from": first, "to": last, "step": written},
        {"from": first, "to": last, "count": len(plain_list)},
    ):
        try:
            read = expand_grid(grid)
        except InvalidProblem:
            continue
        if [(type(v), v) for v in read] == [(type(v), v) for v in plain_list]:
            return grid
    return plain_list

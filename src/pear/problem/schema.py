"""Which keys does ``problem.toml`` have, and how are its values written?

The tables below are the only list of keys: the reader checks against them, and a test holds
``docs/problem-file.md`` to them. Values are checked by the class that holds them.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from pear.errors import InvalidProblem
from pear.problem.values import is_finite, is_whole, kind_of, plain, shown


@dataclass(frozen=True)
class Key:
    """A key: whether it holds a value, a table or a list of tables, and what it must be where it is
    required.

    Values are checked by the class that holds them.
    """

    shape: Literal["value", "table", "tables"] = "value"
    required: str = ""


VALUE, TABLE, TABLES = Key(), Key("table"), Key("tables")


def _values(*names: str) -> dict[str, Key]:
    return dict.fromkeys(names, VALUE)


PROBLEM_KEYS = {
    **_values("format", "name", "max_length"),
    "goal": TABLE,
    "features": Key("table", required="a table"),
    "actions": Key("table", required="a table"),
    "costs": TABLE,
    "weights": TABLE,
    "archetypes": TABLES,
    "model": TABLE,
    "prior": TABLE,
    "asked": TABLE,
    "words": TABLE,
}
ASKED_KEYS = {"amount": Key(required="the name of a feature"), **_values("months", "rate")}
GOAL_KEYS = _values("favourable", "threshold", "margin", "just_enough", "target")
FEATURE_KEYS = {
    "kind": Key(required="numeric, integer, categorical or boolean"),
    **_values("label", "unit", "lower", "upper", "scale", "categories", "ordered", "levels"),
    **_values("immutable", "protected", "missing_counts_as", "used"),
}
ACTION_KEYS = {
    "feature": Key(required="the name of a feature"),
    "mode": Key(required="set or add"),
    "arguments": Key(required="a list, or a range of from, to and step or count"),
    **_values("direction", "from_missing", "lower", "upper"),
    "requires": TABLES,
    **_values("phrase", "reviewed", "weeks", "once", "monthly", "priority", "tolerance"),
}
REQUIREMENT_KEYS = {
    "feature": Key(required="the name of a feature"),
    **_values("values", "lower", "upper"),
}
COST_KEYS = _values("floor", "offset", "zero_change", "edges")
WEIGHT_KEYS = {"default": VALUE, "ranges": TABLE}
ARCHETYPE_KEYS = {
    "name": Key(required="a text"),
    "share": VALUE,
    "mean": Key("table", required="a table of numbers"),
    "spread": Key(required="a number or a table of numbers"),
}
MODEL_KEYS = {**_values("path", "url", "output", "classes"), "inputs": TABLE}
INPUT_KEYS = {
    **_values("feature", "encoding", "categories", "codes"),
    **_values("subtract", "divide", "clip", "missing"),
}
PRIOR_KEYS = {"path": Key(required="a file")}
WORD_KEYS = dict.fromkeys(("labels", "units", "phrases", "categories"), TABLE)

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
"""Keys that used to mean something else, and what to write today."""


def checked_table(content: Any, keys: Mapping[str, Key], *path: str) -> dict[str, Any]:
    """A table with known keys of the right shape, or a refusal that names the path of the key.

    >>> checked_table({"floor": 1}, COST_KEYS, "costs")
    {'floor': 1}
    >>> checked_table({"flor": 1}, COST_KEYS, "costs")
    Traceback (most recent call last):
    pear.errors.InvalidProblem: costs.flor is not a key (got 1); did you mean 'floor'?
    """
    _check_shape(content, "table", *path)
    for name, value in content.items():
        if name not in keys:
            near = difflib.get_close_matches(name, keys, 1)
            remedy = f"did you mean '{near[0]}'?" if near else f"the keys are {', '.join(keys)}"
            raise InvalidProblem(
                f"{toml_path(*path, name)} is not a key (got {value!r}); "
                f"{RENAMED.get(name, remedy)}"
            )
        _check_shape(value, keys[name].shape, *path, name)
    for name, key in keys.items():
        if key.required and name not in content:
            raise InvalidProblem(
                f"{toml_path(*path, name)} is missing (got {', '.join(content) or 'nothing'}); "
                f"it must be {key.required}"
            )
    return dict(content)


def _check_shape(content: Any, shape: str, *path: str) -> None:
    if shape == "table" and not isinstance(content, dict):
        raise InvalidProblem(f"{toml_path(*path)} must be a table (got {shown(content)})")
    if shape == "tables" and not isinstance(content, list):
        raise InvalidProblem(f"{toml_path(*path)} must be a list of tables (got {shown(content)})")


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
            f"must be a list, or a range of from, to and step or count (got {shown(grid)})"
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


# How plain data is written as TOML, with comments a person can read

WIDTH = 96


def toml_value(value: Any) -> str:
    """One value on one line; numbers are written so that they are read back exactly.

    >>> print(toml_value([1, 2.5, "say \\"hi\\"", True]))
    [1, 2.5, "say \\"hi\\"", true]
    >>> print(toml_value({"from": 1, "a->b": 2}))
    { from = 1, "a->b" = 2 }
    """
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are TOML's; only DEL is forbidden in one and not in the other.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        content = ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items())
        return "{ " + content + " }"
    raise TypeError(f"{kind_of(value)} cannot be written as TOML")


def toml_key(key: str) -> str:
    """A key, in quotes where TOML needs them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def toml_path(*keys: str) -> str:
    """The path of a key as TOML writes it: ``features."a b".lower``.

    >>> print(toml_path("features", "a b", "lower"))
    features."a b".lower
    """
    return ".".join(toml_key(key) for key in keys)


def toml_line(key: str, value: Any) -> str:
    """``key = value``; a long list is broken over several lines."""
    line = f"{toml_key(key)} = {toml_value(value)}"
    if len(line) <= WIDTH or not isinstance(value, (list, tuple)):
        return line
    lines, current = [f"{toml_key(key)} = ["], "   "
    for item in value:
        text = f" {toml_value(item)},"
        if len(current) + len(text) > WIDTH and current.strip():
            lines.append(current)
            current = "   "
        current += text
    return "\n".join([*lines, current, "]"])


def toml_table(header: str, content: Mapping[str, Any], comment: str = "") -> str:
    """A table with its header, and a comment above it."""
    lines = [f"# {line}" for line in comment.splitlines()]
    return "\n".join([*lines, header, *(toml_line(key, value) for key, value in content.items())])

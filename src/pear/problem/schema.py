"""Which keys may stand in ``problem.toml``, and of which type is each?

The tables below are the only list of keys: the reader checks against them, and a test
holds ``docs/problem-file.md`` to them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pear.errors import InvalidProblem
from pear.problem.checks import is_number, is_whole, shown
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
}
GOAL_KEYS = {"favourable": VALUES, "threshold": NUMBER, "margin": NUMBER}
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
    "missing": VALUE,
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
    "lower": NUMBER,
    "upper": NUMBER,
    "requires": Key("a list of tables", _list_of(_is_table)),
    "phrase": TEXT,
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
MODEL_KEYS = {"path": TEXT, "url": TEXT}
PRIOR_KEYS = {"path": Key("a text", _is_text, required=True)}

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
    "prior": PRIOR_KEYS,
}
"""Every key by the table it stands in, for the reader and for the documentation."""


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

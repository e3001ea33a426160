"""How is plain data written as TOML, with comments a person can read?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pear.problem.checks import plain

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
    raise TypeError(f"a {type(value).__name__} cannot be written as TOML")


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

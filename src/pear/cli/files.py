"""Files several commands read, with clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pear.errors import InvalidRecord

Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help=".onnx or .skops file, http(s) address, or a folder of files; else the problem's own. "
        "Several times: they say yes together.",
    ),
]
Agree = Annotated[
    float, typer.Option(help="Share of several models that must say yes; 1 asks all of them to.")
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        help="Type inside a .skops file that you trust; its refusal names them. Repeatable.",
    ),
]


def read_record(path: Path) -> dict[str, Any]:
    """A person's record from a JSON file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidRecord(f"'{path}' cannot be read: {error.strerror or error}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidRecord(f"'{path}' is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidRecord(f"'{path}' must hold one JSON object (got a {type(data).__name__})")
    return data

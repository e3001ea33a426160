"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

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

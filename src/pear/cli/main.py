"""Which commands are there, and how do their errors reach the person at the terminal?"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from pear.errors import PearError

COMMANDS = (
    "demo",
    "init",
    "check",
    "ask",
    "plan",
    "show",
    "verify",
    "robust",
    "serve",
    "train",
    "audit",
    "fit-prior",
    "bench",
)
"""Every command, in the order of the help text: ``pear NAME`` is ``command`` in ``NAME.py``,
with underscores for hyphens."""

app = typer.Typer(
    name="pear",
    help="Plans that lead to a favourable decision, at the least cost to the person concerned.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"pear {version('pear-recourse')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


for _name in COMMANDS:
    _module = importlib.import_module(f"pear.cli.{_name.replace('-', '_')}")
    app.command(_name)(_module.command)


def main() -> None:
    """Run the command line; errors of ours are one line, never a traceback."""
    try:
        app()
    except PearError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)

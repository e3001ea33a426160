"""Which commands are there, and how are errors and progress shown at the terminal?"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.metadata import version
from typing import Annotated, Any

import typer

from pear.errors import ModelWarning, PearError

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
    "study",
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


def _one_line(message: Warning | str, category: type[Warning], *more: Any, **further: Any) -> None:
    """A doubt about a model as a line; warnings of other packages are for their authors."""
    if issubclass(category, ModelWarning):
        print(f"warning: {message}", file=sys.stderr)


def main() -> None:
    """Run the command line; errors of ours are one line, never a traceback."""
    warnings.showwarning = _one_line
    warnings.simplefilter("always", ModelWarning)
    try:
        app()
    except PearError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


# For commands that take long


class Bar:
    """A progress bar with the time left, on the error stream of a terminal, while it is entered.

    ``total`` is how many there are in all, None until that is known; ``done`` how many an earlier
    run has done.
    """

    def __init__(self, what: str, total: int | None = None, done: int = 0) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as TimeLeft

        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn(what),
            BarColumn(),
            MofNCompleteColumn(),
            TimeLeft(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
            # Some steps take minutes; the time left can be estimated after two of them.
            speed_estimate_period=24 * 3600,
        )
        self._task = self._bar.add_task(what, total=total, completed=done, note="")

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def show(self, done: int, total: int | None = None, note: str = "") -> None:
        """Show how many of how many are done; ``note`` is shown behind the bar."""
        self._bar.update(self._task, completed=done, total=total, note=note)

    def __exit__(self, *problem: Any) -> None:
        self._bar.stop()

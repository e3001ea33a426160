"""How far is a long command? A bar with the time left, on a terminal; nothing elsewhere."""

from __future__ import annotations

from typing import Any


class Bar:
    """A bar on the error stream, shown while it is entered.

    ``total`` is how many there are in all, None until it is known; ``done`` how many an earlier
    run did.
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
            # Some take minutes each; the time left needs two of them.
            speed_estimate_period=24 * 3600,
        )
        self._task = self._bar.add_task(what, total=total, completed=done, note="")

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def show(self, done: int, total: int | None = None, note: str = "") -> None:
        """So many are done, of so many; ``note`` stands behind the bar."""
        self._bar.update(self._task, completed=done, total=total, note=note)

    def __exit__(self, *problem: Any) -> None:
        self._bar.stop()

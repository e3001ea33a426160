"""Where may a run write, so that nothing of anybody else is lost?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pear.errors import InvalidSetting

OURS = re.compile(r"\.?(part|bad)-\d{7,}\.parquet(\.tmp)?|journal\.(jsonl|tmp)|lock")
"""Names of the files a run keeps in a folder of its own."""


def check_free(output: Path, given: tuple[Path, ...], restart: bool) -> None:
    """Refuse an output that is there already, or that would replace something that is not ours.

    ``given`` are the tables that are read; neither may lie in the other.
    """
    if output.name in ("", ".."):
        raise InvalidSetting(f"the output '{output}' must have a name of its own")
    place = output.resolve()
    for table in given:
        own = table.resolve()
        if place == own or own in place.parents or place in own.parents:
            raise InvalidSetting(
                f"the output '{output}' and the table '{table}' must not be the same place, nor "
                "one inside the other; give another output"
            )
    if not output.exists():
        return
    if not restart:
        raise InvalidSetting(f"'{output}' exists already; use --restart to replace it")
    if output.is_dir():
        if output.suffix:
            raise InvalidSetting(f"'{output}' is a folder; give another name for the file")
        check_ours(output)


def check_ours(folder: Path) -> None:
    """Refuse a folder that holds anything a run did not put there: it will be removed."""
    with writing(folder):
        others = sorted(
            entry.name
            for entry in (folder.iterdir() if folder.is_dir() else ())
            if not OURS.fullmatch(entry.name) or entry.is_dir()
        )
    if others:
        raise InvalidSetting(
            f"the folder '{folder}' holds '{others[0]}', which no run of 'pear plan' wrote; "
            "give another output, or move it away"
        )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A disk that is full, or a folder that may not be written to, as one clear error."""
    try:
        yield
    except OSError as error:
        raise InvalidSetting(
            f"'{path}' cannot be written ({error.strerror or error}); what is done is kept: make "
            "room or give rights, and start the same command again"
        ) from error

"""How is a file written so that it is whole or not there at all?"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pear.errors import InvalidSetting


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside ``path`` to write to; on leaving it takes the place of ``path``.

    A reader sees the old content or the new, never half. If anything fails, ``path`` stays as
    it was and nothing is left beside it. A link is followed, not replaced.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "plan.json"
    >>> with replacing(target) as part:
    ...     _ = part.write_text("{}")
    >>> target.read_text()
    '{}'
    """
    file = Path(os.path.realpath(path))
    part = file.with_name(f".{secrets.token_hex(4)}-{file.name}")
    try:
        yield part
        with part.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Refuse files that could not be written, before the work whose results they are to hold.

    Raises
    ------
    InvalidSetting
        Where one of them is a folder, or lies where nothing can be written.
    """
    for path in paths:
        if path is None:
            continue
        file = Path(os.path.realpath(path))
        try:
            if file.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            with tempfile.TemporaryFile(dir=file.parent):
                pass
        except OSError as error:
            raise _not_written(path, error) from None


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Put a text in a file in one go.

    Raises
    ------
    InvalidSetting
        If the file cannot be written.
    """
    try:
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise _not_written(path, error) from None


def _not_written(path: str | os.PathLike[str], error: OSError) -> InvalidSetting:
    return InvalidSetting(f"'{path}' cannot be written ({error.strerror}); give another place")

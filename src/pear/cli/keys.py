"""One key at a time from the terminal, or a line where there is no terminal."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

ESCAPE_SECONDS = 0.05
"""The rest of an arrow's or function key's sequence comes at once; a lone Escape stays alone."""


def read_key(choices: str, other: Callable[[str], None] = lambda key: None) -> str:
    """The next key pressed out of ``choices``; ``other`` is told of any other letter or sign.

    Raises KeyboardInterrupt on Ctrl-C and EOFError when the input ends.
    """
    if not sys.stdin.isatty():
        return _from_lines(choices, other)
    try:
        import termios  # noqa: F401
    except ImportError:
        return _from_prompt(choices, other)
    stream = sys.stdin.fileno()
    with single_keys():
        while True:
            key = _pressed(stream)
            if key in choices:
                return key
            if key.isprintable() and key != " ":
                other(key)


@contextmanager
def single_keys() -> Iterator[None]:
    """The terminal hands over keys as they are pressed, and as before afterwards.

    Held for a whole conversation, a key pressed while a question is computed is not echoed
    into it, and Ctrl-D ends the conversation whenever it comes.
    """
    try:
        import termios
        import tty
    except ImportError:
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    stream = sys.stdin.fileno()
    before = termios.tcgetattr(stream)
    try:
        tty.setcbreak(stream, termios.TCSANOW)
        yield
    finally:
        # The terminal may be gone by now.
        with suppress(termios.error):
            termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _pressed(stream: int) -> str:
    """The next key in lower case; empty for a key that is not a single character."""
    byte = _byte(stream)
    if byte in (b"", b"\x04", b"\x00"):
        # A Ctrl-D pressed before the terminal handed over single keys arrives as a zero.
        raise EOFError
    if byte == b"\x03":
        raise KeyboardInterrupt
    if byte == b"\x1b":
        _skip_sequence(stream)
        return " "
    return byte.decode("ascii", "replace").lower()


def _skip_sequence(stream: int) -> None:
    """Reads the rest of an escape sequence: ``[`` or ``O``, numbers, and one last letter."""
    if not _waiting(stream) or _byte(stream) not in (b"[", b"O"):
        return
    while _waiting(stream):
        byte = _byte(stream)
        if not byte or 0x40 <= byte[0] <= 0x7E:
            return


def _waiting(stream: int) -> bool:
    return bool(select.select([stream], [], [], ESCAPE_SECONDS)[0])


def _byte(stream: int) -> bytes:
    try:
        return os.read(stream, 1)
    except OSError:
        return b""


def _from_lines(choices: str, other: Callable[[str], None]) -> str:
    for line in iter(sys.stdin.readline, ""):
        key: str = line.strip().lower()[:1]
        if key and key in choices:
            return key
        if key:
            other(key)
    raise EOFError


def _from_prompt(choices: str, other: Callable[[str], None]) -> str:
    while True:
        key = input("> ").strip().lower()[:1]
        if key and key in choices:
            return key
        other(key)

"""One key at a time from the terminal, or a line where there is no terminal."""

from __future__ import annotations

import sys


def read_key(choices: str) -> str:
    """The next key pressed out of ``choices``; other keys are ignored.

    Raises KeyboardInterrupt on Ctrl-C and EOFError when the input ends.
    """
    if not sys.stdin.isatty():
        while True:
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            if line.strip().lower()[:1] in choices and line.strip():
                return line.strip().lower()[0]
    try:
        import termios
        import tty
    except ImportError:
        return _from_line(choices)
    stream = sys.stdin.fileno()
    before = termios.tcgetattr(stream)
    try:
        tty.setcbreak(stream, termios.TCSANOW)
        while True:
            key = sys.stdin.read(1).lower()
            if not key or key == "\x04":
                raise EOFError
            if key == "\x03":
                raise KeyboardInterrupt
            if key in choices:
                return key
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _from_line(choices: str) -> str:
    while True:
        line = input("> ").strip().lower()
        if line and line[0] in choices:
            return line[0]

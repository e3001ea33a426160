"""A command in a real pseudo-terminal: what it prints, and keys pressed into it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07")


class Terminal:
    """``pear`` with arguments, seen by it as an interactive terminal.

    ``screen`` holds what a person sees: a space at which no line ends looks like any other.
    """

    def __init__(self, *arguments: str, cwd: str | None = None, width: int = 100) -> None:
        self.screen = ""
        self._printed = b""
        self._waited_for = 0
        control, inside = pty.openpty()
        self._control = control
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pear", *arguments],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=cwd,
            env={**os.environ, "COLUMNS": str(width), "LINES": "60", "TERM": "xterm"},
            start_new_session=True,
            # A test run in the background ignores Ctrl-C, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(inside)

    def wait_for(self, *texts: str, seconds: float = 90.0) -> str:
        """Read until one of the texts stands on the screen after the last one waited for."""
        begin = self._waited_for
        limit = time.monotonic() + seconds
        while not (ends := [at + len(t) for t in texts if (at := self.screen.find(t, begin)) >= 0]):
            if not self._read(limit):
                raise AssertionError(f"{texts!r} never came; the screen was:\n{self.screen}")
        self._waited_for = min(ends)
        return self.screen[begin:]

    def press(self, keys: str) -> None:
        os.write(self._control, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, seconds: float = 60.0) -> int:
        """Read what is left and return the exit status."""
        limit = time.monotonic() + seconds
        while self._read(limit):
            pass
        code = self.process.wait(seconds)
        os.close(self._control)
        return code

    def _read(self, limit: float) -> bool:
        left = limit - time.monotonic()
        if left <= 0 or not select.select([self._control], [], [], left)[0]:
            return False
        try:
            data = os.read(self._control, 65536)
        except OSError:
            return False
        # What is read may end within a code or a letter.
        self._printed += data
        shown = CODES.sub("", self._printed.decode(errors="ignore")).replace("\r", "")
        self.screen = shown.replace("\N{NO-BREAK SPACE}", " ")
        return bool(data)

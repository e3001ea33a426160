"""Which files does a call pass through, and does the architecture page tell the same walk?

A walk of ``docs/architecture.md`` is a heading, for example ``### The walk of `ask` ``, and below
it a numbered list whose items begin with a file of ``src/pear``::

    1. `elicitation/session.py` takes in what is said …

Use it so::

    entered = files_entered(lambda: session.ask())
    hold_to_the_page("ask", entered, most=16)
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pear
from pear.decision import BlackBox

SOURCE = Path(pear.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "architecture.md"

CLOSED = (BlackBox.score, BlackBox.score_record)
"""What stands behind these is the lender's model, which no walk looks into."""


class Walk:
    """Notes which files of ``src/pear`` are entered while it watches, in every thread that starts
    after it was entered itself.

    A function of ``closed`` is entered, what it calls is not. What runs while a module is imported
    is not noted.
    """

    def __init__(self, closed: Collection[Callable[..., Any]] = CLOSED) -> None:
        self.watches = False
        self._doors = {function.__code__ for function in closed}
        self._names: dict[CodeType, str | None] = {}
        self._entered: dict[str, None] = {}
        self._own = threading.local()

    @property
    def entered(self) -> tuple[str, ...]:
        """The files, in the order they were first entered."""
        return tuple(self._entered)

    def __enter__(self) -> Walk:
        self._before = sys.getprofile()
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        behind = getattr(self._own, "behind", 0)
        if event == "call":
            if self.watches and not behind:
                if code not in self._names:
                    self._names[code] = self._name_of(code)
                name = self._names[code]
                if name is not None:
                    self._entered.setdefault(name)
            self._own.behind = behind + (code in self._doors)
        elif event == "return":
            self._own.behind = behind - (code in self._doors)

    @staticmethod
    def _name_of(code: CodeType) -> str | None:
        path = Path(code.co_filename)
        inside = path.is_relative_to(SOURCE) and path.suffix == ".py" and code.co_name != "<module>"
        return path.relative_to(SOURCE).as_posix() if inside else None


def files_entered(
    call: Callable[[], Any], closed: Collection[Callable[..., Any]] = CLOSED
) -> tuple[str, ...]:
    """Files of ``src/pear`` whose functions a call enters, in the order it enters them: see
    :class:`Walk`. Call once before, so that nothing is imported on the way."""
    with Walk(closed) as walk:
        walk.watches = True
        call()
    return walk.entered


def walk_told(name: str) -> tuple[str, ...]:
    """The files of the walk with this name on the architecture page, in its order."""
    page = PAGE.read_text(encoding="utf-8")
    heading = f"### The walk of `{name}`\n"
    assert heading in page, f"{PAGE.name} has no heading {heading.strip()!r}"
    section = re.split(r"\n#+ ", page.split(heading, 1)[1])[0]
    return tuple(re.findall(r"^\d+\. `([a-z_/]+\.py)`", section, re.MULTILINE))


def hold_to_the_page(
    name: str, entered: Collection[str], most: int, besides: Collection[str] = ()
) -> None:
    """The page tells exactly the files entered, in at most so many; ``besides`` it tells elsewhere.

    A file entered that the page leaves out, and one it names that is not entered, are both wrong.
    """
    told, met = walk_told(name), set(entered) - set(besides)
    assert set(told) == met, f"told, not met: {set(told) - met}; met, not told: {met - set(told)}"
    assert len(told) == len(set(told)) <= most, f"{len(told)} files, at most {most} may be told"

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
from collections.abc import Callable, Collection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pear
from pear.decision import BlackBox

SOURCE = Path(pear.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "architecture.md"

CLOSED = (BlackBox.score, BlackBox.plainly)
"""What stands behind these is the lender's model, which no walk looks into."""


def files_entered(
    call: Callable[[], Any], closed: Collection[Callable[..., Any]] = CLOSED
) -> tuple[str, ...]:
    """Files of ``src/pear`` whose functions a call enters, in the order it enters them.

    A function of ``closed`` is entered, what it calls is not. What happens in threads that the
    call starts is not seen, nor what runs while a module is imported: call once before.
    """
    doors = {function.__code__ for function in closed}
    names: dict[CodeType, str | None] = {}
    entered: dict[str, None] = {}
    behind = 0

    def name_of(code: CodeType) -> str | None:
        path = Path(code.co_filename)
        inside = path.is_relative_to(SOURCE) and code.co_name != "<module>"
        return path.relative_to(SOURCE).as_posix() if inside else None

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal behind
        code = frame.f_code
        if event == "call":
            if not behind:
                if code not in names:
                    names[code] = name_of(code)
                name = names[code]
                if name is not None:
                    entered.setdefault(name)
            behind += code in doors
        elif event == "return":
            behind -= code in doors

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return tuple(entered)


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
    told = walk_told(name)
    assert set(told) == set(entered) - set(besides)
    assert len(told) == len(set(told)) <= most

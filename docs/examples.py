"""How do the examples of docstrings become code on the page, where no heading stands above them?"""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Puts the heading over examples that numpy's style of docstrings wants to see.

    Without it they are taken for text, and brackets in them for links.
    """

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object that is read."""
        if obj.docstring is not None:
            obj.docstring.value = with_heading(obj.docstring.value)


def with_heading(text: str) -> str:
    """A docstring with a heading over its examples."""
    if ">>>" not in text or re.search(r"^Examples\n-+$", text, re.MULTILINE):
        return text
    return re.sub(r"^(?=>>>)", "Examples\n--------\n", text, count=1, flags=re.MULTILINE)

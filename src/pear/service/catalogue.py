"""Which words does the page say? Those of a conversation, and its own."""

from __future__ import annotations

from pear.elicitation import words
from pear.elicitation.words import Catalogue

__all__ = ["Catalogue", "catalogue", "languages"]


def catalogue(language: str) -> Catalogue:
    """The texts of a language; an unknown one is refused with those there are."""
    return words.catalogue(language, "pear.service")


def languages() -> tuple[str, ...]:
    """The languages the service speaks."""
    return words.languages("pear.service")

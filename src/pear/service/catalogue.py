"""Which words does the page say? All of them stand in one file per language."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from pear.errors import InvalidSetting


@dataclass(frozen=True)
class Catalogue:
    """The texts of one language, by dotted name; a text may hold {placeholders}.

    >>> english = catalogue("en")
    >>> english("question.number", number=2)
    'Question 2'
    """

    language: str
    texts: Mapping[str, str]

    def __call__(self, name: str, /, **values: Any) -> str:
        """The text of a name, with its placeholders filled."""
        try:
            text = self.texts[name]
        except KeyError:
            raise InvalidSetting(
                f"the catalogue '{self.language}' has no text {name!r}; add it to "
                f"texts/{self.language}.toml"
            ) from None
        return text.format(**values) if values else text

    def count(self, name: str, number: int, **values: Any) -> str:
        """The text ``name.one`` or ``name.many``, with {number} filled."""
        return self(f"{name}.{'one' if number == 1 else 'many'}", number=number, **values)

    def __contains__(self, name: str) -> bool:
        return name in self.texts


@lru_cache(maxsize=8)
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language; an unknown one is refused with those there are."""
    if language not in languages():
        raise InvalidSetting(
            f"there is no catalogue for the language {language!r}; "
            f"there are: {', '.join(languages())}"
        )
    content = (resources.files(__package__) / "texts" / f"{language}.toml").read_text("utf-8")
    return Catalogue(language, dict(_flat(tomllib.loads(content), "")))


@lru_cache(maxsize=1)
def languages() -> tuple[str, ...]:
    """The languages the service speaks."""
    folder = resources.files(__package__) / "texts"
    return tuple(
        sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))
    )


def _flat(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", " ".join(str(value).split())

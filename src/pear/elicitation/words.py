"""Which words are put to what a person sees? One file of texts for each language.

Nothing here claims more than: by what you told us, among the steps considered, for this
version of the model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pear.elicitation.limits import Limit
from pear.elicitation.shown import Difference
from pear.errors import InvalidSetting
from pear.planning.reasons import StepReason
from pear.problem import Problem, Step
from pear.problem.features import Value

LETTERS = "ABCDEFGH"
"""What the plans of a question are called."""


@dataclass(frozen=True)
class Catalogue:
    """The texts of one language, by dotted name; a text may hold {placeholders}.

    >>> catalogue("en")("reason.opens", step=2)
    'Without this step you could not do step 2.'
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


@cache
def catalogue(language: str, *packages: str) -> Catalogue:
    """The texts of a language: those of a conversation, and those of further packages.

    An unknown language is refused with those there are.
    """
    if language not in languages(*packages):
        raise InvalidSetting(
            f"there is no catalogue for the language {language!r}; "
            f"there are: {', '.join(languages(*packages))}"
        )
    texts: dict[str, str] = {}
    for package in ("pear.elicitation", *packages):
        file = resources.files(package) / "texts" / f"{language}.toml"
        texts.update(_flat(tomllib.loads(file.read_text("utf-8")), ""))
    return Catalogue(language, texts)


def languages(*packages: str) -> tuple[str, ...]:
    """The languages that have texts in all of these packages."""
    found = [
        {file.name.removesuffix(".toml") for file in (resources.files(package) / "texts").iterdir()}
        for package in ("pear.elicitation", *packages)
    ]
    return tuple(sorted(set.intersection(*found)))


def _flat(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", " ".join(str(value).split())


class Words:
    """Puts what a person sees about one problem into the words of one language."""

    def __init__(self, problem: Problem, texts: Catalogue | None = None) -> None:
        self.problem, self.texts = problem, texts or catalogue("en")

    def limit(self, limit: Limit) -> str:
        """A limit in words: "Leave savings as it is"."""
        return self._about("limit", limit)

    def refusal(self, limit: Limit) -> str:
        """What a person says who sets this limit: "I can't change savings at all"."""
        return self._about("refusal", limit)

    def _about(self, section: str, limit: Limit) -> str:
        if limit.kind == "action":
            return self.texts(f"{section}.action", action=str(limit.action).replace("_", " "))
        feature = self.problem.space[str(limit.feature)]
        if limit.kind == "feature":
            return self.texts(f"{section}.feature", feature=feature.words)
        value = feature.show(feature.code(limit.value))
        kind = f"{limit.kind}_{limit.direction}" if limit.kind == "beyond" else limit.kind
        return self.texts(f"{section}.{kind}", feature=feature.words, value=value)

    def difference(self, difference: Difference) -> str:
        """What sets a plan apart from the others of its question."""
        parts = [self._other_values(*value) for value in difference.values]
        if difference.only:
            parts.append(self.texts("difference.only", features=self.features(difference.only)))
        if difference.spared:
            many = "spared" if len(difference.spared) == 1 else "spared_many"
            parts.append(
                self.texts(f"difference.{many}", features=self.features(difference.spared))
            )
        if not parts:
            parts.append(self.texts(f"difference.{'order' if difference.order else 'part'}"))
        return " ".join(parts)

    def features(self, names: Sequence[str]) -> str:
        """Features in words: "savings, income and job"."""
        *head, last = [self.problem.space[name].words for name in names]
        return f"{', '.join(head)} {self.texts('difference.and')} {last}" if head else last

    def _other_values(self, name: str, value: Value, others: Sequence[tuple[int, Value]]) -> str:
        feature = self.problem.space[name]
        elsewhere = [
            self.texts(
                "difference.other", value=feature.show(feature.code(other)), letter=LETTERS[place]
            )
            for place, other in others
        ]
        return self.texts(
            "difference.value",
            feature=capital(feature.words),
            value=feature.show(feature.code(value)),
            others=", ".join(elsewhere),
        )

    def reason(self, step: Step, reason: StepReason) -> str:
        """Why a step is in the plan, from what was measured."""
        parts = [capital(reason.because)] if reason.because else []
        without, cheaper = reason.without, reason.cheaper
        if without.blocks is not None:
            parts.append(self.texts("reason.opens", step=without.blocks + 1))
        elif without.score is not None and not without.succeeds:
            parts.append(self.texts("reason.without", points=points(without.score, reason.bar)))
        if cheaper is not None and cheaper.succeeds:
            parts.append(self.texts("reason.enough", choice=cheaper.shown))
        elif cheaper is not None and cheaper.score is not None:
            left_at = points(cheaper.score, reason.bar)
            parts.append(self.texts("reason.cheaper", choice=cheaper.shown, points=left_at))
        gain = points(step.score_after, reason.bar) - points(step.score_before, reason.bar)
        if gain > 0:
            parts.append(self.texts.count("reason.gain", gain))
        if reason.eases is not None:
            parts.append(self.texts("reason.eases", step=reason.eases + 1))
        return " ".join(parts)

    def confidence(self, probability: float, *, more: bool = False) -> str:
        """How sure we are, in words and a rounded share."""
        level = "high" if probability >= 0.9 else "fair" if probability >= 0.6 else "low"
        words = self.texts(f"confidence.{level}", tenths=min(9, round(10 * probability)))
        return f"{words} {self.texts('confidence.more')}" if more else words

    def certificate(self, verdict: str) -> str:
        """What is proven about a plan."""
        return self.texts(f"certificate.{verdict}")


def points(score: float, required: float | None = None) -> int:
    """A score as whole points of 100; one that passes is never shown as the points required.

    >>> points(0.499, 0.5), points(0.501, 0.5), points(0.518, 0.5)
    (49, 51, 51)
    """
    whole = int(100 * score + 1e-9)
    unseen = required is not None and score > required and whole <= int(100 * required + 1e-9)
    return whole + 1 if unseen else whole


def capital(words: str) -> str:
    """The words with an upper-case first letter."""
    return words[:1].upper() + words[1:]

"""How are values and steps said to a person, in their language?

English is what features and actions themselves say; a problem may carry the same words in other
languages (:class:`Words`). Numbers and money are written as each language writes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Any, TypeVar

from pear.problem.values import refusal_at, shown

if TYPE_CHECKING:
    from pear.problem.actions import Action
    from pear.problem.features import Feature, Value

T = TypeVar("T")

SEPARATORS = {"en": (",", ".")}
"""Signs between thousands and before decimals; other languages write 1.250,75."""

MONEY = ("€", "$", "£", "¥")
PERCENT_CLOSE = ("en", "it")
"""Languages that put no space before the sign for per cent."""

NO_AND_YES = {
    "en": ("no", "yes"),
    "de": ("nein", "ja"),
    "it": ("no", "sì"),
    "es": ("no", "sí"),
}
UNKNOWN = {"en": "not known", "de": "nicht bekannt", "it": "non noto", "es": "no se sabe"}

PHRASES = {
    "en": {
        "up": "Increase your {feature} from {before} to {after}",
        "down": "Reduce your {feature} from {before} to {after}",
        "other": "Change your {feature} from {before} to {after}",
    },
    "de": {
        "up": "{feature} von {before} auf {after} erhöhen",
        "down": "{feature} von {before} auf {after} senken",
        "other": "{feature} ändern: von {before} zu {after}",
    },
    "it": {
        "up": "Aumenti {feature} da {before} a {after}",
        "down": "Riduca {feature} da {before} a {after}",
        "other": "Cambi {feature} da {before} a {after}",
    },
    "es": {
        "up": "Aumente {feature} de {before} a {after}",
        "down": "Reduzca {feature} de {before} a {after}",
        "other": "Cambie {feature} de {before} a {after}",
    },
}
"""The phrase of an action that has none of its own."""

FROM_UNKNOWN = {
    "en": "Change your {feature}, which is not known, to {after}",
    "de": "{feature} ändern (bisher nicht bekannt): {after}",
    "it": "Cambi {feature} (finora non noto): {after}",
    "es": "Cambie {feature} (hasta ahora no se sabe): {after}",
}

PHRASE_FIELDS = ("feature", "before", "after", "argument", "amount")
"""What a phrase may use; ``amount`` is the size of the change."""


@dataclass(frozen=True)
class Words:
    """A problem's words in one language; what is left out is as in the problem itself.

    ``labels`` and ``units`` by feature, ``categories`` by feature and category, ``phrases``
    by action.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    phrases: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables = {key: getattr(self, key) for key in ("labels", "units", "phrases")}
        if isinstance(self.categories, Mapping):
            tables |= {f"categories.{name}": said for name, said in self.categories.items()}
        else:
            tables["categories"] = self.categories
        for key, said in tables.items():
            if not isinstance(said, Mapping):
                raise refusal_at(key, f"'{key}' must be a table of texts (got {shown(said)})")
            for name, text in said.items():
                if not isinstance(text, str):
                    raise refusal_at(key, f"'{key}' of '{name}' must be a text (got {shown(text)})")


def in_language(table: Mapping[str, T], language: str) -> T:
    """The entry of a table for a language, or for English."""
    return table.get(language, table["en"])


def show_number(value: float, language: str = "en") -> str:
    """A number for people: grouped thousands, no digits that mean nothing.

    >>> show_number(2100.0), show_number(0.30000000000000004), show_number(1250.75)
    ('2,100', '0.3', '1,250.75')
    >>> show_number(1250.75, "de")
    '1.250,75'
    >>> show_number(0.00004)
    '4e-05'
    """
    if value == int(value):
        text = f"{int(value):,}"
    elif abs(value) < 0.001:
        text = f"{value:.3g}"
    else:
        text = f"{value:,.4f}".rstrip("0").rstrip(".")
    thousands, decimals = SEPARATORS.get(language, (".", ","))
    return text.replace(",", "\0").replace(".", decimals).replace("\0", thousands)


def show_amount(value: float, unit: str, language: str = "en") -> str:
    """A number with its unit, as the language writes it, never broken between the two.

    >>> show_amount(1900, "€"), show_amount(35, "%"), show_amount(24, "months")
    ('€1,900', '35%', '24\\xa0months')
    >>> show_amount(1900, "€", "de"), show_amount(35, "%", "de")
    ('1.900\\xa0€', '35\\xa0%')
    """
    number = show_number(value, language)
    if unit in MONEY and language == "en":
        return f"-{unit}{number[1:]}" if value < 0 else f"{unit}{number}"
    if unit == "%" and language in PERCENT_CLOSE:
        return f"{number}%"
    return f"{number}\N{NO-BREAK SPACE}{unit}" if unit else number


class Amount(str):
    """A value in words that knows its number, so that a phrase can name what is counted.

    >>> "Pay your {before:overdue bill|overdue bills}".format(before=Amount("1", 1))
    'Pay your 1 overdue bill'
    """

    def __new__(cls, words: str, number: float | None = None) -> Amount:
        amount = super().__new__(cls, words)
        amount.number = number
        return amount

    number: float | None

    def __format__(self, form: str) -> str:
        if not form:
            return str(self)
        one, _, many = form.partition("|")
        return f"{self} {one if self.number == 1 else many}"


def check_phrase(where: str, template: Any) -> None:
    """Refuse a phrase with fields that no step has."""
    remedy = f"use only {', '.join('{' + name + '}' for name in PHRASE_FIELDS)}"
    if not isinstance(template, str):
        raise refusal_at("phrase", f"{where}: 'phrase' must be a text (got {shown(template)})")
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise refusal_at(
            "phrase", f"{where}: 'phrase' {template!r} cannot be read ({error}); {remedy}"
        ) from None
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if name not in PHRASE_FIELDS or conversion:
            raise refusal_at(
                "phrase", f"{where}: 'phrase' has the unknown field {{{name}}}; {remedy}"
            )
        if form and form.count("|") != 1:
            raise refusal_at(
                "phrase",
                f"{where}: 'phrase' has {{{name}:{form}}}; after the colon write what is counted, "
                "for one and for many: {before:bill|bills}",
            )


def phrase(action: Action, feature: Feature, before: float, after: float, argument: Value) -> str:
    """One step in words, from the action's template or a default one."""
    template = action.phrase
    if math.isnan(before) and (not template or "{before" in template or "{amount" in template):
        template = in_language(FROM_UNKNOWN, feature.language)
    elif not template:
        kind = "other" if not feature.is_number else "up" if after > before else "down"
        template = in_language(PHRASES, feature.language)[kind]
    content = {"feature": feature.words, "before": feature.show(before)}
    content["after"] = content["argument"] = content["amount"] = feature.show(after)
    if feature.is_number:
        language, unit = feature.language, feature.unit
        content["after"] = Amount(content["after"], after)
        content["argument"] = show_amount(float(argument), unit, language)
        if not math.isnan(before):
            # The unit is said once, unless it is a sign: "36 instead of 24 months", "€2 from €1".
            bare = unit not in (*MONEY, "%")
            number = show_number(before, language) if bare else content["before"]
            content["before"] = Amount(number, before)
            content["amount"] = show_amount(abs(after - before), unit, language)
    return template.format(**content)

"""Which words are put to what a person sees? One file of texts for each language.

Nothing here claims more than: by what you told us, among the steps considered, for this
version of the model.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

from pear.elicitation.says import DoneStep
from pear.errors import InvalidSetting
from pear.planning.reasons import Alternative, StepReason
from pear.problem import Plan, Problem, Step
from pear.problem.actions import argument_code
from pear.problem.features import Feature, Record, Value
from pear.problem.limits import Limit
from pear.problem.wording import MONEY, phrase, show_amount, show_number

if TYPE_CHECKING:
    from pear.elicitation.shown import Result

NOW = re.compile(r"\s*\([^()]*\{before[^()]*\)")
"""What a phrase says in brackets about the value before the step."""

LETTERS = "ABCDEFGH"
"""What the plans of a question are called."""


@dataclass(frozen=True)
class Catalogue:
    """The texts of one language, by dotted name; a text may hold {placeholders}.

    >>> catalogue("en")("reason.opens", step=2)
    'You need this before step 2.'
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

    def count(self, name: str, number: float, shown: str = "", **values: Any) -> str:
        """The text ``name.one`` or ``name.many``, with {number} filled, or as it is ``shown``."""
        form = "one" if number == 1 else "many"
        return self(f"{name}.{form}", number=shown or number, **values)

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
            yield f"{prefix}{name}", re.sub(r"[ \t\n]+", " ", str(value)).strip()


class Words:
    """Puts what a person sees about one problem into the words of one language.

    The problem is said in the language of the texts: :meth:`Problem.in_language`.
    """

    def __init__(self, problem: Problem, texts: Catalogue | None = None) -> None:
        self.texts = texts or catalogue("en")
        self.problem = problem.in_language(self.texts.language)
        self._actions = {action.name: action for action in self.problem.actions.actions}

    # Numbers, time and money

    def number(self, value: float) -> str:
        """A number as the language writes it."""
        return show_number(value, self.texts.language)

    def share(self, value: float) -> str:
        """A share as whole per cent: "20%"."""
        return show_amount(round(100 * value), "%", self.texts.language)

    def amount(self, value: float) -> str:
        """Money in whole units of what is asked for, as the language writes it."""
        return show_amount(round(value), self._currency, self.texts.language)

    @cached_property
    def _currency(self) -> str:
        features = self.problem.space.features
        asked = self.problem.asked
        if asked is not None:
            return self.problem.space[asked.amount].unit
        return next((feature.unit for feature in features if feature.unit in MONEY), "")

    def time(self, weeks: float) -> str:
        """A rough time, never broken between number and unit: "3 weeks", "5 months", "at once".

        >>> from pear.datasets import loan_book_problem
        >>> words = Words(loan_book_problem())
        >>> [words.time(weeks) for weeks in (0, 1, 12, 130)]
        ['at once', '1\\xa0week', '3\\xa0months', '2.5\\xa0years']
        """
        if weeks <= 0:
            return self.texts("time.now")
        for unit, length, most in (("weeks", 1, 8), ("months", 52 / 12, 100)):
            if weeks <= most:
                number = max(1, round(weeks / length))
                return self.texts.count(f"time.{unit}", number).replace(" ", "\N{NO-BREAK SPACE}")
        years = round(2 * weeks / 52) / 2
        said = self.texts.count("time.years", years, shown=self.number(years))
        return said.replace(" ", "\N{NO-BREAK SPACE}")

    def takes(self, step: Step) -> str:
        """How long a step takes and what it costs, where known: "3 months, €200 once"."""
        parts = [] if step.weeks is None else [self.time(step.weeks)]
        return ", ".join([*parts, *self._money(step.once or 0, step.monthly or 0)])

    def plan_time(self, plan: Plan) -> str:
        """How long a plan takes at most, its steps done one after another; at least, where it is
        not known of some; empty where it is known of none."""
        known = [step.weeks for step in plan.steps if step.weeks is not None]
        time = self.time(sum(known))
        if len(known) < len(plan.steps):
            return self.texts("time.at_least", time=time) if sum(known) > 0 else ""
        return self.texts("time.up_to", time=time) if sum(known) > 0 else time

    def plan_money(self, plan: Plan) -> str:
        """The money a plan takes, once and each month, and whether there is more; empty where
        none is known of."""
        sums = (sum(getattr(step, key) or 0 for step in plan.steps) for key in ("once", "monthly"))
        known = ", ".join(self._money(*sums))
        stated = all(step.once is not None or step.monthly is not None for step in plan.steps)
        return known if stated or not known else self.texts("money.more", money=known)

    def _money(self, once: float, monthly: float) -> Iterator[str]:
        for key, value in (("once", once), ("monthly", monthly)):
            if value:
                yield self.texts(f"money.{key}", amount=self.amount(value))

    def loans(self, plans: Sequence[Plan]) -> list[str]:
        """What somebody would get at the end of each plan, and what it costs in all where the
        terms differ."""
        asked = self.problem.asked
        term = asked.months if asked and asked.months else ""
        if len({_at_end(plan).get(term) for plan in plans}) > 1:
            return [". ".join(filter(None, self.loan(plan))) for plan in plans]
        return [self.loan(plan, short=True)[0] for plan in plans]

    def loan(self, plan: Plan, *, short: bool = False) -> tuple[str, str]:
        """What somebody would get at the end of a plan, and what it costs in all."""
        words, in_all = self.applied_for(_at_end(plan), short=short)
        return words, self.texts("loan.whole", in_all=in_all) if in_all else ""

    def applied_for(self, record: Record, *, short: bool = False) -> tuple[str, str]:
        """The loan of a record, and how much money is paid back in all."""
        asked = self.problem.asked
        offer = asked.offer(record) if asked else None
        if offer is None:
            return "", ""
        kind = (
            "amount" if offer.months is None else "months" if offer.monthly is None else "monthly"
        )
        kind = "short" if short and kind == "monthly" else kind
        words = self.texts(
            f"loan.{kind}",
            amount=self.amount(offer.amount),
            months=offer.months,
            monthly=self.amount(offer.monthly or 0),
        )
        return words, "" if offer.in_all is None else self.amount(offer.in_all)

    # Steps and limits

    def step(self, step: Step | DoneStep) -> str:
        """A step in words; one stored without its action is said as it was then.

        Of a step that is done, what was "now" before it is not said any more.
        """
        action = self._actions.get(step.action)
        if action is None or step.argument is None:
            return step.words
        if isinstance(step, DoneStep):
            action = replace(action, phrase=NOW.sub("", action.phrase))
        feature = self.problem.space[step.feature]
        return phrase(
            action, feature, feature.code(step.before), feature.code(step.after), step.argument
        )

    def value(self, feature: str, value: Value | None) -> str:
        """A value of a feature: "€1,500"."""
        known = self.problem.space[feature]
        return known.show(known.code(value))

    def limit(self, limit: Limit) -> str:
        """What a person can't do: "Change this: savings"."""
        return self._about("limit", limit)

    def refusal(self, limit: Limit) -> str:
        """What a person says who sets this limit: "I can't change this at all"."""
        return self._about("refusal", limit)

    def _about(self, section: str, limit: Limit) -> str:
        if limit.kind == "action":
            return self.texts(f"{section}.action", action=str(limit.action).replace("_", " "))
        feature = self.problem.space[str(limit.feature)]
        name = capital(feature.words) if section == "limit" else feature.words
        if limit.kind == "feature":
            step = self._only_step(feature)
            kind = "step" if step else "feature"
            return self.texts(f"{section}.{kind}", feature=feature.words, step=step)
        value = feature.show(feature.code(limit.value))
        kind = f"{limit.kind}_{limit.direction}" if limit.kind == "beyond" else limit.kind
        return self.texts(f"{section}.{kind}", feature=name, value=value)

    def _only_step(self, feature: Feature) -> str:
        """The one step there is about a yes or no, said as a step; empty where there are more."""
        actions = [a for a in self._actions.values() if a.feature == feature.name]
        if feature.kind != "boolean" or len(actions) != 1:
            return ""
        after = feature.code(actions[0].arguments[0])
        return phrase(actions[0], feature, 1 - after, after, actions[0].arguments[0])

    # What is known

    def reason(self, step: Step, reason: StepReason) -> str:
        """Why a step is in the plan, from what was measured."""
        parts = [capital(reason.because)] if reason.because else []
        without, cheaper = reason.without, reason.cheaper
        if without.blocks is not None:
            parts.append(self.texts("reason.opens", step=without.blocks + 1))
        elif without.score is not None and not without.succeeds:
            parts.append(
                self.texts("reason.without", points=points(without.score, reason.required))
            )
        if cheaper is not None and cheaper.succeeds:
            parts.append(self.texts("reason.enough", choice=self._choice(step, cheaper)))
        elif cheaper is not None and cheaper.score is not None:
            left_at = points(cheaper.score, reason.required)
            choice = self._choice(step, cheaper)
            parts.append(self.texts("reason.cheaper", choice=choice, points=left_at))
        gain = points(step.score_after, reason.required) - points(
            step.score_before, reason.required
        )
        if gain > 0:
            parts.append(self.texts.count("reason.gain", gain))
        if reason.eases is not None:
            parts.append(self.texts("reason.eases", step=reason.eases + 1))
        return " ".join(parts)

    def _choice(self, step: Step, other: Alternative) -> str:
        """Another value of the same step: "savings €1,500"."""
        feature, action = self.problem.space[step.feature], self._actions.get(step.action)
        if action is None or other.argument is None:
            return other.shown
        after = argument_code(feature, action, other.argument)
        if action.mode == "add":
            after += feature.code(step.before)
        return f"{feature.words} {feature.show(after)}"

    def certainty(self, result: Result, answered: int) -> str:
        """How sure we are that no plan is easier for this person."""
        if not answered or result.unlike:
            return self.texts("certainty.unlike" if answered else "certainty.unasked")
        probability = result.confidence
        level = "high" if probability >= 0.9 else "fair" if probability >= 0.6 else "low"
        return self.texts.count(f"certainty.{level}", answered)

    def certificate(self, verdict: str) -> str:
        """What is proven about a plan."""
        return self.texts(f"certificate.{verdict}")


def _at_end(plan: Plan) -> Record:
    """The record of a person who has done a plan."""
    return {**plan.start, **{step.feature: step.after for step in plan.steps}}


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

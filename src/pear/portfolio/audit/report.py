"""What does an audit find, as plain data?"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from pear.portfolio.audit.cells import Attribute, Flip
from pear.portfolio.audit.findings import findings


@dataclass(frozen=True)
class Report:
    """Everything an audit found, and the settings it was found under."""

    problem: str
    problem_fingerprint: str
    model_fingerprint: str
    people: int
    refused: int
    level: float
    smallest: int
    tests: int
    attributes: tuple[Attribute, ...]
    flips: tuple[Flip, ...]
    unused: tuple[str, ...]
    """Protected attributes that neither the model nor the costs look at."""
    not_flipped: str = ""
    """Why no attribute was flipped, if none was."""
    conversations: int = 0
    talkers: int = 0
    """People who had the conversations."""
    verdicts: dict[str, int] = field(default_factory=dict)
    """How many of the refused got each verdict."""
    undecided: int = 0
    bad: int = 0
    most_flips: int = 0
    no_features: tuple[str, ...] = ()
    """Attributes that are no features: the model cannot see them, nobody can be flipped."""

    @property
    def findings(self) -> dict[str, list[str]]:
        """Every difference found, in words: by single attributes, by pairs, and for the same
        people; the largest first."""
        return findings(self.attributes, self.flips)

    @property
    def flagged(self) -> list[str]:
        """The same in one list."""
        return [words for part in self.findings.values() for words in part]

    @property
    def cautions(self) -> list[str]:
        """What the numbers leave open, in words."""
        found = []
        if self.undecided:
            found.append(
                f"For {self.undecided:,} of the {self.refused:,} refused people the search ended "
                "at its limit (--max-rows of 'pear plan') with neither a plan nor a proof that "
                "there is none. They count neither as having a plan nor as having none."
            )
        planned = sum(self.verdicts.values()) - self.undecided - self.verdicts.get("infeasible", 0)
        unproved = planned - self.verdicts.get("optimal", 0)
        if unproved:
            found.append(
                f"{unproved:,} of {planned:,} plans {'is' if unproved == 1 else 'are'} not proved "
                "cheapest, and may cost more than need be."
            )
        if self.bad:
            found.append(
                f"{self.bad:,} row{' of people is' if self.bad == 1 else 's of people are'} not "
                "among the plans (what could not be used stands in the '.bad.csv' beside the "
                "plans): nothing here is about them."
            )
        return found

    def words(self) -> str:
        """The outcome in a few sentences."""
        family = f"{self.tests} tests, at most {self.level:.0%} chance of any false alarm"
        if not self.tests:
            return (
                f"Nothing could be tested: no group and its counterpart have {self.smallest} "
                "people. This says nothing about fairness."
            )
        if not self.flagged:
            return f"No difference stands out ({family}). That is not a proof of fairness."
        count = len(self.flagged)
        return f"{count} difference{'s' if count > 1 else ''} found ({family})."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "found": self.flagged, "found_by": self.findings,
                "cautions": self.cautions, "words": self.words()}  # fmt: skip

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

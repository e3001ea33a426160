"""What was claimed, what was confirmed, and what could not be checked."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """One claim of a plan, whether it was confirmed, and why not where it was not.

    ``step`` is the number of the step it is about, from 1; None for the plan as a whole.
    """

    claim: str
    confirmed: bool
    reason: str = ""
    step: int | None = None

    def words(self) -> str:
        """The finding as a line."""
        where = "" if self.step is None else f"step {self.step}: "
        if self.confirmed:
            return f"  confirmed  {where}{self.claim}"
        return f"  REFUSED    {where}{self.claim}: {self.reason}"


@dataclass
class Report:
    """Everything that was looked at, in order.

    >>> report = Report()
    >>> report.check("the plan has one step", False, "it has two")
    False
    >>> report.confirmed
    False
    >>> print(report.words())
      REFUSED    the plan has one step: it has two
    Refused: the plan has one step (it has two).
    """

    findings: list[Finding] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def check(self, claim: str, holds: bool, reason: str = "", step: int | None = None) -> bool:
        """Note a claim and whether it holds."""
        self.findings.append(Finding(claim, bool(holds), "" if holds else reason, step))
        return bool(holds)

    @property
    def refusals(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.confirmed]

    @property
    def confirmed(self) -> bool:
        """Whether there was something to check and all of it holds."""
        return bool(self.findings) and not self.refusals

    def words(self) -> str:
        """The report in full, the verdict last."""
        lines = [finding.words() for finding in self.findings]
        lines += [f"  not checked  {what}" for what in self.unchecked]
        if self.refusals:
            first = self.refusals[0]
            where = "" if first.step is None else f"step {first.step}, "
            lines.append(f"Refused: {where}{first.claim} ({first.reason}).")
        else:
            lines.append("Confirmed: the plan holds what it claims.")
        return "\n".join(lines)

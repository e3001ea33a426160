"""A conversation in which every step on offer says why it is there (XPEAR).

The planner is a W-EFARE automaton; a question's plans are its distinct walks under
posterior samples. A reason that speaks of cost speaks of what is believed so far.

Reference: paper, appendix "Explaining Recommended Interventions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pear.arrays import Floats
from pear.elicitation.session import Session
from pear.elicitation.shown import Question, Result
from pear.errors import InvalidSetting
from pear.planning.automaton import Automaton, AutomatonPlanner
from pear.planning.planner import Planner
from pear.preferences import GaussianMixturePrior
from pear.problem import Plan


class ExplainedSession(Session):
    """A session over an :class:`AutomatonPlanner` whose plans always carry their reasons."""

    planner: AutomatonPlanner

    def ask(self) -> Question | None:
        """The next question, every step with its reason; see :meth:`Session.ask`."""
        asked = super().ask()
        if asked is None:
            return None
        view = self._view()
        plans = tuple(self._explained(plan, view.state, view.draws) for plan in asked.plans)
        return replace(asked, plans=plans)

    def best(self) -> Plan | None:
        """The plan of least expected cost, every step with its reason."""
        plan = super().best()
        return None if plan is None else self._explained(plan, self.start, self._believed())

    def recommend(self, proof: Planner | None = None) -> Result:
        """The recommendation, every step with its reason; see :meth:`Session.recommend`."""
        found = super().recommend(proof)
        return replace(found, plan=self._explained(found.plan, self.start, self._believed()))

    def _believed(self) -> Floats:
        return self._view(at_start=True).draws

    def _explained(self, plan: Plan, state: Floats, weights: Floats) -> Plan:
        # Plans kept from earlier questions are built from their moves and have lost theirs.
        if all(step.reason for step in plan.steps):
            return plan
        return self.planner.with_reasons(plan, state, weights)


def xpear_session(
    planner: AutomatonPlanner,
    person: Mapping[str, Any] | Floats,
    prior: GaussianMixturePrior,
    **settings: Any,
) -> ExplainedSession:
    """XPEAR for one person: PEAR with the automaton's plans and their reasons.

    ``settings`` are those of :class:`Session`.
    """
    automaton = getattr(planner, "automaton", None)
    if not isinstance(automaton, Automaton) or not automaton.aware:
        raise InvalidSetting(
            "'planner' must walk an automaton that knows what changes cost the person (W-EFARE); "
            "train it with aware=True"
        )
    return ExplainedSession(planner, person, prior, **settings)

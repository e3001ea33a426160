"""What does a search process do for a study? Conversations as in the service, and unlike ways."""

from __future__ import annotations

import numpy as np

from pear.problem import Plan
from pear.service.engine import Case, Engine, make_engine
from pear.service.settings import Settings

WAYS = 4
"""Ways in a list."""

DRAWS = 64
"""Weights that ways are planned for: all kinds of people."""


class StudyEngine(Engine):
    """The service's engine, which also lists unlike ways to a favourable decision."""

    def ways(self, case: Case) -> list[Plan]:
        """At most four plans that change different things, the cheapest for most first.

        As in DiCE (Mothilal and others, 2020), ways are near and unlike each other, and nobody is
        asked what is hard for them: plans that are best for some draw of the prior, added one by
        one, each the one that shares least with those before it.
        """
        rng = np.random.default_rng([case.seed, 4])
        state = self.problem.state(case.record)
        draws = self.prior.sample(DRAWS, rng)[0]
        plans = list(self.asking.candidates(state, draws, DRAWS, rng=rng).plans)
        chosen = plans[:1]
        while len(chosen) < min(WAYS, len(plans)):
            rest = [plan for plan in plans if plan not in chosen]
            chosen.append(min(rest, key=lambda plan: max(_alike(plan, one) for one in chosen)))
        return chosen


def _alike(first: Plan, second: Plan) -> float:
    """The share of changed features that two plans have in common."""
    one, other = ({step.feature for step in plan.steps} for plan in (first, second))
    return len(one & other) / len(one | other)


def make_study_engine(settings: Settings) -> StudyEngine:
    """The engine of a study, with the model of the service's settings."""
    made = make_engine(settings)
    return StudyEngine(made.problem, made.black_box, settings, made.prior)

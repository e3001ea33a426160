"""What can this person change, and what does it cost?"""

from pear.problem.actions import Action, ActionSpace, Requirement
from pear.problem.costs import CostGraph, as_samples, costs_under, walk
from pear.problem.features import Feature, FeatureSpace
from pear.problem.limits import NO_LIMITS, Limits
from pear.problem.plan import Certificate, Plan, Step
from pear.problem.problem import Archetype, Asked, Goal, Offer, Problem

__all__ = [
    "NO_LIMITS",
    "Action",
    "ActionSpace",
    "Archetype",
    "Asked",
    "Certificate",
    "CostGraph",
    "Feature",
    "FeatureSpace",
    "Goal",
    "Limits",
    "Offer",
    "Plan",
    "Problem",
    "Requirement",
    "Step",
    "as_samples",
    "costs_under",
    "walk",
]

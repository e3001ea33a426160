"""What is known about a person, and how it becomes a state vector.

A state is a vector in the person's own units. Categories are stored as integer codes,
booleans as 0 and 1. Costs see *scaled* values, see :meth:`FeatureSpace.scaled`.
"""

from __future__ import annotations

from pear.problem.feature import Feature, Kind, Record, Value
from pear.problem.feature_space import FeatureSpace, PeopleLike, PersonLike, States

__all__ = [
    "Feature", "FeatureSpace", "Kind", "PeopleLike", "PersonLike", "Record", "States", "Value",
]  # fmt: skip

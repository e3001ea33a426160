"""Which plan is cheapest, with proof?"""

from pear.planning.exact.asking import ScoreMemory
from pear.planning.exact.planner import ExactPlanner

__all__ = ["ExactPlanner", "ScoreMemory"]

"""Which plan is cheapest, with proof?"""

from pear.planning.exact.asking import ScoreMemory
from pear.planning.exact.planner import ExactPlanner
from pear.planning.exact.search import Progress

__all__ = ["ExactPlanner", "Progress", "ScoreMemory"]

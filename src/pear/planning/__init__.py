"""Which plan is cheapest?"""

from pear.planning.exact import ExactPlanner
from pear.planning.planner import Planner

__all__ = ["ExactPlanner", "Planner"]

"""Which plan is cheapest, with proof?"""

from pear.planning.exact.planner import ExactPlanner
from pear.planning.exact.survey import Survey

__all__ = ["ExactPlanner", "Survey"]

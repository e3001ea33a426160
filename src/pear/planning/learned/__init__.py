"""Which plan does a trained policy find? RL, FARE and W-FARE (extra ``learned``)."""

from pear.planning.learned.planners import FARE, WFARE, PolicyOnly
from pear.planning.learned.policy import Policy

__all__ = ["FARE", "WFARE", "Policy", "PolicyOnly"]

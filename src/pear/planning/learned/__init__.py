"""Which plan does a trained policy find? RL, FARE and W-FARE (extra ``learned``)."""

from pear.planning.learned.fare import FARE, WFARE
from pear.planning.learned.policy import Policy
from pear.planning.learned.policy_only import PolicyOnly

__all__ = ["FARE", "WFARE", "Policy", "PolicyOnly"]

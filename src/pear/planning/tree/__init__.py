"""Which plan does a Monte Carlo tree search find? Many people's trees in lockstep."""

from pear.planning.tree.planner import TreeSearch

__all__ = ["TreeSearch"]

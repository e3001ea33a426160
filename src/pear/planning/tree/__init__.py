"""Which plan does a Monte Carlo tree search find? Many people's trees in lockstep."""

from pear.planning.tree.planner import TreeSearch
from pear.planning.tree.rules import (
    Rules,
    action_cost_bonus,
    length_reward,
    prefix_bonus,
    puct,
    saving_reward,
)
from pear.planning.tree.search import search
from pear.planning.tree.trees import People, SearchOutcome

__all__ = [
    "People",
    "Rules",
    "SearchOutcome",
    "TreeSearch",
    "action_cost_bonus",
    "length_reward",
    "prefix_bonus",
    "puct",
    "saving_reward",
    "search",
]

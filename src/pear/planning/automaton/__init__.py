"""Which plan can be read off a small automaton, with a reason for every step?"""

from pear.planning.automaton.automaton import Automaton
from pear.planning.automaton.drawing import to_dot
from pear.planning.automaton.planner import AutomatonPlanner
from pear.planning.automaton.training import automaton_from_plans, train_automaton

__all__ = [
    "Automaton",
    "AutomatonPlanner",
    "automaton_from_plans",
    "to_dot",
    "train_automaton",
]

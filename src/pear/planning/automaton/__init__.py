"""Which plan can be read off a small automaton, with a reason for every step?"""

from pear.planning.automaton.automaton import Automaton
from pear.planning.automaton.conditions import Condition
from pear.planning.automaton.drawing import to_dot, to_svg
from pear.planning.automaton.planner import AutomatonPlanner, Reason
from pear.planning.automaton.training import automaton_from_plans, train_automaton

__all__ = [
    "Automaton",
    "AutomatonPlanner",
    "Condition",
    "Reason",
    "automaton_from_plans",
    "to_dot",
    "to_svg",
    "train_automaton",
]

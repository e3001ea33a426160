"""What do we ask next?"""

from pear.elicitation.questions import (
    exhaustive_choice_set,
    expected_gain,
    expected_utility,
    expected_utility_of_selection,
    greedy_choice_set,
)
from pear.elicitation.session import Session
from pear.elicitation.settings import Settings
from pear.elicitation.shown import Question, Result, Standing
from pear.elicitation.simulation import SimulatedPerson, regret_table, simulate
from pear.elicitation.words import Words
from pear.problem.limits import Limit

__all__ = [
    "Limit",
    "Question",
    "Result",
    "Session",
    "Settings",
    "SimulatedPerson",
    "Standing",
    "Words",
    "exhaustive_choice_set",
    "expected_gain",
    "expected_utility",
    "expected_utility_of_selection",
    "greedy_choice_set",
    "regret_table",
    "simulate",
]

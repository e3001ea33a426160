"""What do we ask next?"""

from pear.elicitation.choices import (
    exhaustive_choice_set,
    expected_gain,
    expected_utility,
    expected_utility_of_selection,
    greedy_choice_set,
)
from pear.elicitation.session import Session
from pear.elicitation.settings import Settings
from pear.elicitation.simulation import SimulatedPerson, regret_table, simulate
from pear.elicitation.turns import ChoiceSet, Recommendation

__all__ = [
    "ChoiceSet",
    "Recommendation",
    "Session",
    "Settings",
    "SimulatedPerson",
    "exhaustive_choice_set",
    "expected_gain",
    "expected_utility",
    "expected_utility_of_selection",
    "greedy_choice_set",
    "regret_table",
    "simulate",
]

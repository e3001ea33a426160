"""How high can the score of a partial assignment still go?"""

from pear.decision.ceilings.bound import ceiling, fix, narrow, narrow_again
from pear.decision.ceilings.inside import Inside, Scorer, look_inside
from pear.decision.ceilings.specialised import Specialised
from pear.decision.ceilings.together import Together, together

__all__ = [
    "Inside",
    "Scorer",
    "Specialised",
    "Together",
    "ceiling",
    "fix",
    "look_inside",
    "narrow",
    "narrow_again",
    "together",
]

"""How high can the score of a partial assignment still go?"""

from pear.decision.ceilings.bound import ceiling, fix, narrow, narrow_again
from pear.decision.ceilings.margins import Specialised
from pear.decision.ceilings.white_box import (
    Scorer,
    SeveralWhiteBoxes,
    WhiteBox,
    read_white_box,
)

__all__ = [
    "Scorer",
    "SeveralWhiteBoxes",
    "Specialised",
    "WhiteBox",
    "ceiling",
    "fix",
    "narrow",
    "narrow_again",
    "read_white_box",
]

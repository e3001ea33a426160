"""How high can the score of a partial assignment still go?"""

from pear.decision.ceilings.bound import ceiling, fix, narrow, narrow_again
from pear.decision.ceilings.inside import Inside, look_inside
from pear.decision.ceilings.specialised import Specialised

__all__ = ["Inside", "Specialised", "ceiling", "fix", "look_inside", "narrow", "narrow_again"]

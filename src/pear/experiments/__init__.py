"""Do we reproduce the paper, and what is the better answer beside it?

One file per table or figure; ``pear bench`` runs them. A method or data set of one's own
joins by its import path, see :mod:`pear.experiments.registry`.
"""

from pear.experiments.profiles import PROFILES, Profile
from pear.experiments.tasks import Task
from pear.experiments.worlds import World

__all__ = ["PROFILES", "Profile", "Task", "World"]

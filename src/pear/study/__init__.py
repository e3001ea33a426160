"""Does it help people? A user study: consent, random assignment, tasks, questions about them."""

from pear.study.design import ARMS, Study, export
from pear.study.simulated import simulate_study

__all__ = ["ARMS", "Study", "export", "simulate_study"]

"""Does it help people? A user study: consent, random assignment, tasks, questions about them."""

from pear.study.design import ARMS, Participant, Study, export
from pear.study.simulated import simulate_study

__all__ = ["ARMS", "Participant", "Study", "export", "simulate_study"]

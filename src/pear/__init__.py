"""Personalised algorithmic recourse with preference elicitation."""

__version__ = "0.1.0"

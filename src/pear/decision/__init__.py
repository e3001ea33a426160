"""What does the classifier say?"""

from pear.decision.blackbox import BlackBox, from_callable

__all__ = ["BlackBox", "from_callable"]

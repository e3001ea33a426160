"""What would it take for everyone refused, and is it fair?"""

from pear.portfolio.run import Progress, Summary, plan_portfolio
from pear.portfolio.weights import Everyone, Table, weights_table
from pear.portfolio.worker import ModelPlace, Search

__all__ = [
    "Everyone",
    "ModelPlace",
    "Progress",
    "Search",
    "Summary",
    "Table",
    "plan_portfolio",
    "weights_table",
]

"""What would it take for everyone refused, and is it fair?"""

from pear.portfolio.beliefs import Everyone, Table, weights_table
from pear.portfolio.frames import recourse
from pear.portfolio.run import ModelPlace, Progress, Search, Summary, plan_portfolio

__all__ = [
    "Everyone",
    "ModelPlace",
    "Progress",
    "Search",
    "Summary",
    "Table",
    "plan_portfolio",
    "recourse",
    "weights_table",
]

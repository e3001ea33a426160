"""What would it take for everyone refused, and is it fair?"""

from pear.portfolio.beliefs import Everyone, Table, weights_table
from pear.portfolio.ledger import Progress, Summary
from pear.portfolio.run import ModelPlace, Search, plan_portfolio, recourse

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

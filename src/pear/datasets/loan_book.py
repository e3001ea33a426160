"""A synthetic loan book made by the package itself: problem, table, lender's model, people."""

from pear.datasets.loan_book_model import loan_book_classifier
from pear.datasets.loan_book_people import loan_book_people
from pear.datasets.loan_book_problem import loan_book_problem
from pear.datasets.loan_book_table import loan_book_table

__all__ = [
    "loan_book_classifier",
    "loan_book_people",
    "loan_book_problem",
    "loan_book_table",
]

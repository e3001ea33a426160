"""Which people, and which problems, come with the package or are found by it?"""

from pear.datasets.adult import adult_problem
from pear.datasets.classifiers import classifier_report, trained_classifier
from pear.datasets.cleaning import clean_table
from pear.datasets.credit import credit_problem
from pear.datasets.loan_book import (
    loan_book_classifier,
    loan_book_people,
    loan_book_problem,
    loan_book_table,
)
from pear.datasets.paper_prior import paper_prior_means
from pear.datasets.splits import Dataset, UserSet, load_dataset, user_set

__all__ = [
    "Dataset",
    "UserSet",
    "adult_problem",
    "classifier_report",
    "clean_table",
    "credit_problem",
    "load_dataset",
    "loan_book_classifier",
    "loan_book_people",
    "loan_book_problem",
    "loan_book_table",
    "paper_prior_means",
    "trained_classifier",
    "user_set",
]

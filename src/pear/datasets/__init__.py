"""Which people and problems come with the package, or can be found by it?"""

from pear.datasets.classifiers import classifier_report, trained_classifier
from pear.datasets.loan_book import (
    loan_book_classifier,
    loan_book_people,
    loan_book_table,
)
from pear.datasets.problems import (
    adult_problem,
    credit_problem,
    loan_book_problem,
    paper_prior_means,
)
from pear.datasets.sources import clean_table
from pear.datasets.splits import Dataset, load_dataset, user_set

__all__ = [
    "Dataset",
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

"""What would the lender of the synthetic loan book say to an application?

A small network trained on past decisions with scikit-learn, in a second or two. It never
sees ``sex`` or ``education``: a degree counts only through the jobs it opens. Scores are
computed with numpy alone, so a search may ask it thousands of small batches.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from pear.datasets.loan_book_problem import loan_book_problem
from pear.datasets.loan_book_table import loan_book_table
from pear.decision import BlackBox
from pear.decision.network import Layers, Network
from pear.problem import Problem
from pear.problem.features import FeatureSpace

UNSEEN = ("sex", "education")
"""Features the lender's model is not shown."""


def loan_book_classifier(problem: Problem | None = None, seed: int = 0) -> BlackBox:
    """The lender's model, trained on the first use; same seed, same model.

    >>> model = loan_book_classifier(loan_book_problem())
    >>> people = loan_book_table(1_000, seed=1).drop(columns="approved")
    >>> bool(0.4 < (~model.favourable(model.space.encode(people))).mean() < 0.5)
    True
    """
    problem = problem or loan_book_problem()
    return BlackBox(
        Network(problem.space, _trained(seed)),
        problem.space,
        problem.goal,
        name="loan book network",
    )


@lru_cache(maxsize=8)
def _trained(seed: int) -> Layers:
    """Weights and biases of each layer, the unseen inputs cut off."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    space = loan_book_problem().space
    table = loan_book_table(seed=seed)
    inputs = space.one_hot(space.encode(table.drop(columns="approved")))
    unseen = one_hot_columns(space, UNSEEN)
    inputs[:, unseen] = 0.0
    model = MLPClassifier(
        (16, 8), batch_size=256, learning_rate_init=3e-3, alpha=3e-3, max_iter=40, random_state=seed
    )
    # One thread: the sums of a threaded BLAS depend on the machine, and training amplifies them.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(inputs, table["approved"].to_numpy())
    layers = [
        (np.array(weights), np.array(bias))
        for weights, bias in zip(model.coefs_, model.intercepts_, strict=True)
    ]
    layers[0][0][unseen] = 0.0
    return tuple(layers)


def one_hot_columns(space: FeatureSpace, names: tuple[str, ...]) -> list[int]:
    """Columns of the one-hot encoding that belong to some features."""
    found, start = [], 0
    for feature in space.features:
        width = len(feature.categories) if feature.is_categorical else 1
        if feature.name in names:
            found += list(range(start, start + width))
        start += width
    return found

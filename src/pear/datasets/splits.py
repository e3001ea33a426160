"""Which people train a classifier, which choose it, and which are asked about?

70% train, 10% validation, 20% test, drawn with a seed. (The paper's text says so; its
program splits 80/20 and selects on the test part.)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from pear.arrays import Flags, Floats, Indices
from pear.datasets.loan_book import loan_book_table
from pear.datasets.problems import adult_problem, credit_problem, loan_book_problem
from pear.datasets.sources import clean_table
from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.problem import Problem
from pear.problem.features import FeatureSpace, States

PROBLEMS = {
    "adult": adult_problem,
    "givemecredit": credit_problem,
    "loan_book": loan_book_problem,
}
SHARES = (0.7, 0.1, 0.2)


@dataclass(frozen=True)
class Dataset:
    """People with their decisions, and who belongs to which part.

    ``states`` ``(n, d)``, ``favourable`` ``(n,)``; ``train``, ``validation`` and ``test``
    are row numbers.
    """

    name: str
    problem: Problem
    states: States
    favourable: Flags
    train: Indices
    validation: Indices
    test: Indices

    @property
    def fingerprint(self) -> str:
        """A hash of people, decisions and the split."""
        content = hashlib.sha256(np.ascontiguousarray(self.states).tobytes())
        content.update(self.favourable.tobytes())
        content.update(np.concatenate([self.train, self.validation]).astype("<i8").tobytes())
        return content.hexdigest()[:16]


@dataclass(frozen=True)
class UserSet:
    """Refused people of the test part: row numbers ``(n,)``, states ``(n, d)``, scores ``(n,)``."""

    rows: Indices
    states: States
    scores: Floats


def load_dataset(name: str, seed: int = 0) -> Dataset:
    """``adult``, ``givemecredit`` or ``loan_book``, split with a seed.

    >>> data = load_dataset("loan_book")
    >>> len(data.train), len(data.validation), len(data.test)
    (14000, 2000, 4000)
    """
    if name not in PROBLEMS:
        raise InvalidSetting(f"'name' must be one of {', '.join(PROBLEMS)} (got {name!r})")
    problem = PROBLEMS[name]()
    if name == "loan_book":
        table = loan_book_table().rename(columns={"approved": "favourable"})
    else:
        table = clean_table(name)
    table = table[expressible(problem.space, table)]
    states = problem.space.encode(table[list(problem.space.names)])
    order = np.random.default_rng([seed, 0x5B117]).permutation(len(table))
    ends = np.rint(np.cumsum(SHARES[:2]) * len(table)).astype(int)
    train, validation, test = np.split(order, ends)
    favourable = table["favourable"].to_numpy(bool)
    return Dataset(name, problem, states, favourable, train, validation, test)


def expressible(space: FeatureSpace, table: pd.DataFrame) -> Flags:
    """Rows all of whose categories the problem has, shape ``(n,)``.

    One row of Adult comes from a country that the published set-up has no place for.
    """
    kept = np.ones(len(table), bool)
    for feature in space.features:
        if feature.is_categorical:
            kept &= table[feature.name].isin(feature.categories).to_numpy(bool)
    return kept


def user_set(
    data: Dataset,
    black_box: BlackBox,
    kind: Literal["all", "hard"] = "all",
    n: int = 300,
    seed: int = 0,
) -> UserSet:
    """At most n refused people of the test part; ``hard`` takes the lowest quarter of scores."""
    if kind not in ("all", "hard"):
        raise InvalidSetting(f"'kind' must be all or hard (got {kind!r})")
    if n < 1:
        raise InvalidSetting(f"'n' must be at least 1 (got {n!r})")
    scores = black_box.score(data.states[data.test])
    rows = np.flatnonzero(scores <= black_box.goal.required())
    if kind == "hard" and len(rows):
        rows = rows[scores[rows] <= np.quantile(scores[rows], 0.25)]
    rng = np.random.default_rng([seed, 0xA11])
    chosen = np.sort(rng.choice(rows, min(n, len(rows)), replace=False))
    people = data.test[chosen]
    return UserSet(people, data.states[people], scores[chosen])

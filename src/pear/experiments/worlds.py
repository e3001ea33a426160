"""Which problem, classifier, prior and people is an experiment about?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pear.arrays import Floats
from pear.datasets import (
    Dataset,
    load_dataset,
    loan_book_classifier,
    paper_prior_means,
    trained_classifier,
    user_set,
)
from pear.datasets.published import bench_folder, published_classifier, published_users
from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.preferences import GaussianMixturePrior, default_prior
from pear.problem import Problem
from pear.problem.features import States

CLASSIFIERS = ("network", "logistic", "tree")
USERS = ("all", "hard")
SEED = 0
"""Of the split, the classifiers, the users and their weights; a run reseeds none of them."""


@dataclass(frozen=True)
class World:
    """Everything a method is given, and what it is judged by.

    ``training`` ``(m, d)`` are people to learn from, ``states`` ``(n, d)`` the users asked
    about, ``weights`` ``(n, p)`` their true weights (methods must not look), ``scores``
    ``(n,)`` the classifier's. ``source`` says in words where classifier and users are from;
    ``published`` whether the users are the paper's own, in its order. The last four are of
    training: simulations per step, learning rate, and of W-FARE the share of people solved worst
    and the weight of its search's cost term.
    """

    dataset: str
    classifier: str
    users: str
    problem: Problem
    black_box: BlackBox
    prior: GaussianMixturePrior
    training: States
    states: States
    weights: Floats
    scores: Floats
    source: str
    published: bool = False
    simulations: int = 15
    learning_rate: float = 0.001
    hard_share: float = 0.0
    cost_weight: float = 1.0

    @property
    def key(self) -> str:
        return world_key(self.dataset, self.classifier, self.users)

    def first(self, n: int) -> World:
        """The same world with its first n users."""
        return replace(
            self, states=self.states[:n], weights=self.weights[:n], scores=self.scores[:n]
        )


def world_key(dataset: str, classifier: str, users: str) -> str:
    """The name of a world, for files."""
    return f"{dataset.replace(':', '.')}-{classifier}-{users}"


def adult_world(classifier: str, users: str) -> World:
    """Adult: the published classifier, users and true weights where they are, else ours."""
    return _paper_world("adult", classifier, users)


def credit_world(classifier: str, users: str) -> World:
    """GiveMeSomeCredit: the published classifier, users and true weights, else ours."""
    world = _paper_world("givemecredit", classifier, users)
    return replace(world, simulations=10, learning_rate=0.003, hard_share=0.3)


def _paper_world(name: str, classifier: str, users: str) -> World:
    _check(classifier, users)
    data, prior = _data(name), paper_prior(name)
    if bench_folder() is None:
        return _sampled(name, classifier, users, prior)
    known = published_users(data.problem, name, classifier, users)
    black_box = published_classifier(data.problem, name, classifier)
    # Policies are trained per classifier: neither of its sets may be among those people.
    both = [published_users(data.problem, name, classifier, kind).states for kind in USERS]
    taken = {state.tobytes() for state in np.concatenate(both)}
    people = data.states[data.train]
    return World(
        name,
        classifier,
        users,
        problem=data.problem,
        black_box=black_box,
        prior=prior,
        training=people[[person.tobytes() not in taken for person in people]],
        states=known.states,
        weights=known.weights,
        scores=black_box.score(known.states),
        source="the published classifier, users and true weights",
        published=True,
    )


def loan_book_world(classifier: str, users: str) -> World:
    """The synthetic loan book, with the prior its experts state."""
    return _sampled("loan_book", classifier, users, default_prior(_data("loan_book").problem))


def paper_prior(name: str) -> GaussianMixturePrior:
    """The paper's prior: six kinds of people, identity covariance, no background."""
    means = paper_prior_means(name)
    return GaussianMixturePrior(means, np.ones_like(means), background_weight=0.0)


def true_weights(prior: GaussianMixturePrior, n: int) -> Floats:
    """True weights of n users, drawn from the prior, ``(n, p)``."""
    return np.asarray(prior.sample(n, np.random.default_rng(SEED))[0])


def _sampled(name: str, classifier: str, users: str, prior: GaussianMixturePrior) -> World:
    _check(classifier, users)
    data = _data(name)
    black_box = _classifier(name, classifier)
    chosen = user_set(data, black_box, users, 300, SEED)  # type: ignore[arg-type]
    return World(
        name,
        classifier,
        users,
        problem=data.problem,
        black_box=black_box,
        prior=prior,
        training=data.states[data.train],
        states=chosen.states,
        weights=true_weights(prior, len(chosen.states)),
        scores=chosen.scores,
        source=f"our {classifier} classifier (seed {SEED}); users and weights drawn by us",
    )


@lru_cache(maxsize=4)
def _data(name: str) -> Dataset:
    return load_dataset(name, SEED)


def _check(classifier: str, users: str) -> None:
    for name, value, known in (("classifier", classifier, CLASSIFIERS), ("users", users, USERS)):
        if value not in known:
            raise InvalidSetting(f"'{name}' must be one of {', '.join(known)} (got {value!r})")


def _classifier(name: str, kind: str) -> BlackBox:
    if name == "loan_book" and kind == "network":
        return loan_book_classifier(_data(name).problem, SEED)
    return trained_classifier(name, kind, SEED, data=_data(name))  # type: ignore[arg-type]

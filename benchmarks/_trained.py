"""Problems of any number of features, decided by a model that was trained, not drawn.

A member of the family with K features is a generated table of people (half of the features tell
something about the decision, an eighth repeats others), a model fitted on it, ten values for each
feature, and a cost graph in which every feature after the second has two parents drawn among
those before it (the second has one); floor 1, offset 1, at most five changes. People are drawn
among the refused. For every second person each weight is drawn between 1 and 60; for the others
they come from a mixture of six unit Gaussians with means in [-60, 100], as in the paper's
experiments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pear.decision import BlackBox, from_sklearn
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem

VALUES, COMPONENTS, PEOPLE = 10, 6, 4_000
MAX_LENGTH = 5


@dataclass(frozen=True)
class Member:
    """One problem, its model, and n refused people with their weights."""

    problem: Problem
    black_box: BlackBox
    states: Any
    weights: Any


def lightgbm_member(n_features: int, n_people: int, seed: int) -> Member:
    """The member with this many features, decided by LightGBM."""
    import lightgbm

    table, labels = make_classification(
        PEOPLE,
        n_features,
        n_informative=max(4, n_features // 2),
        n_redundant=n_features // 8,
        class_sep=0.7,
        flip_y=0.05,
        random_state=seed,
    )
    model = lightgbm.LGBMClassifier(n_estimators=200, verbose=-1, random_state=seed, n_jobs=1)
    return _member(table, labels, model, n_people, np.random.default_rng([seed, n_features]))


def breast_cancer(n_people: int, seed: int, *, separable: bool = False) -> Member:
    """Thirty features of real people and a logistic regression; ``separable``: without edges."""
    table, labels = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    rng = np.random.default_rng([seed, 30])
    return _member(table, labels, model, n_people, rng, separable=separable)


def _member(
    table: Any,
    labels: Any,
    model: Any,
    n_people: int,
    rng: np.random.Generator,
    separable: bool = False,
) -> Member:
    low, high = table.min(axis=0), table.max(axis=0)
    table = (table - low) / (high - low)
    names = [f"f{number:02d}" for number in range(table.shape[1])]
    space = FeatureSpace(tuple(Feature(name, scale=(0.0, 1.0)) for name in names))
    grid = tuple(float(value) for value in np.linspace(0, 1, VALUES))
    actions = tuple(Action(f"set_{name}", name, "set", grid) for name in names)
    edges = [] if separable else _edges(names, rng)
    graph = CostGraph(space, tuple(edges))
    problem = Problem(space, ActionSpace(space, actions), graph, Goal(), MAX_LENGTH)
    frame = space.frame(table)
    black_box = from_sklearn(model.fit(frame, labels), problem)
    refused = table[black_box.score(table) <= problem.goal.required()]
    people = refused[rng.permutation(len(refused))[:n_people]]
    positive = rng.uniform(1, 60, (len(people), graph.n_weights))
    means = rng.uniform(-60, 100, (COMPONENTS, graph.n_weights))
    mixture = means[rng.integers(0, COMPONENTS, len(people))]
    mixture += rng.normal(size=mixture.shape)
    even = np.arange(len(people)) % 2 == 0
    weights = positive if separable else np.where(even[:, None], positive, mixture)
    return Member(problem, black_box, people, weights)


def _edges(names: list[str], rng: np.random.Generator) -> list[tuple[str, str]]:
    return [
        (names[parent], name)
        for number, name in enumerate(names)
        if number
        for parent in rng.choice(number, size=min(2, number), replace=False)
    ]

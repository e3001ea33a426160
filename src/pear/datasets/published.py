"""The paper's experiment set-up: problem, prior, users and what its system returned.

Read from the folder named by ``PEAR_BENCH``; nothing of it ships with the package.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Floats, Indices
from pear.decision import BlackBox
from pear.decision.encoding import unit_inputs
from pear.decision.numpy_models import DecisionTree, Network
from pear.errors import DataUnavailable
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem
from pear.problem.features import States

UPPER_BOUNDS = {"RevolvingUtilizationOfUnsecuredLines": 1.0}
"""Results above these are not allowed in the published set-up; other results only below 0."""

UNACTIONABLE = ("age", "relationship", "race", "sex", "native_country", "NumberOfDependents")
PROTECTED = ("race", "sex", "age")


@dataclass(frozen=True)
class PublishedUsers:
    """Users of the paper with their true weights.

    ``states`` ``(n, d)``, ``weights`` ``(n, p)`` in the problem's order, ``scores`` ``(n,)``
    of the published classifier, ``component`` ``(n,)`` of the mixture each was drawn from.
    """

    states: States
    weights: Floats
    scores: Floats
    component: Indices


def bench_folder() -> Path | None:
    """The folder with the published set-up, if there is one."""
    folder = os.environ.get("PEAR_BENCH")
    return Path(folder) if folder and Path(folder).is_dir() else None


def read_setup(name: str) -> dict[str, Any]:
    """The published set-up of ``adult`` or ``givemecredit`` as plain data."""
    folder = bench_folder()
    if folder is None or not (folder / name / "setup.json").is_file():
        raise DataUnavailable(
            f"the published set-up '{name}' was not found; set PEAR_BENCH to the folder that "
            "holds it"
        )
    data: dict[str, Any] = json.loads((folder / name / "setup.json").read_text())
    return data


def published_problem(name: str, max_length: int | None = None) -> Problem:
    """The published problem: features, action grid, cost graph with the settings of its tables."""
    setup = read_setup(name)
    space = FeatureSpace(tuple(_feature(content) for content in setup["features"]))
    actions = ActionSpace(space, tuple(_action(content) for content in setup["actions"]))
    edges = tuple((a, b) for a, b in setup["weight_order"] if a != b)
    cost = setup["cost"]
    graph = CostGraph(
        space,
        edges,
        floor=cost["floor"],
        offset=cost["parent_offset"],
        zero_change=cost["zero_change_counts_as"],
    )
    return Problem(space, actions, graph, Goal(), max_length or setup["max_actions"], name=name)


def published_prior_means(name: str) -> Floats:
    """Means of the six components, shape ``(6, p)``, in the problem's weight order."""
    setup = read_setup(name)
    features = [f["name"] for f in setup["features"]]
    published = [a if a == b else f"{a}->{b}" for a, b in setup["weight_order"]]
    ours = [*features, *(f"{a}->{b}" for a, b in setup["weight_order"] if a != b)]
    order = [published.index(weight) for weight in ours]
    return np.array(setup["prior"]["means"], float)[:, order]


def published_classifier(
    problem: Problem, dataset: str = "adult", classifier: str = "network"
) -> BlackBox:
    """A published classifier of ``adult`` or ``givemecredit``: network, logistic or tree."""
    arrays = dict(np.load(_file(f"{dataset}/classifier_{classifier}.npz", "classifier")))
    inputs = unit_inputs(problem.space, published_problem(dataset).space)
    model: Network | DecisionTree
    if classifier == "tree":
        inner = arrays["left"] >= 0
        model = DecisionTree(
            inputs,
            left=np.where(inner, arrays["left"], 0).astype(np.intp),
            right=np.where(inner, arrays["right"], 0).astype(np.intp),
            column=np.where(inner, arrays["feature"], 0).astype(np.intp),
            threshold=arrays["threshold"].astype(float),
            score=arrays["value"].astype(float),
        )
    elif classifier == "logistic":
        weights = arrays["coef"].astype(float).reshape(-1, 1)
        model = Network(inputs, ((weights, arrays["intercept"].astype(float).reshape(1)),))
    else:
        layers = tuple(
            (arrays[f"{name}_weight"].astype(float).T, arrays[f"{name}_bias"].astype(float))
            for name in ("linears_0", "linears_1", "output")
        )
        model = Network(inputs, layers)
    name = f"published {dataset} {classifier}"
    return BlackBox(model, problem.space, problem.goal, name=name)


def published_users(
    problem: Problem, dataset: str = "adult", classifier: str = "network", users: str = "all"
) -> PublishedUsers:
    """The 300 users of a set, ``all`` or ``hard``, with their true weights."""
    table = pd.read_csv(_file(f"{dataset}/users_{classifier}_{users}.csv.gz", "users"))
    return PublishedUsers(
        states=problem.space.encode(table[list(problem.space.names)]),
        weights=table[[f"w:{name}" for name in problem.weight_names]].to_numpy(float),
        scores=table["model_score"].to_numpy(float),
        component=table["mixture_class"].to_numpy(np.intp),
    )


def published_outcomes() -> pd.DataFrame:
    """What every published method returned: one row per user, seed and setting.

    Columns: dataset, classifier, users, method, corruption, k, questions (-1: none), seed, user,
    recourse, cost (true weights) and length; both count 1 for STOP.
    """
    return pd.read_parquet(_file("outcomes.parquet", "outcomes"))


def published_averages() -> pd.DataFrame:
    """What the published system returned for each Adult user, averaged over its runs."""
    return pd.read_csv(_file("adult/published_all.csv", "averages"))


def _file(path: str, what: str) -> Path:
    folder = bench_folder()
    if folder is None or not (folder / path).is_file():
        raise DataUnavailable(
            f"the published {what} ('{path}') cannot be found; set PEAR_BENCH to the folder that "
            "holds it"
        )
    return folder / path


def _feature(content: dict[str, Any]) -> Feature:
    name = content["name"]
    marks: dict[str, Any] = {"immutable": name in UNACTIONABLE, "protected": name in PROTECTED}
    if content["kind"] == "categorical":
        return Feature(name, "categorical", categories=tuple(content["categories"]), **marks)
    return Feature(name, "numeric", scale=(content["min"], content["max"]), **marks)


def _action(content: dict[str, Any]) -> Action:
    added = content["mode"] == "add"
    return Action(
        content["name"],
        content["feature"],
        content["mode"],
        tuple(content["arguments"]),
        lower=0.0 if added else None,
        upper=UPPER_BOUNDS.get(content["feature"]) if added else None,
    )

"""Small problems for the tests, and the problems of all three data sets where they are here."""

import os

import numpy as np
import pytest

from pear.datasets import loan_book_problem
from pear.datasets.published import published_problem
from pear.problem import (
    Action,
    ActionSpace,
    Archetype,
    Asked,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Problem,
    Requirement,
)
from pear.problem.model_inputs import Interface, ModelInput
from pear.problem.wording import Words

needs_published = pytest.mark.skipif(
    not os.environ.get("PEAR_BENCH"), reason="needs the published reference files (PEAR_BENCH)"
)

PROBLEMS = {
    "loan book": loan_book_problem,
    "adult": lambda: published_problem("adult"),
    "givemecredit": lambda: published_problem("givemecredit"),
}
every_problem = pytest.mark.parametrize(
    "name",
    [
        "loan book",
        pytest.param("adult", marks=needs_published),
        pytest.param("givemecredit", marks=needs_published),
    ],
)


def mixed_space():
    """One feature of each kind, with every declaration used somewhere."""
    return FeatureSpace(
        (
            Feature("age", "integer", 18, 90, (18, 90), immutable=True, protected=True),
            Feature("income", lower=0.0, scale=(0.0, 5000.0), unit="€", label="monthly income"),
            Feature("debt", "integer", 0, 100, (0, 100), missing_counts_as=0),
            Feature("school", "categorical", categories=("none", "school", "degree"), ordered=True),
            Feature("job", "categorical", categories=("clerk", "manager", 'the "boss"')),
            Feature("owner", "boolean", label="owning your home", used=False),
        )
    )


def mixed_problem():
    """Every kind of declaration that a problem file can hold, used at least once."""
    space = mixed_space()
    degree = Requirement("school", ("degree",))
    solvent = Requirement("debt", upper=50)
    actions = ActionSpace(
        space,
        (
            Action("earn", "income", "add", (100, 200, 300, 400), "increase"),
            Action(
                "wages",
                "income",
                "set",
                tuple(np.linspace(0.0, 5000.0, 7).tolist()),
                reviewed=False,
            ),
            Action(
                "repay",
                "debt",
                "add",
                (-1, -5, -20),
                "decrease",
                lower=0,
                upper=95,
                weeks=4,
                once=(1, 5, 20),
            ),
            Action(
                "study", "school", "set", ("school", "degree"), "increase", monthly=30.5, priority=2
            ),
            Action("rise", "job", "set", ("manager",), requires=(degree, solvent)),
            Action("buy", "owner", "set", (True,), phrase="Buy a home ({before} to {after})"),
            Action("declare", "debt", "set", (0, 10), from_missing=True, tolerance=1),
        ),
    )
    graph = CostGraph(
        space,
        (("school", "job"), ("age", "job"), ("job", "income"), ("debt", "owner")),
        floor=None,
        offset=0.25,
        zero_change=None,
    )
    p = graph.n_weights
    return Problem(
        space,
        actions,
        graph,
        Goal(("yes", "maybe"), 0.4, 0.05, "granted", just_enough=0.03),
        max_length=3,
        name="a problem; 100% odd",
        weight_range={"income": (1, 2.5), "school->job": (-3.0, 4.0)},
        default_range=(0.5, 7.0),
        archetypes=(
            Archetype("thrifty", tuple(range(p)), (1.0,) * p, 0.25),
            Archetype("busy", tuple(0.1 * i for i in range(p)), (0.5,) * p, 0.75),
        ),
        model="models/net.onnx",
        prior="prior.json",
        asked=Asked("income", "debt", 0.05),
        words={
            "de": Words(
                labels={"income": "Einkommen"},
                units={"debt": "Raten"},
                categories={"job": {"clerk": "Büro", 'the "boss"': "Chef"}},
                phrases={"repay": "{amount} tilgen"},
            )
        },
        interface=Interface(
            (
                ModelInput("job", encoding="one_hot", categories=("manager", "clerk")),
                ModelInput("level", "school", "code", ("degree", "school", "none"), (2, 1, -0.5)),
                ModelInput("debt", subtract=10, divide=2.5, clip=True, missing=3),
                ModelInput("income"),
            ),
            "logits",
            ("no", "yes", "maybe"),
        ),
    )


def chain_problem(n=3, **settings):
    """The chain 1 -> 2 -> ... -> n of features that can each be set to 2 or to 5."""
    space = FeatureSpace(tuple(Feature(f"s{i}") for i in range(1, n + 1)))
    actions = ActionSpace(
        space, tuple(Action(f"set {name}", name, "set", (2.0, 5.0)) for name in space.names)
    )
    edges = tuple((f"s{i}", f"s{i + 1}") for i in range(1, n))
    graph = CostGraph(space, edges, **{"floor": None, "offset": 0.0, **settings})
    return Problem(space, actions, graph)


def random_records(space, n, rng):
    """n random records within the features' bounds, as plain dicts."""
    columns = {}
    for feature in space.features:
        if feature.is_categorical:
            columns[feature.name] = rng.choice(np.array(feature.categories, object), n).tolist()
        elif feature.kind == "boolean":
            columns[feature.name] = (rng.random(n) < 0.5).tolist()
        else:
            low, high = feature.scale or (-1e6, 1e6)
            low = low if feature.lower is None else max(low, feature.lower)
            high = high if feature.upper is None else min(high, feature.upper)
            values = rng.uniform(low, high, n)
            whole = feature.kind == "integer"
            columns[feature.name] = [round(v) if whole else v for v in values.tolist()]
        if feature.may_be_missing:
            absent = rng.random(n) < 0.2
            pairs = zip(columns[feature.name], absent, strict=True)
            columns[feature.name] = [None if gone else value for value, gone in pairs]
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]

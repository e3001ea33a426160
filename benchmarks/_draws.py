"""Random models of every kind, and draws that test whether a ceiling ever lies below a score.

A draw is a person, a partial assignment, a set of open options, a number of changes left and one
completion. The real model scores the completion; a planner that asks for anything less than this
score must not drop it.
"""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pear.decision import BlackBox, from_sklearn
from pear.decision.ceilings import ceiling, fix, narrow, narrow_again
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem

KINDS = (
    "tree",
    "forest",
    "extra trees",
    "gradient boosting",
    "exponential boosting",
    "histogram boosting",
    "histogram boosting on categories",
    "lightgbm",
    "lightgbm on categories",
    "xgboost",
    "xgboost on categories",
    "catboost",
    "logistic",
    "ridge",
    "rectified network",
    "sigmoid network",
    "tanh network",
)
NEEDS = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost"}
TAKE_MISSING = ("tree", "histogram", "lightgbm", "xgboost", "catboost")
CATEGORIES = ("red", "green", "blue", "grey")


def lacking(kind: str) -> str | None:
    """The package that a kind of model needs and that is not installed."""
    package = NEEDS.get(kind.split()[0])
    return package if package and importlib.util.find_spec(package) is None else None


def random_table(rng: np.random.Generator, n: int, missing: bool) -> tuple[pd.DataFrame, Any]:
    """People with numbers on grids, so that thresholds are hit exactly, and a category."""
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n).round(1),
            "b": rng.integers(0, 10, n) * 0.1,
            "c": rng.choice(CATEGORIES, n),
            "d": np.float32(rng.normal(size=n)).astype(float),
            "e": rng.integers(0, 5, n).astype(float),
        }
    )
    weights = rng.normal(size=4)
    sums = weights[0] * table.a + weights[1] * 2 * table.b + weights[2] * (table.c == "green")
    sums += weights[3] * table.d * table.e * 0.4 + rng.normal(size=n) * 0.3
    labels = (sums > np.median(sums)).astype(int)
    if missing:
        for name in ("a", "e"):
            table.loc[rng.random(n) < 0.15, name] = np.nan
    return table, labels


def random_black_box(kind: str, rng: np.random.Generator) -> BlackBox:
    """A model of this kind, trained on a random table; its favourable class is either."""
    missing = kind.startswith(TAKE_MISSING)
    table, labels = random_table(rng, 400, missing)
    if kind.endswith("on categories"):
        table["c"] = pd.Categorical(table["c"], categories=list(CATEGORIES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _model(kind, int(rng.integers(2**31))).fit(table, labels)
    absent: dict[str, Any] = {"missing_counts_as": 0.0} if missing else {}
    space = FeatureSpace(
        (
            Feature("a", scale=(-3, 3), **absent),
            Feature("b", scale=(0, 1)),
            Feature("c", "categorical", categories=CATEGORIES),
            Feature("d", scale=(-3, 3)),
            Feature("e", scale=(0, 4), **absent),
        )
    )
    actions = ActionSpace(space, (Action("change", "a", "set", (0.0, 1.0)),))
    goal = Goal(favourable=(int(rng.integers(2)),)) if hasattr(model, "predict_proba") else Goal()
    return from_sklearn(model, Problem(space, actions, CostGraph(space), goal))


def random_person(
    black_box: BlackBox, rng: np.random.Generator
) -> tuple[np.ndarray, list[np.ndarray]]:
    """A start ``(5,)`` and the options of each feature, the present value first."""
    nodes = getattr(getattr(black_box.inside, "model", None), "nodes", None)
    thresholds = np.zeros(1) if nodes is None else nodes.threshold
    around = rng.choice(thresholds[np.abs(thresholds) < 1e6], 6)
    sets = [
        np.linspace(-2, 2, 9).round(1),
        np.arange(10) * 0.1,
        np.arange(4.0),
        np.concatenate([around, np.nextafter(around, np.inf), np.float32(around).astype(float)]),
        np.arange(5.0),
    ]
    if rng.random() < 0.2:
        sets[3] = np.linspace(-2, 2, 80)
    for column in (0, 4):
        if black_box.space.features[column].may_be_missing:
            sets[column] = np.append(sets[column], np.nan)
    start = np.array([rng.choice(options) for options in sets])
    return start, [np.append(value, options) for value, options in zip(start, sets, strict=True)]


@dataclass(frozen=True)
class Draw:
    """A partial assignment, its limits, and completions of it.

    ``order`` are the features fixed so far at ``chosen`` ``(5,)``; ``completions`` ``(k, 5)`` take
    open options of the others, at most ``remaining`` of them and for less than ``room``.
    """

    order: np.ndarray
    chosen: np.ndarray
    open_options: np.ndarray
    costs: np.ndarray
    room: float
    remaining: int
    completions: np.ndarray


def draws(
    black_box: BlackBox, rng: np.random.Generator, n_partial: int, n_completions: int
) -> tuple[int, int]:
    """How many draws were made for one person, and in how many a ceiling was too low.

    The required score of each partial assignment is one that one of its completions just exceeds.
    """
    start, values = random_person(black_box, rng)
    most, goal = int(rng.integers(1, 6)), 0.5
    inside = black_box.inside
    special = inside.specialise(start, range(5), values, goal, most) if inside else None
    if special is None:
        return 0, 0
    slack = inside.link.required(goal) - special.required
    counts = [len(options) for options in values]
    made = [_draw(counts, most, rng, n_completions) for _ in range(n_partial)]
    chosen = np.concatenate([draw.completions for draw in made])
    states = np.column_stack([options[o] for options, o in zip(values, chosen.T, strict=True)])
    scores = np.split(black_box.score(states), len(made))
    wrong = 0
    for draw, its_scores in zip(made, scores, strict=True):
        asked = np.nextafter(rng.choice(its_scores), -1.0)
        asking = special._replace(required=inside.link.required(asked) - slack)
        wrong += int(_dropped(asking, draw)[its_scores > asked].sum())
    return len(states), wrong


def _draw(counts: list[int], most: int, rng: np.random.Generator, n: int) -> Draw:
    order = rng.permutation(5)[: rng.integers(0, 6)]
    chosen, used = np.zeros(5, int), 0
    for feature in order:
        if used < most and rng.random() < 0.5:
            chosen[feature] = rng.integers(0, counts[feature])
            used += chosen[feature] > 0
    open_options = rng.random((5, max(counts))) < rng.choice([0.2, 0.6, 1.0])
    open_options &= np.arange(max(counts)) < np.array(counts)[:, None]
    # What changing one feature takes off others may be more than it costs itself.
    costs = np.maximum(rng.choice([1.0, -5.0]), rng.normal(5, 10, open_options.shape))
    remaining = int(rng.integers(0, most - used + 1))
    free = np.setdiff1d(np.arange(5), order)
    completions = np.repeat(chosen[None], n, axis=0)
    for completion in completions:
        left = remaining
        for feature in rng.permutation(free):
            options = 1 + np.flatnonzero(open_options[feature, 1:])
            if left and len(options) and rng.random() < 0.7:
                completion[feature] = rng.choice(options)
                left -= 1
    changed = (completions > 0) & np.isin(np.arange(5), free)
    spent = np.where(changed, costs[np.arange(5), completions], 0.0).sum(axis=1)
    # Room for some of them only, to the last bit; those that do not fit are replaced.
    room = rng.choice([np.inf, np.nextafter(rng.choice(spent), np.inf)])
    completions[spent >= room] = completions[spent.argmin()]
    return Draw(order, chosen, open_options, costs, float(room), remaining, completions)


def _dropped(special: Any, draw: Draw) -> np.ndarray:
    """Which completions, if favourable, a search with these ceilings would lose, shape ``(k,)``."""
    # As a search goes down: all options open at first, at the end those of the draw.
    everything = np.arange(special.gains.shape[1]) < special.counts[:, None]
    most = draw.remaining + np.count_nonzero(draw.chosen)
    narrow(special, 0, everything.copy(), 0.0 * draw.costs, np.inf, most)
    for depth, feature in enumerate(draw.order):
        fix(special, depth, feature, draw.chosen[feature])
        left = most - np.count_nonzero(draw.chosen[draw.order[: depth + 1]])
        narrow(special, depth + 1, everything.copy(), 0.0 * draw.costs, np.inf, left)
    depth, lost = len(draw.order), np.zeros(len(draw.completions), bool)
    lost |= ceiling(special, depth, draw.open_options, draw.remaining) < special.required
    kept = draw.open_options.copy()
    limits = (draw.costs, draw.room, draw.remaining)
    lost |= narrow(special, depth, kept, *limits) < special.required
    lost |= special.here[depth] < special.required and (draw.completions == draw.chosen).all(axis=1)
    lost |= narrow_again(special, depth, kept, *limits) < special.required
    kept[:, 0] = True
    others = np.setdiff1d(np.arange(5), draw.order)
    lost |= ~kept[others, draw.completions[:, others]].all(axis=1)
    return np.asarray(lost)


def _model(kind: str, seed: int) -> Any:
    from sklearn import ensemble, linear_model, neural_network, tree

    name, _, plain = kind.partition(" on ")
    if name == "histogram boosting":
        model = ensemble.HistGradientBoostingClassifier(
            max_iter=15, categorical_features="from_dtype" if plain else None, min_samples_leaf=5
        )
    elif name == "lightgbm":
        import lightgbm

        model = lightgbm.LGBMClassifier(
            n_estimators=15, verbose=-1, min_data_per_group=5, cat_smooth=1, random_state=seed
        )
    elif name == "xgboost":
        import xgboost

        model = xgboost.XGBClassifier(
            n_estimators=15, max_depth=4, enable_categorical=bool(plain), random_state=seed
        )
    elif name == "catboost":
        import catboost

        model = catboost.CatBoostClassifier(
            iterations=15, depth=4, verbose=0, allow_writing_files=False, random_seed=seed
        )
    elif name.endswith("network"):
        bend = {"rectified": "relu", "sigmoid": "logistic", "tanh": "tanh"}[name.split()[0]]
        model = neural_network.MLPClassifier(
            (12, 8), activation=bend, max_iter=60, random_state=seed
        )
    else:
        model = {
            "tree": tree.DecisionTreeClassifier(random_state=seed),
            "forest": ensemble.RandomForestClassifier(15, random_state=seed),
            "extra trees": ensemble.ExtraTreesClassifier(15, random_state=seed),
            "gradient boosting": ensemble.GradientBoostingClassifier(
                n_estimators=15, random_state=seed
            ),
            "exponential boosting": ensemble.GradientBoostingClassifier(
                n_estimators=15, loss="exponential", random_state=seed
            ),
            "logistic": linear_model.LogisticRegression(),
            "ridge": linear_model.RidgeClassifier(),
        }[name]
    return model if plain else _pipeline(model)


def _pipeline(model: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["c"]),
        (StandardScaler(), ["a", "b"]),
        remainder="passthrough",
    )
    return make_pipeline(columns, model)

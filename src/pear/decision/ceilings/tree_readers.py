"""The trees inside scikit-learn's, LightGBM's, XGBoost's and CatBoost's classifiers.

Each reader returns the trees as an ``Ensemble`` whose margin rises with the favourable score,
the link between the two, and words for a certificate; or None where the model is of another
kind than it can read. What they return is compared with the model on probes before it is used.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pear.decision.ceilings.margins import SINGLE, Identity, ReadModel, Sigmoid, favoured
from pear.decision.ceilings.trees import (
    MISSING_LEFT,
    MISSING_ZERO,
    OUTSIDE_LEFT,
    STRICT,
    ZERO_MISSING,
    join_trees,
)


def single_tree(model: Any, columns: Sequence[int]) -> ReadModel | None:
    return _averaged([model], columns, "a decision tree")


def forest(model: Any, columns: Sequence[int]) -> ReadModel | None:
    trees = list(model.estimators_)
    kind = "extra trees" if "Extra" in type(model).__name__ else "a random forest"
    return _averaged(trees, columns, f"{len(trees)} trees of {kind}")


def _averaged(models: list[Any], columns: Sequence[int], what: str) -> ReadModel | None:
    trees = []
    for model in models:
        if model.tree_.n_outputs != 1:
            return None
        counts = model.tree_.value[:, 0, :]
        shares = counts[:, list(columns)].sum(axis=1) / counts.sum(axis=1)
        trees.append(_sklearn_tree(model.tree_, shares / len(models)))
    return ReadModel(join_trees(trees, single=True), Identity(), what)


def gradient_boosting(model: Any, columns: Sequence[int]) -> ReadModel | None:
    side = favoured(columns, len(model.classes_))
    if not side or not (model.init_ == "zero" or type(model.init_).__name__ == "DummyClassifier"):
        return None
    base = float(model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0, 0])
    trees = [
        _sklearn_tree(tree.tree_, side * model.learning_rate * tree.tree_.value[:, 0, 0])
        for tree in model.estimators_[:, 0]
    ]
    steepness = 2.0 if model.loss == "exponential" else 1.0
    what = f"{len(trees)} trees of gradient boosting"
    return ReadModel(join_trees(trees, single=True, base=side * base), Sigmoid(steepness), what)


def _sklearn_tree(tree: Any, value: Any) -> dict[str, Any]:
    inner = tree.children_left >= 0
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(len(inner)))
    return {
        "column": np.where(inner, tree.feature, -1),
        "left": np.where(inner, tree.children_left, 0),
        "right": np.where(inner, tree.children_right, 0),
        "threshold": np.where(inner, tree.threshold, 0.0),
        "value": value,
        "flags": np.where(missing_left != 0, MISSING_LEFT, 0),
    }


def histogram_boosting(model: Any, columns: Sequence[int]) -> ReadModel | None:
    side = favoured(columns, len(model.classes_))
    if not side:
        return None
    known_sets, place_of = model._bin_mapper.make_known_categories_bitsets()
    trees = []
    for [predictor] in model._predictors:
        nodes = predictor.nodes
        inner = nodes["is_leaf"] == 0
        missing_left = nodes["missing_go_to_left"] != 0
        sets: list[Any] = [None] * len(nodes)
        for node in np.flatnonzero(inner & (nodes["is_categorical"] != 0)):
            members = _members(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            if missing_left[node]:
                members |= ~_members(known_sets[place_of[nodes["feature_idx"][node]]])
            sets[node] = members
        trees.append(
            {
                "column": np.where(inner, nodes["feature_idx"].astype(int), -1),
                "left": np.where(inner, nodes["left"], 0).astype(int),
                "right": np.where(inner, nodes["right"], 0).astype(int),
                "threshold": np.where(inner, nodes["num_threshold"], 0.0),
                "value": side * nodes["value"],
                "flags": np.where(missing_left, MISSING_LEFT, 0),
                "sets": sets,
            }
        )
    base = side * float(np.ravel(model._baseline_prediction)[0])
    what = f"{len(trees)} trees of histogram gradient boosting"
    return ReadModel(join_trees(trees, base=base), Sigmoid(), what)


def _members(words: Any) -> Any:
    """Bits of 32-bit words as booleans, lowest first."""
    bits = np.asarray(words, np.int64)[:, None] >> np.arange(32) & 1
    return bits.ravel().astype(bool)


def lightgbm(model: Any, columns: Sequence[int]) -> ReadModel | None:
    side = favoured(columns, len(model.classes_))
    if not side or model.get_params().get("pred_early_stop"):
        # Predictions that stop early leave trees out, which ones depends on the row.
        return None
    iteration = model.booster_.best_iteration
    text = model.booster_.model_to_string(num_iteration=iteration if iteration > 0 else None)
    head, *parts = text.split("\nTree=")
    settings = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    objective = settings.get("objective", "").split()
    if not objective or objective[0] not in ("binary", "cross_entropy"):
        return None
    steepness = next((float(o[8:]) for o in objective if o.startswith("sigmoid:")), 1.0)
    trees = []
    averaged = "\naverage_output" in head
    for part in parts:
        fields = dict(line.split("=", 1) for line in part.splitlines() if "=" in line)
        if fields.get("is_linear", "0") != "0":
            return None
        trees.append(_lightgbm_tree(fields, side / (len(parts) if averaged else 1)))
    what = f"{len(trees)} trees of LightGBM"
    return ReadModel(join_trees(trees), Sigmoid(steepness), what)


def _lightgbm_tree(fields: dict[str, str], factor: float) -> dict[str, Any]:
    def numbers(name: str, kind: Any) -> Any:
        return np.array(fields.get(name, "").split(), float).astype(kind)

    values = factor * np.array([float(text) for text in fields["leaf_value"].split()])
    if int(fields["num_leaves"]) == 1:
        return {"column": [-1], "left": [0], "right": [0], "threshold": [0.0], "value": values[:1]}
    decision = numbers("decision_type", int)
    n_inner = len(decision)
    kind = decision >> 2 & 3
    flags = np.where(decision & 2, MISSING_LEFT, 0)
    flags |= np.choose(kind, [MISSING_ZERO, ZERO_MISSING | MISSING_ZERO, 0])
    categorical = decision & 1 != 0
    flags[categorical] = 0
    threshold = np.array([float(text) for text in fields["threshold"].split()])
    sets: list[Any] = [None] * (n_inner + len(values))
    if categorical.any():
        ends, words = numbers("cat_boundaries", int), numbers("cat_threshold", np.int64)
        for node in np.flatnonzero(categorical):
            number = int(threshold[node])
            sets[node] = _members(words[ends[number] : ends[number + 1]])

    def child(name: str) -> Any:
        places = numbers(name, int)
        # Negative numbers are leaves, which stand after the inner nodes here.
        return np.concatenate([np.where(places < 0, n_inner + ~places, places), 0 * values])

    padding = np.zeros(len(values))
    return {
        "column": np.concatenate([numbers("split_feature", int), padding - 1]),
        "left": child("left_child"),
        "right": child("right_child"),
        "threshold": np.concatenate([threshold, padding]),
        "value": np.concatenate([np.zeros(n_inner), values]),
        "flags": np.concatenate([flags, padding]),
        "sets": sets,
    }


def xgboost(model: Any, columns: Sequence[int]) -> ReadModel | None:
    side = favoured(columns, len(model.classes_))
    if not side or not np.isnan(model.missing):
        # Where a number stands for a missing value, no threshold says where it goes.
        return None
    content = json.loads(model.get_booster().save_raw("json"))["learner"]
    if content["objective"]["name"] != "binary:logistic":
        return None
    booster = content["gradient_booster"]
    weights = None
    if booster["name"] == "dart":
        weights = [float(weight) for weight in booster["weight_drop"]]
        booster = booster["gbtree"]
    if "model" not in booster or "trees" not in booster["model"]:
        return None
    trees = booster["model"]["trees"]
    best = getattr(model, "best_iteration", None) if _stopped_early(model) else None
    if best is not None:
        per_round = int(booster["model"]["gbtree_model_param"].get("num_parallel_tree", 1))
        trees = trees[: (best + 1) * per_round]
    share = float(str(content["learner_model_param"]["base_score"]).strip("[]"))
    read = [
        _xgboost_tree(tree, side * (1.0 if weights is None else weights[number]))
        for number, tree in enumerate(trees)
    ]
    ensemble = join_trees(
        read, single=True, base=side * float(np.log(share / (1 - share))), rounding=2.0**-24
    )
    return ReadModel(ensemble, Sigmoid(error=SINGLE), f"{len(read)} trees of XGBoost")


def _stopped_early(model: Any) -> bool:
    try:
        return model.best_iteration is not None
    except AttributeError:
        return False


def _xgboost_tree(tree: dict[str, Any], factor: float) -> dict[str, Any]:
    left = np.array(tree["left_children"])
    inner = left >= 0
    condition = np.array(tree["split_conditions"], np.float32).astype(float)
    flags = np.where(np.array(tree["default_left"]) != 0, MISSING_LEFT, 0)
    flags[inner] |= STRICT
    sets: list[Any] = [None] * len(left)
    for number, node in enumerate(tree.get("categories_nodes", ())):
        begin = tree["categories_segments"][number]
        right = tree["categories"][begin : begin + tree["categories_sizes"][number]]
        members = np.ones(max(right) + 1, bool)
        members[right] = False
        # What is padded to a whole word goes left too, as all that the node does not list.
        padded = np.ones(-(-len(members) // 32) * 32, bool)
        padded[: len(members)] = members
        sets[node] = padded
        flags[node] |= OUTSIDE_LEFT
    return {
        "column": np.where(inner, tree["split_indices"], -1),
        "left": np.where(inner, left, 0),
        "right": np.where(inner, tree["right_children"], 0),
        "threshold": np.where(inner, condition, 0.0),
        "value": np.where(inner, 0.0, factor * condition),
        "flags": flags,
        "sets": sets,
    }


def catboost(model: Any, columns: Sequence[int]) -> ReadModel | None:
    side = favoured(columns, len(model.classes_))
    if not side:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content = json.loads(path.read_text())
    scale, [bias] = content["scale_and_bias"]
    information = content["features_info"]
    if "oblivious_trees" not in content or information.get("categorical_features"):
        return None
    above = {
        number: feature.get("nan_value_treatment") == "AsTrue"
        for number, feature in enumerate(information["float_features"])
    }
    place = [feature["flat_feature_index"] for feature in information["float_features"]]
    trees = []
    for tree in content["oblivious_trees"]:
        splits = tree["splits"] or []
        if any(split["split_type"] != "FloatFeature" for split in splits):
            return None
        trees.append(_oblivious(splits, tree["leaf_values"], place, above, side * scale))
    ensemble = join_trees(trees, single=True, base=side * bias)
    return ReadModel(ensemble, Sigmoid(), f"{len(trees)} trees of CatBoost")


def _oblivious(
    splits: list[Any], leaves: list[float], place: list[int], above: dict[int, bool], factor: float
) -> dict[str, Any]:
    """A tree whose levels all ask one question, written out; bit i of a leaf answers split i."""
    n_inner = len(leaves) - 1
    column, threshold = np.full(2 * n_inner + 1, -1), np.zeros(2 * n_inner + 1)
    flags = np.zeros(2 * n_inner + 1, int)
    left, right = np.zeros(2 * n_inner + 1, int), np.zeros(2 * n_inner + 1, int)
    value = np.zeros(2 * n_inner + 1)
    for node in range(n_inner):
        level = (node + 1).bit_length() - 1
        split = splits[level]
        column[node] = place[split["float_feature_index"]]
        threshold[node] = np.float32(split["border"])
        flags[node] = 0 if above[split["float_feature_index"]] else MISSING_LEFT
        left[node], right[node] = 2 * node + 1, 2 * node + 2
    for path in range(n_inner + 1):
        # The way to a leaf reads the answers from the first level on.
        number = sum(
            1 << level for level in range(len(splits)) if path >> (len(splits) - 1 - level) & 1
        )
        value[n_inner + path] = factor * leaves[number]
    return {
        "column": column,
        "left": left,
        "right": right,
        "threshold": threshold,
        "value": value,
        "flags": flags,
    }


def own_tree(tree: Any) -> ReadModel:
    """The package's own decision tree."""
    inner = tree.left > 0
    read = {
        "column": np.where(inner, tree.column, -1),
        "left": tree.left,
        "right": tree.right,
        "threshold": tree.threshold,
        "value": tree.score,
    }
    return ReadModel(join_trees([read], single=True), Identity(), "a decision tree")


TREE_READERS: dict[str, Callable[[Any, Sequence[int]], ReadModel | None]] = {
    "DecisionTreeClassifier": single_tree,
    "ExtraTreeClassifier": single_tree,
    "RandomForestClassifier": forest,
    "ExtraTreesClassifier": forest,
    "GradientBoostingClassifier": gradient_boosting,
    "HistGradientBoostingClassifier": histogram_boosting,
    "LGBMClassifier": lightgbm,
    "XGBClassifier": xgboost,
    "XGBRFClassifier": xgboost,
    "CatBoostClassifier": catboost,
}

"""Are the trees in a model from a file sound, so that walking them stays inside their arrays?

A tree is stored as arrays of node numbers that scikit-learn follows without looking. A file
made to do harm could point outside of them; :func:`check_trees` looks first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pear.errors import ModelRefused

TREE_TYPES = ("Tree", "TreePredictor")


def check_trees(model: Any, name: str) -> None:
    """Refuse a model in which some tree points outside of itself."""
    for tree in find_trees(model):
        if type(tree).__name__ == "Tree":
            left, right, feature = tree.children_left, tree.children_right, tree.feature
            inner = (left != -1) | (right != -1)
            width, sound = tree.n_features, len(tree.value) == len(left)
        else:
            nodes = tree.nodes
            left, right = nodes["left"].astype(int), nodes["right"].astype(int)
            feature, inner = nodes["feature_idx"], nodes["is_leaf"] == 0
            width, sound = np.inf, not nodes["is_categorical"].any() or _bins_fit(tree)
        places = np.arange(len(left))
        for child in (left, right):
            # Children after their parent: every walk ends.
            sound &= bool(((child > places) & (child < len(left)))[inner].all())
        sound &= bool(((feature >= 0) & (feature < width))[inner].all())
        if not sound:
            raise ModelRefused(
                f"'{name}' holds a tree that points outside of itself; it was damaged or made to "
                "do harm: get the model again from its author"
            )


def find_trees(model: Any) -> Iterator[Any]:
    """Every tree inside an estimator, however deep."""
    waiting, seen = [model], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if type(item).__name__ in TREE_TYPES:
            yield item
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, (list, tuple, set)):
            waiting += item
        elif isinstance(item, np.ndarray):
            waiting += item.ravel().tolist() if item.dtype == object else []
        elif type(item).__module__.startswith(("sklearn.", "pear.")):
            waiting += vars(item).values() if hasattr(item, "__dict__") else []


def _bins_fit(tree: Any) -> bool:
    """Whether the category sets that nodes refer to are there."""
    rows = tree.nodes["bitset_idx"][tree.nodes["is_categorical"] != 0]
    return bool((rows < len(tree.raw_left_cat_bitsets)).all())

"""The highest sum of leaves that a completion can reach in an ensemble of trees.

Trees of all libraries are read into one :class:`Ensemble`. For one person a tree keeps only the
leaves that some assignment reaches (:func:`reachable_leaves`): a leaf allows a set of options of
every feature, and *needs* the features that cannot stay as they are. Two bounds hold for every
completion with at most r changes, and the smaller is the ceiling:

- each tree takes its best leaf that needs at most r changes and allows open options;
- the leaf of "no further change", plus the r largest gains of a feature, where the gain of a leaf
  over that first one is shared equally between the features it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pear.decision.ceilings.margins import (
    TREES,
    Bits,
    EncodedOptions,
    Matrix,
    Specialised,
    empty_fields,
)
from pear.decision.ceilings.tree_bounds import tree_ceiling

Integers = NDArray[np.int64]

MISSING_LEFT = 1
"""A missing value, and a category that the node does not list, go to the left."""
STRICT = 2
"""Left is what is below the threshold, not what is at it."""
ZERO_MISSING = 4
"""Zero counts as missing (LightGBM)."""
MISSING_ZERO = 8
"""A missing value counts as zero (LightGBM)."""
OUTSIDE_LEFT = 16
"""A category beyond the node's set goes to the left (XGBoost)."""

NEAR_ZERO = float(np.float32(1e-35))
"""LightGBM takes numbers up to this size for zero."""

MOST_LEAVES = 400_000
"""An ensemble that keeps more leaves than this for one person is not worth looking into."""


class Nodes(NamedTuple):
    """The k nodes of T trees, as compiled code takes them.

    ``roots`` ``(T,)``; all others ``(k,)``, except ``words``. ``column`` is -1 at a leaf.
    ``first_word`` is the place in ``words`` of the set of categories that go left, of ``n_words``
    words of 32 bits; -1 for a number.
    """

    roots: Integers
    column: Integers
    left: Integers
    right: Integers
    threshold: Matrix
    value: Matrix
    flags: Integers
    first_word: Integers
    n_words: Integers
    words: Integers


@dataclass(frozen=True)
class Ensemble:
    """Trees whose margin is ``base`` plus the sum of one leaf of each.

    ``single``: inputs are rounded to single precision before they are compared.
    ``rounding``: the relative error of one addition in the library's own sum.
    """

    nodes: Nodes
    base: float = 0.0
    single: bool = False
    rounding: float = 2.0**-53
    worth_after: float = 1_000.0

    def inputs(self, matrix: Matrix) -> Matrix:
        """The matrix in the precision the library compares it in."""
        matrix = np.asarray(matrix, float)
        if not self.single:
            return np.ascontiguousarray(matrix)
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(matrix.astype(np.float32).astype(float))

    def margins(self, matrix: Matrix) -> Matrix:
        """Sums of leaves for encoded rows ``(n, D)``, shape ``(n,)``."""
        return np.asarray(self.base + _sums(self.nodes, self.inputs(matrix)))

    def used_columns(self) -> NDArray[np.intp]:
        return np.unique(self.nodes.column[self.nodes.column >= 0])

    def specialise(
        self, options: EncodedOptions, required: float, max_changes: int
    ) -> Specialised | None:
        """The leaves that matter to one person; None where they are too many."""
        values, allowed, need, starts = reachable_leaves(
            self.nodes,
            options.rows,
            options.first,
            options.counts,
            options.owner,
            max_changes,
            MOST_LEAVES,
        )
        n_features, n_leaves, n_trees = len(options.counts), len(values), len(self.nodes.roots)
        rows = n_features + 3
        if not n_leaves:
            return None
        fields = empty_fields(n_features, options.counts)
        alive = np.zeros((rows, n_leaves), np.int32)
        alive[[0, -1]] = np.arange(n_leaves)
        ends = np.zeros((rows, n_trees), np.int32)
        ends[[0, -1]] = starts[1:]
        fields["n_trees"][[0, -1]] = n_trees
        first_part, part_feature, part_bits = constrained(allowed, options.counts)
        size = np.maximum.reduceat(np.abs(values), starts[:-1]).sum() + abs(self.base)
        slack = (n_trees + 64) * self.rounding + (n_leaves + n_trees + 64) * 2.0**-52
        fields |= {
            "values": values,
            "allowed": np.ascontiguousarray(allowed.transpose(1, 2, 0)),
            "first_part": first_part,
            "part_feature": part_feature,
            "part_bits": part_bits,
            "need": need,
            "alive": alive,
            "ends": ends,
            "base": np.full(rows, self.base, float),
        }
        special = Specialised(kind=TREES, required=required - 4 * slack * size, **fields)
        everything = np.arange(options.counts.max()) < options.counts[:, None]
        tree_ceiling(special, 0, everything, max_changes)
        return special


def join_trees(trees: list[dict[str, Any]], **settings: Any) -> Ensemble:
    """An ensemble of trees given as arrays ``column, left, right, threshold, value``.

    ``flags`` (0) and ``sets``, the categories of each node that go left as booleans (None for a
    number), are optional. The root is the first node.
    """
    sizes = np.array([len(tree["column"]) for tree in trees], np.int64)
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)

    def joined(name: str, kind: Any, shift: bool = False) -> Any:
        return np.concatenate(
            [
                np.asarray(t[name], kind) + (r if shift else 0)
                for t, r in zip(trees, roots, strict=True)
            ]
        ).astype(kind)

    n_words = np.zeros(int(sizes.sum()), np.int64)
    first_word = np.full(int(sizes.sum()), -1, np.int64)
    words: list[int] = []
    for tree, root in zip(trees, roots, strict=True):
        tree.setdefault("flags", np.zeros(len(tree["column"]), np.int64))
        for node, members in enumerate(tree.get("sets") or ()):
            if members is not None:
                padded = np.zeros(-(-len(members) // 32) * 32, bool)
                padded[: len(members)] = members
                mine = (padded.reshape(-1, 32) @ (1 << np.arange(32, dtype=np.int64))).tolist()
                first_word[root + node], n_words[root + node] = len(words), len(mine)
                words += mine
    nodes = Nodes(
        roots=roots,
        column=joined("column", np.int64),
        left=joined("left", np.int64, shift=True),
        right=joined("right", np.int64, shift=True),
        threshold=joined("threshold", float),
        value=joined("value", float),
        flags=joined("flags", np.int64),
        first_word=first_word,
        n_words=n_words,
        words=np.array([*words, 0], np.int64),
    )
    return Ensemble(nodes, **settings)


@numba.njit(cache=True)
def _goes_left(
    x: float, threshold: float, flags: int, first_word: int, n_words: int, words: Integers
) -> bool:
    # A node's own numbers: to hand on all the arrays takes far longer than the comparison.
    if first_word >= 0:
        if np.isnan(x) or x < 0:
            return bool(flags & MISSING_LEFT)
        if x >= 32 * n_words:
            return bool(flags & OUTSIDE_LEFT)
        category = int(x)
        return bool((words[first_word + category // 32] >> (category % 32)) & 1)
    if np.isnan(x) and flags & MISSING_ZERO:
        x = 0.0
    if np.isnan(x) or (flags & ZERO_MISSING and -NEAR_ZERO <= x <= NEAR_ZERO):
        return bool(flags & MISSING_LEFT)
    if flags & STRICT:
        return bool(x < threshold)
    return bool(x <= threshold)


@numba.njit(cache=True)
def _sums(nodes: Nodes, matrix: Matrix) -> Matrix:
    column, left, right, threshold = nodes.column, nodes.left, nodes.right, nodes.threshold
    flags, first_word, n_words, words = nodes.flags, nodes.first_word, nodes.n_words, nodes.words
    sums = np.zeros(len(matrix))
    # Tree by tree: one fits the processor's cache.
    for root in nodes.roots:
        for row in range(len(matrix)):
            node = root
            while column[node] >= 0:
                goes_left = _goes_left(
                    matrix[row, column[node]], threshold[node], flags[node],
                    first_word[node], n_words[node], words,
                )  # fmt: skip
                node = left[node] if goes_left else right[node]
            sums[row] += nodes.value[node]
    return sums


@numba.njit(cache=True)
def reachable_leaves(
    nodes: Nodes,
    encoded: Matrix,
    first_row: Integers,
    counts: Integers,
    owner: Integers,
    max_changes: int,
    most: int,
) -> tuple[Matrix, Bits, Bits, Integers]:
    """The leaves that assignments with at most ``max_changes`` changes reach, best first.

    ``encoded`` ``(R, D)`` holds the encoded start with each single option, those of feature f in
    the ``counts[f]`` rows from ``first_row[f]`` on, option 0 first; ``owner`` ``(D,)`` is the
    feature an input belongs to, -1 for a constant. Returns values ``(L,)``, allowed options as bits
    ``(L, F, W)``, needed features as bits ``(L,)`` and the first leaf of each tree ``(T + 1,)``;
    no leaf at all when there are more than ``most``.
    """
    column, left, right, threshold = nodes.column, nodes.left, nodes.right, nodes.threshold
    flags, first_word, n_words, words = nodes.flags, nodes.first_word, nodes.n_words, nodes.words
    n_features = len(counts)
    width = (counts.max() + 63) // 64
    one = np.uint64(1)
    full = np.zeros((n_features, width), np.uint64)
    for feature in range(n_features):
        for option in range(counts[feature]):
            full[feature, option // 64] |= one << np.uint64(option % 64)
    size = 1024
    values = np.empty(size)
    allowed = np.empty((size, n_features, width), np.uint64)
    need = np.empty(size, np.uint64)
    starts = np.zeros(len(nodes.roots) + 1, np.int64)
    depth = 256
    waiting = np.empty(depth, np.int64)
    masks = np.empty((depth, n_features, width), np.uint64)
    found = 0
    for tree in range(len(nodes.roots)):
        top = 1
        waiting[0] = nodes.roots[tree]
        masks[0] = full
        while top > 0:
            top -= 1
            node = waiting[top]
            mask = masks[top].copy()
            while column[node] >= 0:
                feature = owner[column[node]]
                if feature < 0:
                    goes_left = _goes_left(
                        encoded[0, column[node]], threshold[node], flags[node],
                        first_word[node], n_words[node], words,
                    )  # fmt: skip
                    node = left[node] if goes_left else right[node]
                    continue
                any_left = False
                any_right = False
                if top + 1 >= depth:
                    return values[:0], allowed[:0], need[:0], starts
                masks[top] = mask
                for option in range(counts[feature]):
                    word, bit = option // 64, one << np.uint64(option % 64)
                    if not mask[feature, word] & bit:
                        continue
                    x = encoded[first_row[feature] + option, column[node]]
                    goes_left = _goes_left(
                        x, threshold[node], flags[node], first_word[node], n_words[node], words
                    )
                    if goes_left:
                        any_left = True
                        masks[top, feature, word] &= ~bit
                    else:
                        any_right = True
                        mask[feature, word] &= ~bit
                # The right side waits with its mask; the left goes on.
                if any_right and any_left:
                    if _n_needed(masks[top]) <= max_changes:
                        waiting[top] = right[node]
                        top += 1
                    node = left[node]
                elif any_left:
                    node = left[node]
                else:
                    mask[:] = masks[top]
                    node = right[node]
                if _n_needed(mask) > max_changes:
                    node = -1
                    break
            if node < 0:
                continue
            if found == size:
                if size >= most:
                    return values[:0], allowed[:0], need[:0], starts
                size *= 2
                values = np.concatenate((values, np.empty(found)))
                need = np.concatenate((need, np.empty(found, np.uint64)))
                allowed = np.concatenate((allowed, np.empty((found, n_features, width), np.uint64)))
            values[found] = nodes.value[node]
            allowed[found] = mask
            bits = np.uint64(0)
            for feature in range(n_features):
                if not mask[feature, 0] & one:
                    bits |= one << np.uint64(feature)
            need[found] = bits
            found += 1
        first = starts[tree]
        order = np.argsort(-values[first:found])
        values[first:found] = values[first:found][order]
        allowed[first:found] = allowed[first:found][order]
        need[first:found] = need[first:found][order]
        starts[tree + 1] = found
    return values[:found].copy(), allowed[:found].copy(), need[:found].copy(), starts


@numba.njit(cache=True)
def constrained(allowed: Bits, counts: Integers) -> tuple[Integers, NDArray[np.int32], Bits]:
    """The features whose options a leaf does not all allow, one after the other.

    The first part of each leaf ``(L + 1,)``, the feature of each part and the options it allows.
    """
    n_leaves, n_features, width = allowed.shape
    first = np.zeros(n_leaves + 1, np.int64)
    features = np.empty(n_leaves * n_features, np.int32)
    bits = np.empty((n_leaves * n_features, width), np.uint64)
    found = 0
    for leaf in range(n_leaves):
        for feature in range(n_features):
            count = 0
            for word in range(width):
                left = allowed[leaf, feature, word]
                while left:
                    left &= left - np.uint64(1)
                    count += 1
            if count < counts[feature]:
                features[found] = feature
                bits[found] = allowed[leaf, feature]
                found += 1
        first[leaf + 1] = found
    return first, features[:found].copy(), bits[:found].copy()


@numba.njit(cache=True)
def _n_needed(mask: Any) -> int:
    """How many features cannot stay as they are."""
    count = 0
    for feature in range(len(mask)):
        if not mask[feature, 0] & np.uint64(1):
            count += 1
    return count

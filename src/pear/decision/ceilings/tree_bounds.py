"""How much can each option still raise the margin of an ensemble, at most?

Every tree shares the rise of a leaf over the leaf of "no further change" between the features that
the leaf needs, so that the shares of any completion add up to at least its rise. Leaves that need
few features come first: what they already grant need not be granted again. An option after which
a tree cannot get back to where it was is charged for it; where several may be charged for one
fall, each bears its part.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from pear.decision.ceilings.margins import Matrix, Specialised, largest
from pear.decision.ceilings.relaxation import GUARD

Flags = NDArray[np.bool_]


@numba.njit(cache=True)
def tree_gains(
    special: Specialised,
    depth: int,
    target: int,
    open_options: Flags,
    costs: Matrix,
    room: float,
    remaining: int,
) -> float:
    """Fill ``potential``, ``here`` and the leaves still reachable in row ``target``.

    Read is the row of ``depth``, at depth 0 the last, which no search changes. Returns the sum of
    each tree's best leaf: another upper bound of the margin.
    """
    n_features, n_options = special.gains.shape
    width = special.allowed.shape[1]
    one = np.uint64(1)
    free = special.free[depth]
    gains = special.potential[target]
    gains[:] = 0.0
    # Open options of each feature, cheapest first, and as bits.
    listed = np.empty((n_features, n_options), np.int64)
    n_listed = np.zeros(n_features, np.int64)
    open_bits = np.zeros((n_features, width), np.uint64)
    movable = np.uint64(0)
    n_movable = 0
    for feature in range(n_features):
        if not free >> np.uint64(feature) & one:
            continue
        count = 0
        for option in range(1, special.counts[feature]):
            if open_options[feature, option]:
                open_bits[feature, option // 64] |= one << np.uint64(option % 64)
                place = count
                while place and costs[feature, listed[feature, place - 1]] > costs[feature, option]:
                    listed[feature, place] = listed[feature, place - 1]
                    place -= 1
                listed[feature, place] = option
                count += 1
        n_listed[feature] = count
        if count:
            movable |= one << np.uint64(feature)
            n_movable += 1
    if n_movable < remaining:
        remaining = n_movable
    refunds = _refunds(costs, listed, n_listed, remaining)
    room += refunds + GUARD * (abs(room) + refunds)
    source = depth
    if depth == 0:
        source = len(special.alive) - 1
    alive, kept_alive = special.alive[source], special.alive[target]
    ends, kept_ends = special.ends[source], special.ends[target]
    n_trees = special.n_trees[source]
    constant = special.base[source]
    here_total = best_total = 0.0
    share_of = np.zeros((n_features, n_options))
    most = 0
    start = 0
    for tree in range(n_trees):
        most = max(most, ends[tree] - start)
        start = ends[tree]
    sizes = np.zeros(most, np.int64)
    uncovered = np.zeros((n_features, width), np.uint64)
    start = kept = trees = 0
    for tree in range(n_trees):
        end = ends[tree]
        first = kept
        here = -1
        best = -np.inf
        for place in range(start, end):
            leaf = alive[place]
            needed = special.need[leaf] & free
            size = 0
            if needed:
                if needed & ~movable:
                    continue
                size = _n_bits(needed)
                if size > remaining:
                    continue
                spent = 0.0
                for part in range(special.first_part[leaf], special.first_part[leaf + 1]):
                    feature = special.part_feature[part]
                    if needed >> np.uint64(feature) & one:
                        cost = np.inf
                        for number in range(n_listed[feature]):
                            option = listed[feature, number]
                            word = special.part_bits[part, option // 64]
                            if word >> np.uint64(option % 64) & one:
                                cost = costs[feature, option]
                                break
                        spent += cost
                if not spent < room:
                    continue
            else:
                here = kept
            kept_alive[kept] = leaf
            sizes[kept - first] = size
            best = max(best, special.values[leaf])
            kept += 1
        start = end
        value = special.values[kept_alive[here]]
        if kept - first == 1:
            constant += value
            kept = first
            continue
        here_total += value
        best_total += best
        kept_ends[trees] = kept
        trees += 1
        touched = np.uint64(0)
        for size in range(1, remaining + 1):
            for place in range(first, here):
                if sizes[place - first] != size:
                    continue
                leaf = kept_alive[place]
                rest = special.values[leaf] - value
                needed = special.need[leaf] & free
                for part in range(special.first_part[leaf], special.first_part[leaf + 1]):
                    feature = special.part_feature[part]
                    if needed >> np.uint64(feature) & one:
                        rest -= _least(special, part, feature, listed, n_listed, share_of)
                if rest <= 0.0:
                    continue
                rest /= size
                for part in range(special.first_part[leaf], special.first_part[leaf + 1]):
                    feature = special.part_feature[part]
                    if needed >> np.uint64(feature) & one:
                        touched |= one << np.uint64(feature)
                        level = rest + _least(special, part, feature, listed, n_listed, share_of)
                        for number in range(n_listed[feature]):
                            option = listed[feature, number]
                            word = special.part_bits[part, option // 64]
                            if (
                                word >> np.uint64(option % 64) & one
                                and share_of[feature, option] < level
                            ):
                                gains[feature, option] += level - share_of[feature, option]
                                share_of[feature, option] = level
        for feature in range(n_features):
            if touched >> np.uint64(feature) & one:
                share_of[feature] = 0.0
        _charge(
            special, gains, free, open_bits, uncovered, sizes, first, here, kept, value, kept_alive,
            remaining, listed, n_listed,
        )  # fmt: skip
    special.n_trees[target] = trees
    special.base[target] = constant
    special.here[target] = special.level[target] = constant + here_total
    return float(constant + best_total)


@numba.njit(cache=True)
def _refunds(costs: Matrix, listed: Any, n_listed: Any, remaining: int) -> float:
    """The most that changes of negative cost can give back."""
    refunds = np.zeros(len(listed))
    for feature in range(len(listed)):
        if n_listed[feature]:
            refunds[feature] = max(0.0, -costs[feature, listed[feature, 0]])
    refunds.sort()
    total = 0.0
    for place in range(remaining):
        total += refunds[len(refunds) - 1 - place]
    return total


@numba.njit(cache=True)
def _least(
    special: Specialised, part: int, feature: int, listed: Any, n_listed: Any, share_of: Matrix
) -> float:
    """The least share among the open options of one part of a leaf."""
    least = np.inf
    for number in range(n_listed[feature]):
        option = listed[feature, number]
        word = special.part_bits[part, option // 64]
        if word >> np.uint64(option % 64) & np.uint64(1):
            least = min(least, share_of[feature, option])
    return least


@numba.njit(cache=True)
def _charge(
    special: Specialised,
    gains: Matrix,
    free: Any,
    open_bits: Any,
    uncovered: Any,
    sizes: Any,
    first: int,
    here: int,
    end: int,
    value: float,
    alive: Any,
    remaining: int,
    listed: Any,
    n_listed: Any,
) -> None:
    """Lower the gains of options after which no leaf as good as the one ``here`` is reachable."""
    one = np.uint64(1)
    width = open_bits.shape[1]
    mine = alive[here]
    bearers = 0
    some = False
    for part in range(special.first_part[mine], special.first_part[mine + 1]):
        feature = special.part_feature[part]
        if not free >> np.uint64(feature) & one:
            continue
        any_open = False
        for word in range(width):
            left = open_bits[feature, word] & ~special.part_bits[part, word]
            uncovered[feature, word] = left
            if left:
                any_open = True
        if any_open:
            bearers += 1
            some = True
    if not some:
        return
    for place in range(first, here):
        leaf = alive[place]
        need = special.need[leaf] & free
        for part in range(special.first_part[mine], special.first_part[mine + 1]):
            feature = special.part_feature[part]
            if not free >> np.uint64(feature) & one:
                continue
            own = need >> np.uint64(feature) & one
            if sizes[place - first] + (0 if own else 1) <= remaining:
                for word in range(width):
                    uncovered[feature, word] &= ~special.allowed[feature, word, leaf]
    bearers = 0
    for part in range(special.first_part[mine], special.first_part[mine + 1]):
        feature = special.part_feature[part]
        if free >> np.uint64(feature) & one:
            for word in range(width):
                if uncovered[feature, word]:
                    bearers += 1
                    break
    if not bearers:
        return
    bearers = min(bearers, remaining)
    for part in range(special.first_part[mine], special.first_part[mine + 1]):
        feature = special.part_feature[part]
        if not free >> np.uint64(feature) & one:
            continue
        for word in range(width):
            left = uncovered[feature, word]
            if not left:
                continue
            for place in range(here + 1, end):
                leaf = alive[place]
                own = special.need[leaf] >> np.uint64(feature) & one
                if sizes[place - first] + (0 if own else 1) > remaining:
                    continue
                found = left & special.allowed[feature, word, leaf]
                if found:
                    fall = (special.values[leaf] - value) / bearers
                    for number in range(n_listed[feature]):
                        option = listed[feature, number]
                        if option // 64 == word and found >> np.uint64(option % 64) & one:
                            gains[feature, option] += fall
                    left &= ~found
                    if not left:
                        break
            if left:
                # No leaf is left for it: nothing within these limits takes it.
                for number in range(n_listed[feature]):
                    option = listed[feature, number]
                    if option // 64 == word and left >> np.uint64(option % 64) & one:
                        gains[feature, option] = -np.inf


@numba.njit(cache=True)
def _n_bits(bits: Any) -> int:
    count = 0
    while bits:
        bits &= bits - np.uint64(1)
        count += 1
    return count


@numba.njit(cache=True)
def fix_trees(special: Specialised, depth: int, feature: int, option: int) -> None:
    """Keep the leaves that allow the option; a tree with one leaf left becomes a constant."""
    word, bit = option // 64, np.uint64(option % 64)
    constant = special.base[depth]
    kept = trees = start = 0
    for tree in range(special.n_trees[depth]):
        end = special.ends[depth, tree]
        first = kept
        for place in range(start, end):
            leaf = special.alive[depth, place]
            if special.allowed[feature, word, leaf] >> bit & np.uint64(1):
                special.alive[depth + 1, kept] = leaf
                kept += 1
        start = end
        if kept - first == 1:
            constant += special.values[special.alive[depth + 1, first]]
            kept = first
        else:
            special.ends[depth + 1, trees] = kept
            trees += 1
    special.base[depth + 1] = constant
    special.n_trees[depth + 1] = trees


@numba.njit(cache=True)
def tree_ceiling(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> float:
    """The smaller of the two bounds this chapter opens with."""
    scratch = len(special.alive) - 2
    nothing = np.zeros(open_options.shape)
    best = tree_gains(special, depth, scratch, open_options, nothing, np.inf, remaining)
    gains, free = special.potential[scratch], special.free[depth]
    for feature in range(len(gains)):
        special.best[feature] = gains[feature].max()
    return float(min(best, special.here[scratch] + largest(special.best, free, remaining)))

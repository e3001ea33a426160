"""How is a grid of arguments written: a list, a range with a step, or so many even values?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from pear.errors import InvalidProblem
from pear.problem.checks import is_finite, is_whole, plain, shown

MOST_VALUES = 10_000
"""An action with more arguments than this is refused: no search could look at them all."""

GRID_KEYS = ("from", "to", "step", "count")


def expand_grid(grid: Any) -> tuple[Any, ...]:
    """The values of a grid, in order; both ends of a range are included.

    Steps are added in decimal, so that a step of 0.1 gives 0.3 and not 0.30000000000000004.

    >>> expand_grid({"from": 100, "to": 500, "step": 200})
    (100, 300, 500)
    >>> expand_grid({"from": 0, "to": 1, "count": 5})
    (0.0, 0.25, 0.5, 0.75, 1.0)
    >>> expand_grid(["yes", "no"])
    ('yes', 'no')
    """
    if isinstance(grid, (list, tuple)):
        return tuple(grid)
    if not isinstance(grid, Mapping):
        raise InvalidProblem(
            f"must be a list, {{from, to, step}} or {{from, to, count}} (got {shown(grid)})"
        )
    unknown = [key for key in grid if key not in GRID_KEYS]
    if unknown:
        raise InvalidProblem(
            f"has the unknown key '{unknown[0]}' (got {grid[unknown[0]]!r}); "
            "a range has from, to and step, or from, to and count"
        )
    if "from" not in grid or "to" not in grid or ("step" in grid) == ("count" in grid):
        raise InvalidProblem(
            f"must have from, to and one of step and count (got {', '.join(map(str, grid))})"
        )
    for key, number in grid.items():
        if not is_finite(number):
            raise InvalidProblem(f"needs a number for '{key}' (got {shown(number)})")
    if "count" in grid:
        return _evenly(float(grid["from"]), float(grid["to"]), grid["count"])
    return _stepped(plain(grid["from"]), plain(grid["to"]), plain(grid["step"]))


def _stepped(first: Any, last: Any, step: Any) -> tuple[Any, ...]:
    if step == 0 or (last - first) * step < 0:
        raise InvalidProblem(
            f"needs a 'step' that leads from {first} to {last} (got {step}); "
            "change its sign or swap the ends"
        )
    start, stride = Decimal(repr(first)), Decimal(repr(step))
    n = int((Decimal(repr(last)) - start) / stride) + 1
    if n > MOST_VALUES:
        raise InvalidProblem(
            f"has {n:,} values, more than {MOST_VALUES:,}; use a larger 'step' (got {step})"
        )
    number = int if is_whole(first) and is_whole(step) else float
    return tuple(number(start + i * stride) for i in range(n))


def _evenly(first: float, last: float, count: Any) -> tuple[float, ...]:
    if not is_whole(count) or not 2 <= count <= MOST_VALUES:
        raise InvalidProblem(
            f"needs a whole 'count' from 2 to {MOST_VALUES:,} (got {count!r}); "
            "write a single value as a list"
        )
    if first == last:
        raise InvalidProblem(f"needs two different ends (got {first} twice)")
    return tuple(np.linspace(first, last, count).tolist())


def shorten_grid(values: Sequence[Any]) -> Any:
    """The shortest way to write values that :func:`expand_grid` reads back exactly.

    >>> shorten_grid((100, 200, 300, 400))
    {'from': 100, 'to': 400, 'step': 100}
    >>> shorten_grid((1, 5, 7, 100))
    [1, 5, 7, 100]
    """
    plain_list = [plain(value) for value in values]
    if len(plain_list) < 4 or not all(is_finite(value) for value in plain_list):
        return plain_list
    first, second, last = plain_list[0], plain_list[1], plain_list[-1]
    step = Decimal(repr(second)) - Decimal(repr(first))
    whole = is_whole(first) and is_whole(second)
    written = int(step) if whole else float(step)
    for grid in (
        {"from": first, "to": last, "step": written},
        {"from": first, "to": last, "count": len(plain_list)},
    ):
        try:
            read = expand_grid(grid)
        except InvalidProblem:
            continue
        if [(type(v), v) for v in read] == [(type(v), v) for v in plain_list]:
            return grid
    return plain_list

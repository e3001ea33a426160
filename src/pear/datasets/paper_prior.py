"""Which six kinds of people did the paper's simulated users come from?

Means of the six components of the paper's prior, one number per weight: the features in
order, then the edges in order. Covariances are the identity, components equally likely.
These are facts of the published experiments (Personalised Algorithmic Recourse with
Preference Elicitation, the set-up behind its tables), carried over as data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidSetting
from pear.problem import Archetype

# fmt: off
MEANS: dict[str, tuple[tuple[int, ...], ...]] = {
    "adult": (
        (74, 26, 93, -7, 66, -25, 65, 27, 1, 92, -10, 97, -13, -17, 26, -1,
         -56, 69, 90, -32, 82, 87, -56, -32, -36, -47, 78, 89, 39, -54, 85, 5),
        (14, 55, 45, -50, -58, -43, 7, 29, 52, -13, 14, 31, -56, 82, 87, -38,
         -5, 36, 57, 30, 74, 99, 73, 20, 10, 97, 61, 66, 57, -25, 99, 33),
        (52, 47, 86, -40, 52, -56, -37, -43, 47, 23, 34, 21, 59, 89, 22, -18,
         61, -9, 60, -33, 32, -56, -27, 67, 90, 53, -28, 66, 43, 34, 10, 49),
        (-11, 69, 64, 97, 52, -54, 22, 85, 88, 64, 36, 34, 7, 63, -11, 7,
         -24, 6, -5, -1, -27, 18, 60, -29, 7, 56, -59, -15, 81, 57, 84, -40),
        (34, -58, 69, 93, 95, 1, 33, 84, -47, -33, 17, 75, -23, -40, -50, -29,
         -35, 95, 55, 91, 5, -16, -31, 68, 60, 41, 76, -30, 79, -37, 11, 1),
        (45, 15, 20, 60, -57, -24, 67, 76, -32, 39, 64, 22, 40, 33, 60, -44,
         13, -58, -35, 7, -33, 96, -34, -45, 29, -13, 69, 12, 68, 99, -24, 80),
    ),
    "givemecredit": (
        (76, 52, 93, -3, 52, 48, 37, -49, -43, 57, 20, 73, -17, -49, 86,
         -4, 9, 30, 2, 86, 18, 84, 93, -6, 29, -34, 85, 99, 1),
        (36, 27, 83, -51, 39, 88, 86, 77, -36, 47, 45, -32, 80, 52, -15,
         15, -70, 9, 56, -6, 47, 88, -68, 40, -65, -60, 98, -65, -31),
        (12, 7, -11, 76, 47, -45, 87, 47, 71, 46, -44, -19, -42, 58, -21,
         89, 88, -54, 9, 79, 10, -2, 16, -65, 1, 87, -3, 98, 51),
        (76, 6, -66, 56, 88, 68, 34, -14, 69, -13, 99, -47, 58, 8, -57,
         80, -8, 97, 97, -38, 9, -22, 25, -27, -54, 52, -34, 85, 69),
        (82, 23, -68, 65, 41, 64, 95, -35, 42, 2, 87, 7, 95, 30, 40,
         68, 22, 50, -45, -38, 64, -59, 85, 96, -39, 33, -58, -9, -16),
        (-28, -29, 94, -56, 57, -16, 70, 22, 81, 81, 59, 82, 50, 78, 98,
         41, 14, -30, 73, 17, -32, -5, 43, 48, 43, 71, 22, 92, 37),
    ),
}
# fmt: on


def paper_prior_means(name: str) -> NDArray[np.float64]:
    """Means of the six components for ``adult`` or ``givemecredit``, shape ``(6, p)``.

    >>> paper_prior_means("adult").shape, paper_prior_means("givemecredit").shape
    ((6, 32), (6, 29))
    """
    if name not in MEANS:
        raise InvalidSetting(f"'name' must be one of {', '.join(MEANS)} (got {name!r})")
    return np.array(MEANS[name], float)


def paper_archetypes(name: str) -> tuple[Archetype, ...]:
    """The six components as archetypes of a problem."""
    means = paper_prior_means(name)
    return tuple(
        Archetype(f"kind {number} of the paper", tuple(mean), (1.0,) * len(mean))
        for number, mean in enumerate(means.tolist(), 1)
    )

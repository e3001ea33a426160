"""Names for the arrays that every part of the package hands around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Numbers: states, weights, costs, scores. Docstrings give the shape."""

Indices = NDArray[np.intp]
"""Places in another array: moves, columns, rows."""

Flags = NDArray[np.bool_]
"""Which of them."""

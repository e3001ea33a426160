"""How many threads may the linear algebra of a worker use, and how far may it run ahead?"""

from __future__ import annotations

import os
import sys

from threadpoolctl import threadpool_limits

IN_FLIGHT_PER_WORKER = 2
"""One task at work and one waiting, so that a slow reader of results idles no worker."""

AHEAD_PER_WORKER = 16
"""How far, in tasks, an ordered run may go beyond the oldest one still at work."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def hold_to_one_thread() -> None:
    """Hold the linear algebra of this process to one thread, loaded now or later."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"
    threadpool_limits(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)

"""How do we run many tasks at once, here or on a cluster?"""

from pear.parallel.tasks import core_count, in_order, run_tasks

__all__ = ["core_count", "in_order", "run_tasks"]

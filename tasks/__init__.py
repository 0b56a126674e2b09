"""What a trial is asked, and the networks that are asked it: the table of contents.

- stream: the counter-based random stream
- arithmetic: the arithmetic task and its simple variant
- threshold: when a trial has solved it
- networks: the networks that are trained on it
"""

from collections.abc import Callable

from tasks.arithmetic import OPERATIONS, ArithmeticTask, arithmetic_task, simple_task
from tasks.networks import MODELS, Model, Network, largest_init_variance

TASKS: dict[str, Callable[..., ArithmeticTask]] = {
    "arithmetic": arithmetic_task,
    "simple": simple_task,
}
"""The tasks by the names that study files use."""

__all__ = [
    "MODELS",
    "OPERATIONS",
    "TASKS",
    "ArithmeticTask",
    "Model",
    "Network",
    "arithmetic_task",
    "largest_init_variance",
    "simple_task",
]

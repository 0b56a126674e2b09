"""What a trial must learn, and the networks that learn it.

- stream: the counter-based random stream
- arithmetic: the arithmetic task and its simple variant
- threshold: when a trial has solved it
- models: what is trained on it, by name; networks: the same as torch modules

All but the networks and the stream does without torch.
"""

from collections.abc import Callable

from tasks.arithmetic import OPERATIONS, ArithmeticTask, arithmetic_task, simple_task
from tasks.models import MODELS, Model

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
    "arithmetic_task",
    "simple_task",
]

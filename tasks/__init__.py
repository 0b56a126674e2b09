"""What a trial must compute, and the networks that compute it: the table of contents.

- task: what a task of one's own is
- families: the family of a cell
- arithmetic: the arithmetic task and its variants; arithmetic_family: their family; arithmetic_hyperparameters,
  arithmetic_checks: what it declares and checks; arithmetic_cell: its cells; arithmetic_canonical: from values to cells
- threshold: when a trial has solved it; module_threshold: the same with one layer
- models: the models trained on it, by name; networks: the same as torch modules

Only the networks and one's own tasks need torch. seeded, declarations, data, stream, trial_stream and device have the
names of `study.interface` and `study.stream` for code that was written when they were here.
"""

from collections.abc import Callable

from tasks.arithmetic import OPERATIONS, ArithmeticTask, simple_task, single_task
from tasks.models import MODELS, SINGLE_MODULE, Model, model_of

TASKS: dict[str, Callable[..., ArithmeticTask]] = {
    "arithmetic": ArithmeticTask,
    "simple": simple_task,
    SINGLE_MODULE: single_task,
}
"""The tasks by the names that study files use."""

__all__ = [
    "MODELS",
    "OPERATIONS",
    "SINGLE_MODULE",
    "TASKS",
    "ArithmeticTask",
    "Model",
    "model_of",
    "simple_task",
    "single_task",
]

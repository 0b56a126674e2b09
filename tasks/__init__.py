"""What a trial must compute, and the networks that compute it: the table of contents.

- declarations: what tasks, models and training functions declare of themselves
- seeded: the mark of objects that a study file may name
- error_text: text of errors that a user's code raised; stop_signals: stops by a signal, told apart from these
- stream: the counter-based random stream; trial_stream: what tasks and models draw from it
- task: what a task of one's own is
- values: types of the values that a study file gives
- family: what a study must know of its trials; families: the family of a cell
- arithmetic: the arithmetic task and its variants; arithmetic_family: their family; arithmetic_hyperparameters,
  arithmetic_checks: what it declares and checks; arithmetic_cell: its cells; arithmetic_canonical: from values to cells
- threshold: when a trial has solved it; module_threshold: the same with one layer
- models: the models trained on it, by name; networks: the same as torch modules

Only the networks, the streams and one's own tasks need torch.
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

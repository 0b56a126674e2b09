"""What a trial must compute, and the networks that compute it: the table of contents.

- declarations: what tasks, models and training functions declare of themselves
- seeded: the mark of objects that a study file may name
- stream: the counter-based random stream; trial_stream: what tasks and models draw from it
- task: what a task of one's own is
- values: types of the values that a study file gives
- family: what a study must know of its trials; families: the family of a cell
- arithmetic: the arithmetic task and its variants; arithmetic_family: their family; arithmetic_cell: its cells
- threshold: when a trial has solved it; module_threshold: the same with one layer
- models: the models trained on it, by name; networks: the same as torch modules

Only the networks, the streams and one's own tasks need torch.
"""

from collections.abc import Callable

from tasks.arithmetic import OPERATIONS, ArithmeticTask, simple_task, single_task
from tasks.models import MODELS, Model, single_layer

SINGLE_MODULE = "single-module"
"""The task of one layer."""

TASKS: dict[str, Callable[..., ArithmeticTask]] = {
    "arithmetic": ArithmeticTask,
    "simple": simple_task,
    SINGLE_MODULE: single_task,
}
"""The tasks by the names that study files use."""


def model_of(task: str, name: str, input_size: int = 2) -> Model:
    """Return the model that is trained on a task of the arithmetic family.

    Args:
        task: name in `TASKS`.
        name: key in `MODELS`.
        input_size: numbers in one input row.

    Example:
        >>> model_of("arithmetic", "NMU").layers, model_of("single-module", "NMU").layers
        ({'first': 'NAU', 'second': 'NMU'}, {'first': 'NMU'})
    """
    return single_layer(name, input_size) if task == SINGLE_MODULE else MODELS[name]


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

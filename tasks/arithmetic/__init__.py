"""The arithmetic task, its variants, and the models of neural arithmetic units.

- task: the task; distributions: distributions of inputs; threshold, module_threshold: success thresholds
- models: models by name; networks: the models as torch modules; module_training: published training of single layers
- family: the family's interface to a study; hyperparameters, checks, cautions, canonical, cell: its parts
- symbols: names in reports
- engine: training engines; script: trials as plain Python files; published: published results; presets: study files
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.arithmetic.models import MODELS, SINGLE_MODULE, Model, model_of
    from tasks.arithmetic.task import OPERATIONS, TASKS, ArithmeticTask, simple_task, single_task

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

_OF_MODELS = ("MODELS", "SINGLE_MODULE", "Model", "model_of")


def __getattr__(name: str) -> Any:
    # Imported late: reports need only the names in `symbols`, and the presets need none of these.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'models' if name in _OF_MODELS else 'task'}"), name)

"""The arithmetic task and its variants, and the models of neural arithmetic units.

- task: the task; distributions: of its inputs; threshold, module_threshold: when a trial has solved it
- models: the models by name; networks: the same as torch modules; module_training: how one layer is trained
- family: what a study knows of them; hyperparameters, checks, cautions, canonical, cell: its parts
- symbols: how reports name them
- engine: what trains them; script: trials as plain Python files; published: printed results; presets: study files
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
    # Imported late: reports need the names in `symbols` alone, and the presets nothing of this.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'models' if name in _OF_MODELS else 'task'}"), name)

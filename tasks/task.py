"""The names of `study.interface.task`, for code that was written, or stored, when they were here."""

from study.interface.task import Batch, Task

__all__ = ["Batch", "Task"]

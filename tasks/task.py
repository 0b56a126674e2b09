"""Names of `study.interface.task`, for older or stored code that imports them from here."""

from study.interface.task import Batch, Task

__all__ = ["Batch", "Task"]

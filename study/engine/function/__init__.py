"""Training functions: one trial is one call, in this process or in one of its own.

- training: a call in this process, pulled a slice of time at a time
- isolated: the same in a process of its own
- engine: the engine that calls a function
"""

from study.engine.function.engine import FunctionEngine
from study.engine.function.isolated import IsolatedTraining
from study.engine.function.training import FunctionTraining

__all__ = ["FunctionEngine", "FunctionTraining", "IsolatedTraining"]

"""Training functions: one trial is one call, in this process or in its own.

- training: a call in this process, in time slices
- isolated: a call in its own process
- engine: the engine that calls a function
"""

from study.engine.function.engine import FunctionEngine
from study.engine.function.isolated import IsolatedTraining
from study.engine.function.training import FunctionTraining

__all__ = ["FunctionEngine", "FunctionTraining", "IsolatedTraining"]

"""Training functions: one trial is one call, in this process or in one of its own.

- trial: what a call is given, and the record of what comes of it
- base: what both ways to run it share
- training: a call in this process, pulled a slice of time at a time
- engine: the engine that calls a function; pack: a pack of its trials
- isolated: the same in a process of its own; guard: that process's program
"""

from study.engine.function.engine import FunctionEngine
from study.engine.function.isolated import IsolatedTraining, Limits
from study.engine.function.training import FunctionTraining
from study.engine.function.trial import FunctionProgress, FunctionRecord, FunctionTrial

__all__ = [
    "FunctionEngine",
    "FunctionProgress",
    "FunctionRecord",
    "FunctionTraining",
    "FunctionTrial",
    "IsolatedTraining",
    "Limits",
]

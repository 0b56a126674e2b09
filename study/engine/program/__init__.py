"""Programs: one trial is one process, whose results are read from its files or its output.

- engine: the engine that runs a program
- training: a trial of a program, in time slices
- command: its words and environment
- process: its process, which ends with this one
- results: readers of its results
"""

from study.engine.program.command import command_of
from study.engine.program.engine import ProgramEngine
from study.engine.program.training import ProgramTraining

__all__ = ["ProgramEngine", "ProgramTraining", "command_of"]

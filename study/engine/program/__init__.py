"""Programs: one trial is one process, whose results are read from its files or its output.

- engine: the engine that runs a program
- training: a trial of it, pulled a slice of time at a time
- command: its words and its environment
- process: its process, which ends with this one
- results: what reads its results
"""

from study.engine.program.command import command_of
from study.engine.program.engine import ProgramEngine
from study.engine.program.training import ProgramTraining

__all__ = ["ProgramEngine", "ProgramTraining", "command_of"]

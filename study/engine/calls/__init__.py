"""Trials that run user code, one after another: each calls a function or runs a program.

- engine: the base class of the engines for functions and programs
- trial: the arguments of a call, and the record of its results
- call: a call that advances in time slices; pack: a pack of calls
- limits: resource limits of a trial in its own process
- guarded: a process that ends with this one; guard: the program that ends it
- fresh: a guarded process in which functions are called
- output: a trial's log; pump: the program that writes logs
- helper: a process controlled over a socket; pump and the guard of programs are two
"""

from study.engine.calls.call import TrialCall
from study.engine.calls.engine import CallEngine
from study.engine.calls.limits import Limits
from study.engine.calls.output import TrialOutput
from study.engine.calls.trial import CallProgress, CallRecord, CallTrial

__all__ = ["CallEngine", "CallProgress", "CallRecord", "CallTrial", "Limits", "TrialCall", "TrialOutput"]

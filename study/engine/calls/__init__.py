"""Trials that are called: one after another, each a call of the user's own code; of a function, or of a program.

- engine: what the engines of functions and of programs share
- trial: what a call is given, and the record of what comes of it
- call: a call, pulled a slice of time at a time; pack: a pack of them
- limits: what a trial in a process of its own may use
- guarded: a process that ends with this one, whatever happens; guard: the program that ends it
- fresh: such a process in which functions are called
- output: the log of a trial; pump: the program that writes logs
- helper: how pump, and the guard of programs, are started
"""

from study.engine.calls.call import TrialCall
from study.engine.calls.engine import CallEngine
from study.engine.calls.limits import Limits
from study.engine.calls.output import TrialOutput
from study.engine.calls.trial import CallProgress, CallRecord, CallTrial

__all__ = ["CallEngine", "CallProgress", "CallRecord", "CallTrial", "Limits", "TrialCall", "TrialOutput"]

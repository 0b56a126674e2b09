"""A call of a training function: the table of contents.

- generators: the global generators of random numbers, seeded from a trial's seed
- state: what a function goes on from, as arrays without pickle
- call: the call, step by step, with its metrics checked
- process_state: state of the process, put back after a trial; left_threads: threads that a trial has left
- child: the call in a process of its own; messages: what that reports

They stand here and not beside the engines because a process that runs one trial must start quickly: the engines
import torch, which takes seconds.
"""

from study.interface.function.call import FunctionCall, FunctionError, Step
from study.interface.function.generators import GeneratorStates, seed_generators
from study.interface.function.state import state_arrays, state_of

__all__ = ["FunctionCall", "FunctionError", "GeneratorStates", "Step", "seed_generators", "state_arrays", "state_of"]

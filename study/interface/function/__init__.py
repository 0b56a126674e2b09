"""Calls of training functions.

- call, trial: the call, step by step, with its metrics checked; the function's argument `trial`
- classes: a class with a method `fit` as a training function
- generators: the global random generators, seeded by a trial's seed
- state: a function's saved state, as arrays without pickle
- process_state: state of the process, restored after a trial
- shared_state: values at module level that a trial can change
- left_threads: threads that a trial left running
- order: trials called in order in one process, to find state that they leave
- child, fresh, messages: calls in a separate process, and its messages

A process that runs one trial must start fast. So these modules are separate from the engines, which import torch, and
that takes seconds.
"""

from study.interface.function.call import FunctionCall, FunctionError, Step
from study.interface.function.generators import GeneratorStates, seed_generators
from study.interface.function.state import state_arrays, state_of

__all__ = ["FunctionCall", "FunctionError", "GeneratorStates", "Step", "seed_generators", "state_arrays", "state_of"]

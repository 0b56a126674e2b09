"""Global generators are seeded from a trial's seed, and continue across slices of the trial."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import torch

from study.interface.function import GeneratorStates, seed_generators


def draws() -> list[float]:
    return [random.random(), float(np.random.random()), float(torch.rand(()))]  # noqa: NPY002


def test_generators_repeat():
    """Equal seeds give equal numbers in all three generators, whatever was drawn before; other seeds give others."""
    seed_generators(3)
    first = draws()
    seed_generators(4)
    other = draws()
    seed_generators(3)
    assert draws() == first
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_seeds_equal_those_set_by_hand():
    """A seeded function draws the same numbers as a call that sets the seeds by hand."""
    seed_generators(7)
    drawn = draws()
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002
    torch.manual_seed(7)
    assert draws() == drawn


def test_draws_between_slices_change_nothing():
    """With restored states, the generators continue as if nothing else had drawn."""
    seed_generators(3)
    expected = [draws(), draws()]
    seed_generators(3)
    drawn = [draws()]
    states = GeneratorStates.now()
    draws()
    states.restore()
    assert [*drawn, draws()] == expected


_LATE = """
import sys
import random
from study.interface.function import seed_generators
seed_generators(5)
seed_generators(3)
assert "torch" not in sys.modules
random.random()
import torch
print(float(torch.rand(())), sum(type(finder).__module__.startswith("tasks") for finder in sys.meta_path))
"""


def test_torch_that_is_imported_later_is_seeded_too():
    """A call that imports torch draws the same numbers as with torch imported before, and leaves no import hook."""
    completed = subprocess.run([sys.executable, "-c", _LATE], capture_output=True, text=True, check=True)
    torch.manual_seed(3)
    assert completed.stdout.split() == [str(float(torch.rand(()))), "0"]

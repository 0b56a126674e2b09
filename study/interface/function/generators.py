"""The global generators of random numbers, of `random`, numpy and torch, seeded from a trial's seed.

A function that draws from them repeats, whatever was drawn before. torch takes seconds to import, so it is seeded if it
is there, and otherwise at the moment at which something imports it: it has no numbers to draw before.

What can't be seeded: Python's hashes of texts, which decide in which order a set of texts is gone through; they are
drawn when a process starts (PYTHONHASHSEED fixes them). Nor does this seed generators of other libraries, and it makes
no operation of a GPU deterministic.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

_LIBRARY = "torch"


def seed_generators(seed: int) -> None:
    """Seed the global generators of `random`, numpy and torch, each with the seed itself, as one would by hand.

    Args:
        seed: in [0, 2^32).

    Example:
        >>> import random
        >>> seed_generators(3)
        >>> first = random.random()
        >>> seed_generators(3)
        >>> random.random() == first
        True
    """
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (the global generator is what is seeded)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _SeedOnImport)]
    if _LIBRARY in sys.modules:
        _seed_torch(sys.modules[_LIBRARY], seed)
    else:
        sys.meta_path.insert(0, _SeedOnImport(seed))


def _seed_torch(torch: Any, seed: int) -> None:
    """Seed torch on all devices that are here.

    `torch.manual_seed` takes a millisecond where there is no GPU: it notes the stack for each kind of device.
    """
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None or accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@dataclass(frozen=True)
class GeneratorStates:
    """The states of the global generators between two slices of a trial; others may draw from them meanwhile.

    A state of CUDA's generators isn't among them.
    """

    python: Any
    numpy: Any
    torch: Any

    @classmethod
    def now(cls) -> GeneratorStates:
        """Copy the states."""
        torch = sys.modules.get(_LIBRARY)
        return cls(
            random.getstate(),
            np.random.get_state(),  # noqa: NPY002
            None if torch is None else torch.get_rng_state(),
        )

    def restore(self) -> None:
        """Make the generators go on from these states."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)  # noqa: NPY002
        if self.torch is not None:
            sys.modules[_LIBRARY].set_rng_state(self.torch)


class _SeedOnImport(MetaPathFinder):
    """Seeds torch as soon as something has imported it."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find torch where Python does, and have it seeded at its end; find nothing else."""
        if fullname != _LIBRARY:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            module.manual_seed(self._seed)

        loader.exec_module = exec_module
        return spec

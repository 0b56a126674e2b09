"""Seeding of the global random generators of `random`, numpy and torch from a trial's seed.

A function that draws from them becomes reproducible. torch takes seconds to import, so this module doesn't import it.
torch is seeded at once if it has been imported, and otherwise as soon as another module imports it.

Not covered:

- hashes of strings, which decide the order of a set of strings; Python draws them at its start (PYTHONHASHSEED)
- generators of other libraries
- nondeterministic operations of GPUs
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
    """Seed the global generators of `random`, numpy and torch (at its import, if that is later) with the same seed.

    Args:
        seed: the seed, in [0, 2^32).

    Raises:
        ValueError: if the seed is out of range.

    Example:
        >>> import random
        >>> seed_generators(3)
        >>> first = random.random()
        >>> seed_generators(3)
        >>> random.random() == first
        True
    """
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (seeding the global generator is intended)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _SeedOnImport)]
    if _LIBRARY in sys.modules:
        _seed_torch(sys.modules[_LIBRARY], seed)
    else:
        sys.meta_path.insert(0, _SeedOnImport(seed))


def _seed_torch(torch: Any, seed: int) -> None:
    """Seed torch on all devices.

    Without a GPU, `torch.manual_seed` would take a millisecond: it records the stack for each kind of device.
    """
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None or accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@dataclass(frozen=True)
class GeneratorStates:
    """States of the global generators, saved between two slices of a trial.

    They don't include the states of CUDA generators.

    Args:
        python: state of `random`.
        numpy: state of `numpy.random`.
        torch: state of torch's CPU generator; None if torch wasn't imported.
    """

    python: Any
    numpy: Any
    torch: Any

    @classmethod
    def now(cls) -> GeneratorStates:
        """Return copies of the current states."""
        torch = sys.modules.get(_LIBRARY)
        return cls(
            random.getstate(),
            np.random.get_state(),  # noqa: NPY002
            None if torch is None else torch.get_rng_state(),
        )

    def restore(self) -> None:
        """Set the global generators to these states; torch's only if torch was imported when they were saved.

        Raises:
            ValueError: if numpy's global generator has been replaced by one of another type.
        """
        random.setstate(self.python)
        np.random.set_state(self.numpy)  # noqa: NPY002
        if self.torch is not None:
            sys.modules[_LIBRARY].set_rng_state(self.torch)


class _SeedOnImport(MetaPathFinder):
    """Import hook that seeds torch once it is imported."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return torch's usual spec with a loader that seeds torch after its import; None for other modules.

        At torch's import, the hook removes itself from `sys.meta_path`.

        Raises:
            ValueError: as `importlib.util.find_spec` does.
        """
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

"""Atomic checkpoints in a trial's folder: complete whenever the process is killed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from study.interface.function.generators import GeneratorStates
from study.interface.function.state import state_arrays, state_of

_GENERATORS = "generators.npz"


def step_of(checkpoint: Path) -> int:
    """Return the step of a checkpoint: the first number in its name.

    Raises:
        IndexError: if the name has no number.
    """
    return int(re.findall(r"\d+", checkpoint.name)[0])


def latest(folder: Path, pattern: str, is_complete: Callable[[Path], bool] = Path.exists) -> Path | None:
    """Return the complete checkpoint with the greatest step; None if there is none.

    Files without a number in their name, such as ``last.ckpt`` or ``checkpoint-best``, are ignored.

    Args:
        folder: the folder of checkpoints.
        pattern: glob pattern of checkpoint names, each with its step as the first number.
        is_complete: returns True for a complete checkpoint.
    """
    return max(filter(is_complete, _numbered(folder, pattern)), key=step_of, default=None)


def _numbered(folder: Path, pattern: str) -> Iterator[Path]:
    return (path for path in folder.glob(pattern) if re.search(r"\d", path.name))


def write_checkpoint(folder: Path, step: int, write: Callable[[Path], Any]) -> None:
    """Write ``checkpoint-STEP`` with the states of the global generators atomically, then remove those of other steps.

    Any other folder ``checkpoint-*`` with a number in its name is one of another step.

    Args:
        folder: the trial's folder.
        step: the checkpoint's step.
        write: writes the checkpoint's files into a given folder.

    Raises:
        OSError: if the folder can't be written, has a checkpoint of this step, or another one can't be removed.
        Exception: any error of `write`; the other checkpoints then remain.
    """
    new = folder / f"checkpoint-{step}"
    earlier = [path for path in _numbered(folder, "checkpoint-*") if path.is_dir() and path != new]
    unfinished = folder / "unfinished-checkpoint"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    write(unfinished)
    np.savez(unfinished / _GENERATORS, allow_pickle=False, **generators())
    unfinished.rename(new)
    for path in earlier:
        shutil.rmtree(path)


def restore_generators_of(checkpoint: Path) -> None:
    """Restore the global generators from a checkpoint that `write_checkpoint` wrote.

    Raises:
        ImportError: if the checkpoint has a state of torch, and torch isn't installed.
        OSError: if the checkpoint lacks these states, or they can't be read.
    """
    with np.load(checkpoint / _GENERATORS, allow_pickle=False) as arrays:
        restore_generators(arrays)


def generators() -> dict[str, npt.NDArray[Any]]:
    """Return the states of the global generators of `random`, numpy and, if imported, torch (CPU), as arrays."""
    return state_arrays(asdict(GeneratorStates.now()))


def restore_generators(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Restore the global generators from the result of `generators`.

    Raises:
        ImportError: if the arrays have a state of torch, and torch isn't installed.
    """
    GeneratorStates(**state_of(arrays)).restore()

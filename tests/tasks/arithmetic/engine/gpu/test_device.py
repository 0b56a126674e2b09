"""The fused GPU engine on a real GPU: its bits equal those of the emulation that the other tests use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from study.errors import DeviceError
from study.records import Pack, Trial
from tasks.arithmetic import MODELS
from tasks.arithmetic.engine.gpu.arrays import GpuArrays
from tasks.arithmetic.engine.gpu.device import CudaBlocks
from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks
from tasks.arithmetic.engine.gpu.engine import GpuEngine
from tests.engines import ENGINES
from tests.study.builders import small_cell, small_pack

_needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


_TRAINED = [name for name in MODELS if GpuEngine(emulated=True).refuses(small_cell(name)) is None]


@_needs_gpu
@pytest.mark.parametrize("model", _TRAINED)
@pytest.mark.parametrize("sizes", [(4, 2, 16), (37, 3, 70)])
def test_bits_are_those_of_the_emulation(model: str, sizes: tuple[int, int, int]) -> None:
    """Weights, moments and errors after some updates have the bits of the emulation."""
    inputs, hidden, batch = sizes
    changes = {} if inputs == 4 else {"task": "arithmetic", "subset_ratio": 0.25, "overlap_ratio": 0.5}
    cell = small_cell(model, input_size=inputs, hidden_size=hidden, batch_size=batch, **changes)
    # Four trials of a seed, two of another, and one of a third: blocks of three sizes.
    cells = [cell, *(cell.replace(learning_rate=1e-3 * k) for k in (2, 3, 4))]
    trials = [Trial(member, seed) for seed, count in enumerate((4, 2, 1)) for member in cells[:count]]
    states = []
    for blocks in (CudaBlocks, EmulatedBlocks):
        arrays, indices = GpuArrays(trials, None, blocks), np.arange(len(trials))
        arrays.update(indices, 0, 25)
        arrays.update(indices[1:], 25, 5)
        evaluation = arrays.evaluate(indices)()
        states.append(arrays.state() | evaluation)
    for name, value in states[1].items():
        np.testing.assert_array_equal(states[0][name], value, err_msg=name)


def test_on_the_cpu_the_right_engine_is_named() -> None:
    """Training on the CPU is refused with the name of the right engine."""
    with pytest.raises(DeviceError, match="--engine fused"):
        ENGINES["fused-gpu"].start(small_pack(0), device="cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_the_right_option_is_named() -> None:
    """Training on a missing GPU is refused with the option that helps, and the number of blocks is unknown."""
    engine: Any = ENGINES["fused-gpu"]
    pack: Pack = small_pack(0)
    with pytest.raises(DeviceError, match="--device cpu"):
        engine.start(pack, device="cuda")
    assert engine.trials_at_once(pack.trials[0].cell) is None

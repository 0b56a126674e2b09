"""The torch engine beyond the contract of all engines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from study.records import Pack, Trial
from tests.engines import ENGINES
from tests.study.builders import small_cell


@pytest.fixture
def threads() -> Iterator[int]:
    """Set torch to two threads, as in a process that does more than train, and yield their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


def test_threads_of_the_process_change_no_trial(threads):
    """A trial has the same results alone and in a pack, with any number of torch threads; that number is kept."""
    cell = small_cell(
        task="arithmetic", input_size=100, subset_ratio=0.25, overlap_ratio=0.5, hidden_size=10, batch_size=128
    )
    weights = []
    for seeds in ((3,), (0, 1, 2, 3)):
        training = ENGINES["torch"].start(Pack(tuple(Trial(cell, seed) for seed in seeds)), device="cpu")
        assert torch.get_num_threads() == threads
        while not training.done:
            training.advance(0.0)
            assert torch.get_num_threads() == threads
        weights.append(training.finish()[2][-1].arrays)
    alone, in_a_pack = weights
    for name, array in alone.items():
        np.testing.assert_array_equal(array, in_a_pack[name])

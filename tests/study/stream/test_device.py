"""Tasks create tensors on the device in use, with the same numbers on each."""

from __future__ import annotations

import gc

import pytest
import torch
from torch.utils._pytree import tree_leaves

from study.interface.task import EVALUATIONS
from study.plugins import offers
from study.plugins.packed_tasks import packed_task
from study.stream.device import _copies, current_device, on_device, use_device
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream
from tasks.shared.images import digits
from tests.far_device import FAR, far_device
from tests.study.stream.test_trial_stream import DRAWS


@pytest.mark.parametrize("name", [*DRAWS, "batch"])
def test_numbers_of_a_stream_have_the_same_bits_on_every_device(name):
    """Numbers are drawn on the CPU and copied; cached tensors of streams stay usable on both devices."""
    draw = DRAWS.get(name, lambda stream: stream.batch(20, 5))

    def drawn():
        return draw(Stream([7], 5, Purpose.TRAIN))

    with far_device():
        with use_device(FAR):
            far_numbers = drawn()
            assert torch.zeros(1).device == far_numbers.device == torch.device(FAR)
        assert torch.equal(far_numbers.cpu(), drawn())
        assert drawn().is_cpu


def test_data_are_copied_once_and_forgotten_with_the_original():
    with far_device() as device:
        data, before = torch.arange(3.0), len(_copies)
        with use_device(FAR):
            assert on_device(data) is on_device(data)
            assert on_device(data).device == torch.device(FAR)
        assert on_device(data) is data
        assert device.copied_back == 0
        del data
        gc.collect()
        assert len(_copies) == before


def test_the_cpu_can_be_used_within_another_device():
    """Shared caches are made on the CPU, whatever the current device; that device is restored."""
    assert current_device() is None
    with far_device(), use_device(FAR):
        with use_device("cpu"):
            assert current_device() is None
            assert torch.zeros(1).is_cpu
        assert torch.zeros(1).device == current_device() == torch.device(FAR)
    assert current_device() is None


def test_images_are_where_they_are_used():
    images = digits()["test"]
    assert images.on_device().pixels is images.pixels
    with far_device(), use_device(FAR):
        assert {images.on_device().pixels.device.type, images.on_device().labels.device.type} == {"far"}


@pytest.mark.parametrize("name", offers.names("stable_tasks"))
def test_a_task_made_for_one_device_draws_on_another(name):
    """A task draws on the other device, then on the CPU; no cached tensor stays on the first device."""
    task = packed_task(name)().for_proof()

    def drawn(device):
        with use_device(device):
            setup = (task.setup(Stream([3], 0, Purpose.SETUP)),) if task.has_setup else ()
            sets = [task.evaluation(evaluation_stream(purpose), purpose, *setup) for purpose in EVALUATIONS.values()]
            return tree_leaves((task.draw(Stream([3], 0, Purpose.TRAIN), *setup), sets))

    with far_device():
        for far_number, near_number in zip(drawn(FAR), drawn("cpu"), strict=True):
            assert (far_number.device.type, near_number.device.type) == ("far", "cpu")
            assert torch.equal(far_number.cpu(), near_number)

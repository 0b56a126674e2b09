"""Settings of devices: the process's, shared by the threads that train packs."""

from __future__ import annotations

from threading import Event, Thread

import torch

from study.engine.device import reproducible


def test_settings_last_until_the_last_thread_leaves() -> None:
    """A pack that ends leaves the settings of another thread's pack as they are; after both, they are as before."""
    inside, leaves = Event(), Event()

    def first() -> None:
        with reproducible("cuda"):
            inside.set()
            leaves.wait()

    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
    thread = Thread(target=first)
    thread.start()
    inside.wait()
    with reproducible("cuda"):
        leaves.set()
        thread.join()
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.allow_tf32
    assert (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32) == before

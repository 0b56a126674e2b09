"""Agreement of the networks of `benchmarks.larger` in JAX and in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("jax")

from benchmarks.larger import NETWORKS, Classes, parameters, recipe_of
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_in_jax_has_the_logits_of_torch(name: str) -> None:
    """With equal parameters and rows, both have the same logits."""
    build, is_series, logits = NETWORKS[name]
    assert recipe_of(name).task == Classes(is_series=is_series)
    torch.manual_seed(3)
    network = build()
    torch.manual_seed(3)
    weights = {key: array[0] for key, array in parameters(build, 1).items()}
    x, _ = Classes(is_series=is_series).draw(Stream([0], 0, Purpose.TRAIN))
    np.testing.assert_allclose(logits(weights, x.numpy()), network(x).detach().numpy(), rtol=1e-4, atol=1e-5)

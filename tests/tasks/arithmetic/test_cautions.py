"""Cautions about division by numbers around 0."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from study.spec import canonical_cell
from study.stream import stream
from tasks.arithmetic.cautions import _has_zero, zero_divisors
from tasks.arithmetic.cell import typed_cell


def single(operation, low, high, **values):
    """Build a typed cell of the single-module task with inputs between two numbers."""
    ends = {"interpolation_range": ((low, high),), "extrapolation_range": ((-6.0, -2.0), (2.0, 6.0))}
    threshold = {"success_epsilon": None, "success_threshold": 1e-5}
    return typed_cell(canonical_cell("single-module", "NRU", {"operation": operation} | ends | threshold | values))


def test_division_around_zero_has_a_caution_with_its_frequency():
    """128 rows and 50,000 iterations have 6.4 million divisors; a divisor is 0 with probability 2⁻²⁴."""
    [sentence] = zero_divisors([single("div", -2.0, 2.0, iterations=50_000), single("mul", -2.0, 2.0)])
    assert "in 1 of 2 cells" in sentence
    assert "Up to 32% of the trials" in sentence
    assert zero_divisors([single("reciprocal", -2.0, 2.0)])


@pytest.mark.parametrize("cell", [single("mul", -2.0, 2.0), single("div", 1.0, 2.0), single("div", -1.9999, 1.9998)])
def test_without_zero_divisors_a_cell_has_no_caution(cell):
    """Other operations, inputs of one sign, and ranges whose draws never hit 0 give no caution."""
    assert zero_divisors([cell]) == []


@pytest.mark.parametrize(
    ("low", "high"), [(-2.0, 2.0), (-50.0, 50.0), (-1.9999, 1.9998), (-3.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (-3.0, 0.0)]
)
def test_zeros_are_those_of_the_stream(low, high, monkeypatch):
    """The range is said to contain 0 exactly if the stream draws a 0 from one of its words."""
    place = round(-low / (high - low) * 2**24)
    drawn = torch.arange(place - 50, place + 50, dtype=torch.int64).clamp(0, 2**24 - 1)[None, None] * 256
    monkeypatch.setattr(stream, "words", lambda *_: drawn)
    ends = torch.tensor([[low, low]]), torch.tensor([high]) - torch.tensor([low])
    x = stream.inputs(torch.tensor([0]), *ends, 1, 100, 0, stream.Purpose.TRAIN)
    assert _has_zero(low, high) == bool((x == 0).any())
    assert np.isfinite(x.numpy()).all()

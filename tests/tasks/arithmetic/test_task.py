"""The arithmetic task: its subsets, its target, its threshold."""

from __future__ import annotations

import csv
import itertools
import math
import re
import tracemalloc
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tasks.arithmetic import OPERATIONS, TASKS, ArithmeticTask, simple_task
from tasks.arithmetic import task as arithmetic_file
from tasks.arithmetic import threshold as threshold_file

EPSILON = 1e-5
TWO_INTERVALS = ((-6.0, -2.0), (2.0, 6.0))


def reference() -> list[dict[str, str]]:
    text = resources.files("tasks.arithmetic.published").joinpath("thresholds.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def reference_task(row: dict[str, str]) -> ArithmeticTask:
    experiment, value = row["experiment"], row["parameter"]
    changed: dict[str, Any] = {}
    if experiment == "extrapolation.range":
        pairs = re.findall(r"U\[([^,]+),([^\]]+)\]", value)
        changed["extrapolation_range"] = tuple((float(low), float(high)) for low, high in pairs)
    elif experiment == "input.size":
        changed["input_size"] = int(value)
    elif experiment in ("subset.ratio", "overlap.ratio"):
        changed[experiment.replace(".", "_")] = float(value)
    return TASKS["simple" if experiment == "simple" else "arithmetic"](operation=row["operation"], **changed)


def named(row: dict[str, str]) -> str:
    return "-".join((row["experiment"], row["parameter"], row["operation"]))


# The reference for ÷ and sqrt is a mean of samples, with a relative standard error of 0.001.
@pytest.mark.parametrize("row", reference(), ids=named)
def test_threshold_is_the_reference(row: dict[str, str]) -> None:
    """Every threshold equals the reference, to all digits if the reference is exact."""
    tolerance = {"div": 5e-3, "root": 6e-4}.get(row["operation"], 1e-9)
    assert reference_task(row).threshold() == pytest.approx(float(row["threshold"]), rel=tolerance)


def sampled_threshold(task: ArithmeticTask, epsilon: float, samples: int) -> tuple[float, float]:
    """Return the threshold by the protocol's definition as a mean over samples, and its standard error."""
    random = np.random.Generator(np.random.Philox(5))
    shape = (samples, task.input_size)
    starts = np.array([low for low, _ in task.extrapolation_range])
    low, high = task.extrapolation_range[0]
    x = starts[random.integers(len(starts), size=shape)] + (high - low) * random.random(shape)
    right = task.masks(0).astype(np.float64)
    off = np.where(right == 1, 1 - epsilon, epsilon)

    def run(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(task.target(torch.from_numpy((x @ weights.T).T.copy())).numpy()[0])

    square = (run(off) - run(right)) ** 2
    return float(square.mean()), float(square.std() / math.sqrt(samples))


SAMPLED = [
    ArithmeticTask(operation=operation, input_size=12, extrapolation_range=((2.0, 6.0),))
    for operation in OPERATIONS
    if operation != "reciprocal"  # its threshold isn't known
] + [
    ArithmeticTask(operation="mul", input_size=16, subsets=3),
    ArithmeticTask(operation="mul", input_size=16, subsets=4, subset_ratio=0.25, overlap_ratio=0.8),
    ArithmeticTask(operation="add", input_size=16, subsets=4),
    ArithmeticTask(operation="mul", input_size=12, extrapolation_range=TWO_INTERVALS),
    ArithmeticTask(operation="sub", input_size=12, extrapolation_range=TWO_INTERVALS),
    ArithmeticTask(operation="div", input_size=12, extrapolation_range=((-6.0, -2.0),)),
    simple_task(operation="div"),
    simple_task(operation="root"),
    simple_task(operation="squared", subsets=1),
]


@pytest.mark.parametrize("task", SAMPLED, ids=range(len(SAMPLED)))
def test_threshold_is_the_mean_of_samples(task: ArithmeticTask) -> None:
    """The threshold is the mean squared difference of the two networks over samples."""
    mean, error = sampled_threshold(task, 1e-3, 200_000)
    assert abs(task.threshold(1e-3) - mean) < 5 * error


def test_more_nodes_do_not_change_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    """For ÷ and sqrt, a finer Gauss rule changes the threshold by a relative 1e-9 at most."""
    tasks = [
        ArithmeticTask(operation=operation, input_size=n, extrapolation_range=range_)
        for operation in ("div", "root")
        for n in (16, 100, 300)
        for range_ in (((2.0, 6.0),), ((1.0, 5.0),), ((20.0, 40.0),), ((0.2, 2.0),))
    ]
    coarse = [task.threshold() for task in tasks]
    monkeypatch.setattr(threshold_file, "_NODES", 24)
    fine = [arithmetic_file._threshold.__wrapped__(task, EPSILON) for task in tasks]
    assert coarse == pytest.approx(fine, rel=1e-9)


@pytest.mark.parametrize("range_", [((0.0, 1.0),), TWO_INTERVALS])
@pytest.mark.parametrize("count", [1, 2, 25])
def test_gauss_rule_has_the_moments_of_the_sum(range_: threshold_file.Range, count: int) -> None:
    """The rule has the sum's mean, variance and fourth central moment."""
    nodes, weights = threshold_file._sum_rule(range_, count, 8)
    mean, variance = (0.5, 1 / 12) if len(range_) == 1 else (0.0, 4**2 / 12 + 4**2)
    fourth = 1 / 80 if len(range_) == 1 else 4**4 / 80 + 6 * 4**2 * 4**2 / 12 + 4**4
    centred = nodes - count * mean
    assert weights.sum() == pytest.approx(1)
    assert weights @ nodes == pytest.approx(count * mean, abs=1e-12)
    assert weights @ centred**2 == pytest.approx(count * variance)
    assert weights @ centred**4 == pytest.approx(count * fourth + 3 * count * (count - 1) * variance**2)


@st.composite
def fitting(draw: st.DrawFn) -> ArithmeticTask:
    size = draw(st.integers(1, 60))
    ratios = st.integers(0, 100).map(lambda percent: percent / 100)
    try:
        return ArithmeticTask(
            operation="add",
            input_size=size,
            subset_ratio=draw(ratios),
            overlap_ratio=draw(ratios),
            subsets=draw(st.integers(2, 5)),
        )
    except ValueError:
        return ArithmeticTask(input_size=size + 4)


@given(task=fitting(), uniform=st.floats(0, 1, exclude_max=True))
def test_subsets_have_their_size_and_overlap(task: ArithmeticTask, uniform: float) -> None:
    """At any offset, subsets have the declared size, neighbours the declared overlap, and all lie in the row."""
    offset = task.offset(uniform)
    masks = task.masks(offset)
    assert masks.dtype == np.float32
    assert masks.shape == (task.subsets, task.input_size)
    assert (masks.sum(1) == task.subset_size).all()
    assert all((a * b).sum() == task.overlap for a, b in itertools.pairwise(masks))
    covered = np.flatnonzero(masks.any(0))
    assert covered[0] == offset
    assert covered[-1] == offset + task.used - 1


def test_every_offset_is_equally_likely() -> None:
    """Equally spaced uniform numbers give each possible offset equally often."""
    task = ArithmeticTask(input_size=100)
    places = 100 - task.used + 1
    hits = np.bincount([task.offset((i + 0.5) / (10 * places)) for i in range(10 * places)])
    assert hits.tolist() == [10] * places
    assert task.offset(1 - 2**-53) == places - 1
    assert simple_task().offset(0.99) == 0


def test_ratios_are_exact_in_decimal() -> None:
    """A subset ratio of 0.29 of 100 inputs is 29 inputs, although 0.29 * 100 is slightly less in binary."""
    assert ArithmeticTask(subset_ratio=0.29).subset_size == 29
    assert ArithmeticTask(subset_ratio=0.299).subset_size == 29


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("add", 8.0), ("sub", 4.0), ("mul", 12.0), ("div", 3.0), ("squared", 36.0), ("root", 6**0.5)],
)
def test_target_combines_the_sums(operation: str, expected: float) -> None:
    """The target is the operation of the sums, with leading axes kept."""
    task = ArithmeticTask(operation=operation)
    sums = torch.tensor([6.0, 2.0])[None, :, None].expand(3, 2, 5)
    target = task.target(sums)
    assert target.shape == (3, 1, 5)
    assert torch.allclose(target, torch.tensor(expected))


def test_more_subsets_are_added_and_multiplied() -> None:
    """With three subsets, + and × combine all of them."""
    sums = torch.tensor([[2.0], [3.0], [5.0]])
    assert ArithmeticTask(operation="add", subsets=3).target(sums).item() == 10
    assert ArithmeticTask(operation="mul", subsets=3).target(sums).item() == 30


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"operation": "modulo"}, "one of add, sub"),
        ({"operation": "sub", "subsets": 3}, "takes 2 subsets, but got subsets 3"),
        ({"operation": "mul", "subsets": 1}, "2 or more"),
        ({"subset_ratio": 0.8, "overlap_ratio": 0.0}, "need 160 numbers, but input_size is 100"),
        ({"subset_ratio": 0.001}, "at least 1 number"),
        ({"subset_ratio": 1.5}, "0 < subset_ratio <= 1"),
        ({"overlap_ratio": -0.1}, "0 <= overlap_ratio <= 1"),
        ({"interpolation_range": ((2.0, 2.0),)}, "low < high must hold in interpolation_range"),
        ({"extrapolation_range": ((0.0, math.inf),)}, "finite"),
        ({"extrapolation_range": ((0.0, 1.0), (2.0, 5.0))}, "equal width"),
        ({"extrapolation_range": ()}, "one or two intervals"),
        ({"operation": "root", "interpolation_range": ((-2.0, 2.0),)}, "numbers >= 0"),
    ],
)
def test_impossible_tasks_are_refused(changed: dict[str, Any], message: str) -> None:
    """An impossible task gives an error with the values and the rule."""
    with pytest.raises(ValueError, match=re.escape(message)):
        ArithmeticTask(**changed)


def test_the_simple_task_is_fixed() -> None:
    """The simple task refuses other input sizes and ratios."""
    with pytest.raises(ValueError, match="input_size 4"):
        simple_task(input_size=100)


def test_thresholds_that_do_not_exist_are_refused() -> None:
    """A threshold requires a non-zero divisor, few factors, and a small ε."""
    with pytest.raises(ValueError, match="divisor can be 0"):
        ArithmeticTask(operation="div", extrapolation_range=((-2.0, 2.0),)).threshold()
    with pytest.raises(ValueError, match="takes too long"):
        ArithmeticTask(operation="mul", subsets=6, subset_ratio=0.1).threshold()
    with pytest.raises(ValueError, match=r"0 < epsilon < 0\.5"):
        ArithmeticTask().threshold(0.0)


@given(
    st.sampled_from(["add", "sub", "mul", "div", "squared", "root"]),
    st.integers(4, 60),
    st.floats(0.05, 0.5),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.integers(2, 4),
)
def test_the_threshold_of_pieces_is_that_of_all_numbers(operation, input_size, subset_ratio, overlap_ratio, subsets):
    """Merging inputs of the same subsets doesn't change a bit of the threshold."""
    subsets = subsets if operation in ("add", "mul") else 2
    try:
        task = ArithmeticTask(
            operation=operation,
            input_size=input_size,
            subset_ratio=subset_ratio,
            overlap_ratio=overlap_ratio,
            subsets=subsets,
        )
    except ValueError:
        assume(False)
    masks, widths = task.pieces()
    assert widths.min() >= 1
    assert np.array_equal(np.repeat(masks, widths, axis=1), task.masks(0))
    assert task.threshold() == threshold_file.threshold(operation, task.masks(0), task.extrapolation_range, 1e-5)


def test_a_threshold_needs_no_memory_for_the_inputs():
    """A task of a million numbers has its threshold without an array of them."""
    task = ArithmeticTask(operation="mul", input_size=10**9)
    tracemalloc.start()
    assert math.isfinite(task.threshold())
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()

"""The fused engine beyond the contract: the torch engine's numbers, and the stream's bits."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numba as nb
import numpy as np
import pytest

from study.errors import DeviceError
from study.records import Checkpoint, Pack, Trial
from study.stream.stream import Purpose
from study.stream.stream_simd import LANES, fill_inputs, padded
from tasks.arithmetic import MODELS
from tasks.arithmetic.engine.compiled import math
from tasks.arithmetic.engine.compiled.codes import CODES
from tasks.arithmetic.engine.cpu import inputs, products
from tasks.arithmetic.engine.cpu.arrays import block_rows
from tasks.arithmetic.engine.cpu.engine import FusedEngine
from tasks.arithmetic.engine.torch.engine import TorchEngine
from tests.study.builders import small_cell

TRAINED = [name for name, model in MODELS.items() if {model.first, model.second} <= set(CODES)]
ARITHMETIC: dict[str, Any] = {"task": "arithmetic", "input_size": 9, "subset_ratio": 0.25, "overlap_ratio": 0.5}
SINGLE: dict[str, Any] = {"task": "single-module", "input_size": 9, "hidden_size": None}
SEEDS = range(24)


# --- against the torch engine -----------------------------------------------------------------------------------


def trajectory(engine: Any, pack: Pack, checkpoint: Checkpoint | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Train a pack to its end, and return its weights and its curves."""
    training = engine.start(pack, device="cpu", checkpoint=checkpoint)
    training.advance(1e9)
    arrays = training.checkpoint().arrays
    weights = {name: array for name, array in arrays.items() if name.startswith("part/weight/")}
    curves = training.finish()[1]
    return weights | {
        name: np.stack([curve.metrics[name] for curve in curves])
        for name in ("validation_mse", "test_mse", "sparsity_error")
    }


def nudged(checkpoint: Checkpoint, factor: float) -> Checkpoint:
    """Return a checkpoint with every weight multiplied by a factor."""
    arrays = dict(checkpoint.arrays)
    for name in arrays:
        if name.startswith("part/weight/"):
            arrays[name] = arrays[name] * np.float32(factor)
    return replace(checkpoint, arrays=arrays)


def distances(actual: Any, expected: Any) -> Any:
    """Return each trial's largest distance of a weight, relative to the largest weight of its parameter."""
    worst = np.zeros(len(SEEDS))
    for name in expected:
        if name.startswith("part/weight/"):
            a, b = (array[name].reshape(len(SEEDS), -1).astype(np.float64) for array in (actual, expected))
            worst = np.maximum(worst, abs(a - b).max(1) / np.maximum(abs(b).max(1), 1e-3))
    return worst


def compare(pack: Pack) -> Any:
    """Train a pack by the torch engine and by the fused engine.

    If a product in log space has a hidden value near 0, or a weight is saturated to the last digit, rounding alone
    determines a trial's course. Such trials are excluded. They are detected by training in the torch engine with
    weights moved by a few units in the last place.

    Returns:
        The trajectories of the fused and the torch engine, and a mask of the included trials.
    """
    start = TorchEngine().start(pack, device="cpu").checkpoint()
    expected = trajectory(TorchEngine(), pack)
    moved = [trajectory(TorchEngine(), pack, nudged(start, 1 + k * 2.0**-22)) for k in (-2, 1)]
    tame = np.max([distances(weights, expected) for weights in moved], axis=0) < 1e-5
    assert tame.sum() >= 2
    return trajectory(FusedEngine(), pack), expected, tame


@pytest.mark.parametrize(
    "changes", [{}, {**ARITHMETIC, "hidden_size": 3}, SINGLE], ids=["simple", "arithmetic", "single module"]
)
@pytest.mark.parametrize("model", TRAINED)
def test_trajectories_agree_with_the_torch_engine(model, changes):
    """After 200 updates of the same trials, both engines' weights and measurements agree to 1e-4."""
    changes = {"iterations": 199, "evaluate_every": 100, "batch_size": 64, "evaluation_rows": 500} | changes
    if MODELS[model].has_bounds:
        changes |= {"sparsity_start": 50, "sparsity_end": 150}
    pack = Pack(tuple(Trial(small_cell(model, **changes), seed) for seed in SEEDS))
    actual, expected, tame = compare(pack)
    assert distances(actual, expected)[tame].max() < 1e-4
    for name in ("validation_mse", "test_mse"):
        np.testing.assert_allclose(actual[name][tame], expected[name][tame], rtol=5e-3)
        np.testing.assert_allclose(actual[name][tame, 0], expected[name][tame, 0], rtol=1e-4)
    np.testing.assert_allclose(actual["sparsity_error"][tame], expected["sparsity_error"][tame], atol=1e-4)


RULES: dict[str, dict[str, Any]] = {
    "sgd": {"optimizer": "sgd", "learning_rate": 1e-5},
    "momentum": {"optimizer": "momentum", "momentum": 0.9, "learning_rate": 1e-6},
    "squared": {"sparsity_shape": "squared"},
    "exponential": {"sparsity_scaling": "exponential", "sparsity_start": None, "sparsity_end": None},
    "regularized": {"bounds": "regularized", "out_of_bounds_strength": 1.0, "out_of_bounds_shape": "linear"},
    "regularized, squared": {
        "bounds": "regularized",
        "out_of_bounds_strength": 10.0,
        "out_of_bounds_shape": "squared",
        "sparsity_shape": "squared",
        "init_variance": 1 / 12,
    },
    "odd sizes": {"batch_size": 77, "hidden_size": 5, "evaluation_rows": 333},
    "two intervals": {"interpolation_range": ((-2.0, -1.0), (1.0, 2.0))},
    "three subsets": ARITHMETIC | {"overlap_ratio": 0.0, "subsets": 3},
    **{operation: {"operation": operation} for operation in ("add", "sub", "div", "squared", "root")},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("model", ["NMU", "gated-NAU-NMU"])
def test_every_rule_agrees_with_the_torch_engine(model, rule):
    """Both engines agree for every optimiser, regulariser, operation and odd size."""
    changes = {"iterations": 99, "evaluate_every": 50, "evaluation_rows": 500} | RULES[rule]
    if "sparsity_scaling" not in changes:
        changes |= {"sparsity_start": 0, "sparsity_end": 50}
    pack = Pack(tuple(Trial(small_cell(model, **changes), seed) for seed in SEEDS))
    actual, expected, tame = compare(pack)
    assert distances(actual, expected)[tame].max() < 1e-4
    np.testing.assert_allclose(actual["test_mse"][tame], expected["test_mse"][tame], rtol=5e-3)


# --- the engine ---------------------------------------------------------------------------------------------------


def test_threads_change_no_bit():
    """A pack has the same results on any number of threads."""
    pack = Pack(tuple(Trial(small_cell(), seed) for seed in SEEDS))
    one_thread = trajectory(FusedEngine(), pack)
    for threads in (2, 5, 40):
        shared = trajectory(FusedEngine(threads), pack)
        assert all((shared[name] == one_thread[name]).all() for name in one_thread)


def test_a_checkpoint_of_another_order_of_sums_is_discarded():
    """A checkpoint of a version with another order of sums is discarded; the engine's own checkpoints are resumed."""
    engine = FusedEngine()
    checkpoint = engine.start(Pack((Trial(small_cell(), 0),)), device="cpu").checkpoint()
    arrays = {name: array for name, array in checkpoint.arrays.items() if name != "order_of_sums"}
    assert len(arrays) == len(checkpoint.arrays) - 1
    assert engine.goes_on_from(checkpoint, "cpu")
    assert not engine.goes_on_from(replace(checkpoint, arrays=arrays), "cpu")
    another = arrays | {"order_of_sums": checkpoint.arrays["order_of_sums"] + 1}
    assert not engine.goes_on_from(replace(checkpoint, arrays=another), "cpu")


def test_unsupported_parts_are_refused_by_name():
    """Units, training options and devices that the engine doesn't support are refused by name."""
    unknown = {"NMU-normalized", "NPU", "RealNPU", "RealNPU-modified", "NRU", "NMRU", "iNALU", "iNALU-Primer", "G-NALU"}
    assert {model for model in MODELS if FusedEngine().refuses(small_cell(model))} == unknown
    for model in unknown:
        assert model in str(FusedEngine().refuses(small_cell(model)))
    assert FusedEngine().refuses(small_cell(l1_strength=1e-5, l1_first_strength=1e-7)) == "it has no L1 penalty"
    for limit in ("clip_norm", "clip_value"):
        assert FusedEngine().refuses(small_cell(**{limit: 1.0})) == "it has no gradient limits"
    with pytest.raises(DeviceError, match="CPU only"):
        FusedEngine().start(Pack((Trial(small_cell(), 0),)), device="cuda")


def test_a_slice_respects_its_time():
    """A slice with a time of 0 makes few updates, even if the engine knows that they are quick."""
    training = FusedEngine().start(Pack((Trial(small_cell(iterations=100_000), 0),)), device="cpu")
    for _ in range(5):
        before = training.advance(0.01).iteration
    assert training.advance(0.0).iteration == before + 1


@pytest.mark.parametrize("rows", [1, 7, 100, 128, 1000])
@pytest.mark.parametrize("inputs", [1, 4, 100, 300, 3000])
def test_blocks_hold_a_batch(rows, inputs):
    """Blocks consist of whole vectors, and each has at least one row."""
    block = block_rows(inputs, 64 * 1024, rows)
    assert block % LANES == 0
    assert -(-rows // block) * block - rows < block


@nb.njit(error_model="numpy")
def _draw(x, transposed, n, block, seed, low, second, width, iteration, purpose, first, count):  # type: ignore[no-untyped-def]
    inputs.draw(x, transposed, n, block, seed, low, second, width, iteration, purpose, first, count)


@pytest.mark.parametrize("second", [-3.0, 2.5])
@pytest.mark.parametrize("width", [1.0, 0.1, 20.0, 1e-20])
@pytest.mark.parametrize("n", [7, 35])
def test_inputs_are_the_streams_bits(n, width, second):
    """Inputs from one or two intervals have the stream's bits; padding after the last row repeats the first row."""
    seed, rows, block = 2**62 + 12345, 125, 80
    low = np.array([[-3.0, second]], np.float32)
    expected = np.empty((1, n, rows), np.float32)
    widths = np.full(1, width, np.float32)
    fill_inputs(expected, np.array([seed], np.uint64), low, widths, 123_456, Purpose.TEST)
    features, deep = padded(n, 4), n - n % LANES
    drawn = []
    for first in (0, block):
        x = np.empty((features, block + LANES), np.float32)
        transposed = np.empty((block, deep), np.float32)
        stream = (np.uint64(seed), low[0, 0], low[0, 1], widths[0], 123_456, int(Purpose.TEST))
        _draw(x.reshape(-1), transposed.reshape(-1), n, block, *stream, first, rows)
        np.testing.assert_array_equal(transposed, x[:deep, :block].T)
        drawn.append(x[:n, :block])
    drawn = np.concatenate(drawn, axis=1)
    np.testing.assert_array_equal(drawn[:, :rows], expected[0])
    np.testing.assert_array_equal(drawn[:, rows:], np.repeat(drawn[:, block : block + 1], 2 * block - rows, axis=1))


# --- arithmetic ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 16), (2, 4, 32), (3, 7, 48), (10, 100, 64), (5, 6, 112), (47, 35, 32)])
def test_matrix_products(shape, kind):
    """Products and sums are those of numpy in float64, to rounding."""
    outputs, features, rows = shape
    rng = np.random.default_rng(sum(shape))
    w, x = (rng.normal(size=(outputs, features)).astype(kind), rng.normal(size=(features + 2, rows)).astype(kind))
    z, d, s = np.empty((outputs, rows), kind), np.ones_like(w), np.ones((2, features), kind)
    products.multiply(z, w, x, 0, features)
    transposed = np.zeros((rows, features - features % LANES), kind)
    products.transpose(transposed, x)
    products.add_outer(d, z, x, transposed)
    products.add_sums(s, 1, np.ones((1, rows), kind), x)
    exact = w.astype(np.float64) @ x[:features]
    scale = 50 * features * rows * np.finfo(kind).eps
    np.testing.assert_allclose(z, exact, atol=scale)
    np.testing.assert_allclose(d - 1, z.astype(np.float64) @ x[:features].T, atol=scale)
    np.testing.assert_allclose(s[1] - 1, x[:features].astype(np.float64).sum(1), atol=scale)
    assert (s[0] == 1).all()
    if features > 2:
        products.multiply(z, np.ascontiguousarray(w[:, 1:]), x, 1, features - 1)
        np.testing.assert_allclose(z, w[:, 2:features].astype(np.float64) @ x[1 : features - 1], atol=scale)


# Prints a digest of products with the tiles for AVX-512 or without, on any processor.
_DIGEST = """
import hashlib, sys
import llvmlite.binding as llvm
import numpy as np
from numba.core.registry import cpu_target
cpu_target.target_context.codegen()  # numba compiles for the processor as it is
features = llvm.FeatureMap()
features["avx512f"] = sys.argv[1] == "wide"
llvm.get_host_cpu_features = lambda: features
from tasks.arithmetic.engine.cpu import products
digest = hashlib.sha256()
rng = np.random.default_rng(0)
for outputs, features, rows in ((1, 4, 16), (2, 35, 48), (3, 100, 128), (13, 70, 80), (47, 33, 112)):
    w, x = (rng.normal(size=shape).astype(np.float32) for shape in ((outputs, features), (features, rows)))
    z, d, deep = np.empty((outputs, rows), np.float32), np.ones_like(w), features - features % 16
    transposed = np.empty((rows, deep), np.float32)
    products.multiply(z, w, x, 0, features)
    products.transpose(transposed, x)
    products.add_outer(d, z, x, transposed)
    digest.update(z.tobytes() + d.tobytes())
print(products._TALL, digest.hexdigest())
"""


def test_tiles_change_no_bit(tmp_path):
    """Products have the same bits with the tiles for AVX-512 and with the others."""
    printed = []
    for width in ("wide", "narrow"):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / width)}
        words = [sys.executable, "-c", _DIGEST, width]
        completed = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
        printed.append(completed.stdout.split())
    assert [tall for tall, _ in printed] == ["2", "1"]
    assert printed[0][1] == printed[1][1]


@nb.njit(error_model="numpy")
def _each(index, x, y):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        if index == 0:
            y[k] = math.exp(x[k])
        elif index == 1:
            y[k] = math.expm1(x[k])
        elif index == 2:
            y[k] = math.log(x[k])
        else:
            y[k] = math.tanh(x[k])


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "tanh"])
def test_functions_are_accurate_to_float32(name):
    """Errors are within 2 units in the last place of numpy's float64; NaN, 0 and inf are kept."""
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.uniform(-149, 127.9, 200_000)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 88.7, 88.8, -103.9, -104.1, -87.4, 0.625]
    x = np.concatenate([sizes, -sizes, rng.uniform(-105, 90, 200_000), rng.uniform(-2, 2, 200_000), special])
    x = x.astype(np.float32)
    if name == "expm1":
        x = x[~(x > 0)]
    if name == "log":
        x = x[~(x < np.finfo(np.float32).tiny)]
    y = np.empty_like(x)
    _each(["exp", "expm1", "log", "tanh"].index(name), x, y)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
        rounded = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(rounded))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(rounded))
    finite = np.isfinite(rounded)
    units = abs(y[finite] - exact[finite]) / np.spacing(abs(rounded[finite])).astype(np.float64)
    assert units.max() < 2

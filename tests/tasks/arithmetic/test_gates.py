"""Gates and effective weights of trained networks, against the definitions written out in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from study.arrow import stacked_weights
from study.records import Cell, Pack, Trial, Weights
from study.stream.stream import EVALUATION_SEED, Purpose
from study.stream.stream_simd import fill_inputs
from tasks.arithmetic import MODELS
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.gates import Arrays, effective_weights, mean_gates
from tasks.arithmetic.networks import Network
from tests.engines import ENGINES
from tests.study.builders import small_cell
from units.golden import GOLDEN_RATIO

Array = npt.NDArray[Any]
GATED = ("NALU", "NALU-separate", "gated-NAU-NMU", "G-NALU", "iNALU", "iNALU-Primer")
# Units whose sparsity error is the mean of their matrices' errors instead of the maximum.
AVERAGED = ("NPU", "iNALU", "iNALU-Primer")


def drawn(cell: Cell, seed: int) -> dict[str, Array]:
    """Draw a trial's parameters, partly out of bounds."""
    rng = np.random.default_rng(seed)
    typed = typed_cell(cell)
    layers = Network(MODELS[cell.model], typed.input_size, typed.hidden_size).layers
    return {
        f"layer_{number}.{name}": rng.normal(0, 0.8, tuple(parameter.shape)).astype(np.float32)
        for number, layer in enumerate(layers, start=1)
        for name, parameter in layer.named_parameters()
    }


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def nac(p: dict[str, Array], path: str = "") -> Array:
    return np.tanh(p[f"weight_hat{path}"]) * sigmoid(p[f"mask_hat{path}"])


def nac_mul(w: Array, x: Array) -> Array:
    return np.exp(np.log(abs(x) + 1e-7) @ w.T)


def nmu(w: Array, x: Array) -> Array:
    return (x[:, None, :] * w + 1 - w).prod(-1)


def golden(p: dict[str, Array]) -> Array:
    size, mask = (GOLDEN_RATIO ** p[name] for name in ("weight_hat", "mask_hat"))
    return (size**2 - 1) / (size**2 + 1) / (1 + 1 / mask)


def signed_mul(w: Array, x: Array) -> Array:
    sign = (np.sign(x)[:, None, :] * abs(w) + 1 - abs(w)).prod(-1)
    return np.exp(np.log(abs(x)) @ w.T) * sign


def improved(p: dict[str, Array], x: Array) -> tuple[Array, Array]:
    return x @ nac(p, "_add").T, signed_mul(nac(p, "_mul"), x)


# The gate's value in units whose gate isn't σ(Gx).
OPENINGS: dict[str, Callable[[dict[str, Array], Array], Array]] = {
    "G-NALU": lambda p, x: 1 / (1 + GOLDEN_RATIO ** -(x @ p["gate"].T)),
    **dict.fromkeys(("iNALU", "iNALU-Primer"), lambda p, x: sigmoid(p["gate"]) + 0 * x[:, :1]),
}

# The sum and the product of a layer, from its parameters and its inputs, [rows, inputs].
PATHS: dict[str, Callable[[dict[str, Array], Array], tuple[Array, Array]]] = {
    "NALU": lambda p, x: (x @ nac(p).T, nac_mul(nac(p), x)),
    "NALU-separate": lambda p, x: (x @ nac(p, "_add").T, nac_mul(nac(p, "_mul"), x)),
    "gated-NAU-NMU": lambda p, x: (x @ p["weight_add"].clip(-1, 1).T, nmu(p["weight_mul"].clip(0, 1), x)),
    "G-NALU": lambda p, x: (x @ golden(p).T, nac_mul(golden(p), x)),
    "iNALU": improved,
    "iNALU-Primer": improved,
}


def by_definition(cell: Cell, arrays: Arrays) -> dict[str, Array]:
    """Return each layer's mean gates over the validation rows, by the definitions in float64."""
    typed = typed_cell(cell)
    low, width = (typed.interpolation_range[0][0], typed.interpolation_range[0][1] - typed.interpolation_range[0][0])
    rows = np.empty((1, typed.input_size, typed.evaluation_rows), np.float32)
    seed, interval = np.array([EVALUATION_SEED], np.uint64), np.full((1, 2), low, np.float32)
    fill_inputs(rows, seed, interval, np.array([width], np.float32), 0, Purpose.VALIDATION)
    x, gates = rows[0].T.astype(np.float64), {}
    for number in (1, 2):
        p = {
            name.split(".")[1]: array.astype(np.float64)
            for name, array in arrays.items()
            if name.startswith(f"layer_{number}.")
        }
        g = OPENINGS.get(cell.model, lambda p, x: sigmoid(x @ p["gate"].T))(p, x)
        gates[f"layer {number}"] = g.mean(0)
        added, multiplied = PATHS[cell.model](p, x)
        x = g * added + (1 - g) * multiplied
    return gates


@pytest.mark.parametrize("model", GATED)
def test_mean_gates_are_the_definitions(model):
    """In both layers, mean gates over the validation rows equal those of the definitions, on the layer's own input."""
    changes = {"bounds": "regularized"} if model == "gated-NAU-NMU" else {}
    cell = small_cell(model, hidden_size=3, evaluation_rows=1234, **changes)
    for seed in range(5):
        arrays = drawn(cell, seed)
        actual, expected = mean_gates(cell, arrays), by_definition(cell, arrays)
        assert list(actual) == ["layer 1", "layer 2"]
        for layer, gates in actual.items():
            assert (gates.shape, gates.dtype) == (expected[layer].shape, np.float32)
            np.testing.assert_allclose(gates, expected[layer], rtol=1e-4)


@pytest.mark.parametrize("model", GATED)
def test_mean_gates_of_a_trial_do_not_depend_on_the_others(model):
    """Each of many trials has the same bits as alone; NaN in one trial doesn't change the others."""
    cell = small_cell(model, hidden_size=50, evaluation_rows=450)
    trials = [Weights(str(seed), 0, drawn(cell, seed)) for seed in range(9)]  # more than are processed at a time
    gate = trials[4].arrays["layer_1.gate"]
    (gate[0] if len(gate) == 1 else gate)[7] = np.nan
    mean_gates_of_all = mean_gates(cell, stacked_weights(trials))
    assert {layer: gates.shape for layer, gates in mean_gates_of_all.items()} == {"layer 1": (9, 50), "layer 2": (9, 1)}
    for place, weights in enumerate(trials):
        alone = mean_gates(cell, weights.arrays)
        assert all(alone[layer].tobytes() == mean_gates_of_all[layer][place].tobytes() for layer in mean_gates_of_all)
    wrong = {layer: np.argwhere(np.isnan(gates)).tolist() for layer, gates in mean_gates_of_all.items()}
    sees_input = not model.startswith("iNALU")
    assert wrong == {"layer 1": [[4, 7]], "layer 2": [[4, 0]] if sees_input else []}


@pytest.mark.parametrize("model", sorted(set(MODELS) - set(GATED)))
def test_a_network_without_gates_has_none(model):
    """A network without gates has no mean gates, for one trial or for many."""
    cell = small_cell(model)
    weights = Weights("one", 0, drawn(cell, 0))
    assert mean_gates(cell, weights.arrays) == mean_gates(cell, stacked_weights([weights, weights])) == {}


def test_reading_weights_does_not_change_torch():
    """Reading weights changes neither torch's random state nor its number of threads."""
    cell, threads = small_cell("NALU"), torch.get_num_threads()
    arrays = drawn(cell, 0)
    try:
        torch.set_num_threads(2)
        before = torch.get_rng_state()
        mean_gates(cell, arrays)
        effective_weights(cell, arrays)
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("model", MODELS)
def test_effective_weights_are_those_of_the_sparsity_error(model):
    """The sparsity error is the largest distance of effective weights without G; shapes are [outputs, inputs]."""
    engine = ENGINES["torch"]
    changes = {"learning_rate": 0.1, **({"bounds": "regularized"} if MODELS[model].has_bounds else {})}
    trained, later = (
        engine.start(
            Pack(tuple(Trial(small_cell(model, hidden_size=3, iterations=n, **changes), seed) for seed in range(3))),
            device="cpu",
        )
        for n in (39, 40)
    )
    trained.advance(1e9)
    later.advance(1e9)
    weights = trained.finish()[2]
    errors = [curve.metrics["sparsity_error"][-1] for curve in later.finish()[1]]
    matrices = effective_weights(small_cell(model, hidden_size=3, **changes), stacked_weights(weights))
    weighing = {name: array for name, array in matrices.items() if name[-1] not in "Gg"}
    inputs = {"layer 1": 4, "layer 2": 6 if model == "NMRU" else 3}
    assert all(
        array.shape == (3, 3 if name[:7] == "layer 1" else 1, inputs[name[:7]]) for name, array in weighing.items()
    )
    largest = {name: np.minimum(abs(array), abs(1 - abs(array))).max((1, 2)) for name, array in weighing.items()}
    of_layers = [[error for name, error in largest.items() if name.startswith(layer)] for layer in inputs]
    join = np.mean if model in AVERAGED else np.max
    np.testing.assert_array_equal(
        np.max([join(errors_of_layer, axis=0) for errors_of_layer in of_layers], axis=0), errors
    )


@pytest.mark.parametrize(
    ("model", "paths"),
    [
        ("NMU", ("W",)),
        ("ReLU", ("W",)),
        ("NALU", ("W", "G")),
        ("NALU-separate", ("NAC₊", "NAC•", "G")),
        ("gated-NAU-NMU", ("NAU", "NMU", "G")),
        ("iNALU", ("NAC₊", "NAC•", "G")),
    ],
)
def test_effective_weights_are_named_by_layer_and_path(model, paths):
    """Effective weights are named by layer and path, with the gate as G."""
    cell = small_cell(model)
    arrays = drawn(cell, 0)
    matrices = effective_weights(cell, arrays)
    assert list(matrices) == [f"layer {number}, {path}" for number in (1, 2) for path in paths]
    if "G" in paths:
        np.testing.assert_array_equal(matrices["layer 2, G"], arrays["layer_2.gate"])


@pytest.mark.parametrize("read", [mean_gates, effective_weights])
def test_arrays_of_another_network_are_refused(read):
    """Missing arrays, other shapes and different numbers of trials are errors that name the arguments."""
    cell = small_cell("NALU")
    arrays = drawn(cell, 0)
    few = {name: array for name, array in arrays.items() if name != "layer_2.gate"}
    other = drawn(small_cell("NALU", hidden_size=3), 0)
    mixed = arrays | {"layer_2.gate": arrays["layer_2.gate"][None]}
    deep = {name: array[None, None] for name, array in arrays.items()}
    for wrong in (few, other, mixed, deep, {}, arrays | {"layer_2.bias": np.zeros(1, np.float32)}):
        with pytest.raises(ValueError, match=r"must have the shapes .*'layer_1.gate': \(2, 4\).* but got"):
            read(cell, wrong)

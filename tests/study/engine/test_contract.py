"""The contract of all engines, run over ENGINES."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from study.engine import Engine
from study.errors import DeviceError
from study.records import Cell, Checkpoint, Outcome, Pack, Result, Sources, Trial
from study.stream.stream import Purpose, uniforms
from tasks.arithmetic import MODELS, TASKS, ArithmeticTask
from tasks.arithmetic.cell import task_of, typed_cell
from tasks.arithmetic.engine.gpu.engine import GpuEngine
from tasks.arithmetic.engine.shared.evaluation_rows import EvaluationRows
from tasks.arithmetic.models import SINGLE_LAYERS
from tasks.arithmetic.networks import Network
from tests.engines import ENGINES
from tests.study.builders import GIVEN, INPUTS, small_cell, small_pack
from units.unit import Bounds

CELLS: dict[str, dict[str, Any]] = {
    "simple": {},
    "hidden 10": {"hidden_size": 10},
    "odd sizes": {"batch_size": 13, "evaluation_rows": 37, "hidden_size": 3},
    "arithmetic": {"task": "arithmetic", "input_size": 20, "subset_ratio": 0.25, "overlap_ratio": 0.5},
    "two intervals": {"interpolation_range": ((-2.0, -1.0), (1.0, 2.0))},
    "three subsets": {"task": "arithmetic", "input_size": 30, "subset_ratio": 0.2, "overlap_ratio": 0.0, "subsets": 3},
    "sgd": {"optimizer": "sgd", "learning_rate": 1e-4},
    "momentum": {"optimizer": "momentum", "momentum": 0.9, "learning_rate": 1e-4},
    "squared": {"sparsity_shape": "squared"},
    "exponential": {"sparsity_scaling": "exponential", "sparsity_start": None, "sparsity_end": None},
    "regularized": {"bounds": "regularized", "out_of_bounds_strength": 1.0, "out_of_bounds_shape": "linear"},
    "when decided": {"stop": "when_decided"},
    "single module": {"task": "single-module", "input_size": 10, "hidden_size": None},
    "initial weights of its own": {"init": "independent"},
    "two negative factors": {"init_signs": "two_negative", "hidden_size": 5},
    "L1": {"l1_strength": 1e-2, "l1_first_strength": 1e-3},
    "limited gradients": {"clip_norm": 0.1, "clip_value": 0.05},
    "new starts": {
        "model": "iNALU-Primer",
        "operation": "sub",
        "learning_rate": 1e-6,
        "outward_strength": 0.1,
        "outward_start": 5,
        "restart_memory": 8,
    },
    "signs and gates": {"model": "RealNPU-modified"},
    "halves": {**INPUTS["halves"], "relative_error": True, **GIVEN},
    "normal": {**INPUTS["normal"], **GIVEN},
    "Benford": {**INPUTS["benford"], **GIVEN},
    "reciprocal": {
        "task": "single-module",
        "operation": "reciprocal",
        "input_size": 1,
        "subsets": 1,
        "hidden_size": None,
        **GIVEN,
    },
    **{op: {"operation": op} for op in ("add", "sub", "div", "root")},
    "square": {"operation": "squared"},
}


# The GPU engine's blocks also run on the CPU, by the same phases as in its kernels.
_EMULATED = "fused-gpu, emulated"
ALL: dict[str, Engine] = ENGINES | {_EMULATED: GpuEngine(emulated=True)}
_NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
# Compiling the emulation takes twelve seconds a shape: `make test` has one model of each family, and odd sizes.
_COMPILED_FIRST = {"NMU", "NALU-separate", "gated-NAU-NMU", "NAC-mul-sigma", "linear"} | CELLS.keys() - {
    "hidden 10", "arithmetic", "three subsets", "regularized",
}  # fmt: skip
_ONE_LAYER_FIRST = {"NMU", "NAC-mul"}
# In compiled engines, activations differ only in their function, so two stand for all. All engines use
# the same code to draw the initial state of a trial.
_NOT_EMULATED = {
    "ReLU", "ReLU6", "tanh", "sigmoid", "softsign", "ELU", "initial weights of its own", "two negative factors",
}  # fmt: skip
# The first of two layers has the code of one layer: a model of each family stands for all of it.
_ONE_LAYER = {"NMU", "NAC-mul", "NAU", "NALU", "gated-NAU-NMU"}


def _param(engine: str, *names: str, first: Collection[str] = _COMPILED_FIRST) -> Any:
    marks = [_NEEDS_GPU] if engine == "fused-gpu" else []
    if engine == _EMULATED and not set(names) <= set(first):
        marks.append(pytest.mark.slow)
    return pytest.param(engine, *names, marks=marks)


def on_each_engine(
    argument: str,
    names: Iterable[str],
    emulated: Collection[str] | None = None,
    first: Collection[str] = _COMPILED_FIRST,
) -> pytest.MarkDecorator:
    """Parametrise a test by engine and by name of a model or a cell.

    Args:
        argument: name of the test's argument.
        names: names of models or cells.
        emulated: names that are also tested on the emulated GPU engine; None for all outside `_NOT_EMULATED`.
        first: names whose emulated tests are part of `make test`; the others are slow tests.
    """
    emulated_names = set(names) - _NOT_EMULATED if emulated is None else emulated
    parameters = [
        _param(engine, name, first=first)
        for engine in ALL
        for name in names
        if engine != _EMULATED or name in emulated_names
    ]
    return pytest.mark.parametrize(("engine", argument), parameters, indirect=["engine"])


@pytest.fixture(params=[_param(name) for name in ALL])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return each engine in turn."""
    return ALL[request.param]


def accepted(engine: Engine, cell: Cell) -> None:
    reason = engine.refuses(cell)
    if reason is not None:
        pytest.skip(f"{engine.name} refuses: {reason}")


def trained(engine: Engine, pack: Pack, *, slice_s: float = 1e9) -> list[tuple[Any, ...]]:
    """Train a pack, and return the parts of results that mustn't depend on pack and time slices."""
    training = engine.start(pack, device=engine.devices[0])
    while not training.done:
        training.advance(slice_s)
    return comparable(training.finish())


def comparable(finished: Any) -> list[tuple[Any, ...]]:
    results, curves, weights = finished
    return [
        (
            replace(result, training_s=0.0),
            curve.trial_id,
            *(
                a.tobytes()
                for a in (
                    curve.iteration,
                    curve.metrics["validation_mse"],
                    curve.metrics["test_mse"],
                    curve.metrics["sparsity_error"],
                )
            ),
            trial_weights.trial_id,
            trial_weights.iteration,
            {name: (array.shape, array.dtype, array.tobytes()) for name, array in trial_weights.arrays.items()},
        )
        for result, curve, trial_weights in zip(results, curves, weights, strict=True)
    ]


@on_each_engine("model", MODELS)
def test_a_trial_does_not_depend_on_its_pack(engine, model):
    """Every model's trials have the same bits alone, in a pack, and at another position in it."""
    accepted(engine, small_pack(0, model=model).trials[0].cell)
    together = trained(engine, small_pack(*range(9), model=model))
    assert trained(engine, small_pack(*reversed(range(9)), model=model)) == together[::-1]
    for seed in (0, 5, 8):
        assert trained(engine, small_pack(seed, model=model)) == [together[seed]]


@on_each_engine("model", SINGLE_LAYERS, _ONE_LAYER, _ONE_LAYER_FIRST)
def test_a_one_layer_trial_does_not_depend_on_its_pack(engine, model):
    """Mixed cells of one layer have the bits of each trial alone."""
    task = {"task": "single-module", "input_size": 10, "hidden_size": None}
    cells = [small_cell(model, operation=name, **task) for name in ("add", "div")] + [small_cell("NAC-mul", **task)]
    accepted(engine, cells[0])
    alike = [cell for cell in cells if engine.pack_key(cell) == engine.pack_key(cells[0])]
    trials = [Trial(cell, seed) for seed in range(3) for cell in alike]
    together = trained(engine, Pack(tuple(trials)))
    for place in (0, len(trials) // 2, len(trials) - 1):
        assert trained(engine, Pack((trials[place],))) == [together[place]]


@on_each_engine("name", CELLS)
def test_every_kind_of_cell_is_independent_of_place_and_slices(engine, name):
    """Every kind of cell has the same bits at any position and in any time slices."""
    changes = CELLS[name]
    accepted(engine, small_pack(0, **changes).trials[0].cell)
    together = trained(engine, small_pack(3, 4, 5, 6, 7, **changes))
    assert trained(engine, small_pack(5, **changes)) == [together[2]]
    assert trained(engine, small_pack(3, 4, 5, 6, 7, **changes), slice_s=0.0) == together


def test_differences_within_a_pack_do_not_leak(engine):
    """Trials with another strength, schedule, learning rate, variance or range don't change their neighbours."""
    cells = [
        small_cell(),
        small_cell(sparsity_strength=0.0, sparsity_start=None, sparsity_end=None),
        small_cell(sparsity_start=0, sparsity_end=5),
        small_cell(learning_rate=0.1),
        small_cell(init_variance=0.01),
        small_cell(init_range=((0.5, 1.0),)),
        small_cell(interpolation_range=((1.1, 1.2),), extrapolation_range=((-6.0, -2.0), (2.0, 6.0))),
        small_cell(success_epsilon=None, success_threshold=1e9),
    ]
    accepted(engine, cells[0])
    together = trained(engine, Pack(tuple(Trial(cell, 1) for cell in cells)))
    for cell, row in zip(cells, together, strict=True):
        assert trained(engine, Pack((Trial(cell, 1),))) == [row]
    assert len({row[3] for row in together}) == len(cells) - 1  # the last one differs in its threshold only


def mixed_cells() -> list[Cell]:
    """Return cells that train on the same rows with other models, sizes, operations or optimisers."""
    task = {"task": "arithmetic", "input_size": 20, "subset_ratio": 0.25, "overlap_ratio": 0.5, "batch_size": 40}
    units = [small_cell(model, hidden_size=2 + k % 4, **task) for k, model in enumerate(MODELS)]
    operations = [small_cell(hidden_size=3, operation=operation, **task) for operation in ("add", "div", "squared")]
    optimised = [
        small_cell(**(task | changes))
        for changes in (
            {"optimizer": "sgd", "learning_rate": 1e-4},
            {"optimizer": "momentum", "momentum": 0.9, "learning_rate": 1e-4},
            {"bounds": "regularized", "out_of_bounds_strength": 1.0, "out_of_bounds_shape": "squared"},
            {"sparsity_scaling": "exponential", "sparsity_start": None, "sparsity_end": None},
            {"sparsity_shape": "squared"},
            {"learning_rate": 0.1},
            {"init_variance": 0.01},
            {"subsets": 3, "overlap_ratio": 0.0, "subset_ratio": 0.2},
        )
    ]
    return [*units, *operations, *optimised, small_cell(interpolation_range=((-2.0, -1.0), (1.0, 2.0)), **task)]


def test_cells_that_share_rows_have_the_bits_of_single_trials(engine):
    """Cells of one seed, mixed with other seeds, have the bits that they have alone."""
    cells_by_key: dict[object, list[Cell]] = {}
    for cell in mixed_cells():
        if engine.refuses(cell) is None:
            cells_by_key.setdefault(engine.pack_key(cell), []).append(cell)
    cells = max(cells_by_key.values(), key=len)
    assert len(cells) > 2
    trials = [Trial(cell, seed) for seed in (3, 4) for cell in cells]
    order = np.random.default_rng(0).permutation(len(trials))
    together = trained(engine, Pack(tuple(trials[place] for place in order)))
    for row, place in list(zip(together, order, strict=True))[:: 1 if engine.name == "fused" else 4]:
        assert trained(engine, Pack((trials[place],))) == [row]


@on_each_engine("model", ["NMU", "NAC-mul-sigma", "NALU-separate"])
def test_each_trial_is_evaluated_on_its_own_range(engine, model):
    """Trials with shared and with separate evaluation rows, mixed, have the bits that they have alone."""
    near, far = small_cell(model), small_cell(model, interpolation_range=((3.0, 4.0),))
    trials = [Trial(cell, seed) for cell, seed in ((near, 0), (near, 1), (far, 0), (near, 2), (far, 1), (far, 2))]
    together = trained(engine, Pack(tuple(trials)))
    assert together == [trained(engine, Pack((trial,)))[0] for trial in trials]


@on_each_engine("model", ["NMU", "NAC-mul-sigma", "NALU-separate"])
def test_sources_of_randomness_have_separate_seeds(engine, model):
    """Init seed 3 and data seed 7 give the initial weights of seed 3 and the data of seed 7, in any pack."""
    cell = small_cell(model)
    accepted(engine, cell)
    crossed_trial = Trial(cell, Sources(3, 7).seed)
    (alone,) = trained(engine, Pack((crossed_trial,)))
    begins = {seed: engine.start(Pack((Trial(cell, seed),)), device=engine.devices[0]).checkpoint() for seed in (3, 7)}
    mixed = replace(begins[7], arrays=begins[3].arrays)
    training = engine.start(Pack((Trial(cell, 7),)), device=engine.devices[0], checkpoint=mixed)
    while not training.done:
        training.advance(1e9)
    (expected,) = comparable(training.finish())
    assert alone[2:6] == expected[2:6]  # the learning curve
    assert alone[8] == expected[8]  # the weights
    together = [Trial(cell, 3), crossed_trial, Trial(cell, Sources(7, 3).seed), Trial(cell, 7)]
    assert trained(engine, Pack(tuple(together)))[1] == alone


@on_each_engine("model", ["NMU", "NAC-mul-sigma", "NALU-separate"])
def test_evaluation_rows_may_have_a_separate_seed(engine, model):
    """Weights are those of the plain seed; validation and test rows depend on the evaluation seed."""
    cell = small_cell(model)
    accepted(engine, cell)
    trials = [Trial(cell, 3), Trial(cell, Sources(3, 3, 0).seed), Trial(cell, Sources(3, 3, 1).seed)]
    plain, first, second = trained(engine, Pack(tuple(trials)))
    assert plain[8] == first[8] == second[8]
    assert len({row[3] for row in (plain, first, second)}) == 3
    assert len({row[4] for row in (plain, first, second)}) == 3
    assert plain[5] == first[5] == second[5]  # the sparsity error depends only on weights
    assert trained(engine, Pack((trials[1],))) == [first]


@on_each_engine("name", ["simple", "momentum", "regularized", "when decided", "new starts"])
def test_resume_is_bit_exact(engine, name):
    """Resumed from checkpoints before, at and after evaluations, a pack ends with the same bits."""
    pack = small_pack(0, 1, 2, **CELLS[name])
    accepted(engine, pack.trials[0].cell)
    expected = trained(engine, pack)
    training = engine.start(pack, device=engine.devices[0])
    while not training.done:
        for _ in range(3):  # not a divisor of the 10 updates between evaluations
            training.advance(0.0)
        resumed = engine.start(pack, device=engine.devices[0], checkpoint=through_disk(training.checkpoint()))
        while not resumed.done:
            resumed.advance(1e9)
        assert comparable(resumed.finish()) == expected


def test_a_pack_of_many_shapes_resumes_bit_for_bit(engine):
    """A pack of all shapes that train side by side resumes from a checkpoint, even with ended trials."""
    cells = [
        small_cell(model, hidden_size=2 + k, stop="when_decided") for k, model in enumerate(("NMU", "NALU", "ReLU"))
    ]
    cells += [small_cell("linear", learning_rate=1e30, stop="when_decided")]
    alike = [cell for cell in cells if engine.pack_key(cell) == engine.pack_key(cells[0])]
    pack = Pack(tuple(Trial(cell, seed) for seed in range(3) for cell in alike))
    accepted(engine, pack.trials[0].cell)
    expected = trained(engine, pack)
    training = engine.start(pack, device=engine.devices[0])
    while training.advance(0.0).iteration < 15:
        pass
    resumed = engine.start(pack, device=engine.devices[0], checkpoint=through_disk(training.checkpoint()))
    while not resumed.done:
        resumed.advance(0.0)
    assert comparable(resumed.finish()) == expected
    assert any(row[0].stopped_early for row in expected) == (len(alike) > 1)


def through_disk(checkpoint: Checkpoint) -> Checkpoint:
    """Copy the arrays as storing and loading does, and check that none needs pickle."""
    assert all(array.dtype != object for array in checkpoint.arrays.values())
    assert all(len(array) <= len(checkpoint.trial_ids) for array in checkpoint.arrays.values())
    return replace(checkpoint, arrays={name: array.copy() for name, array in checkpoint.arrays.items()})


def test_a_checkpoint_of_other_trials_is_refused(engine):
    """A checkpoint of other trials, or of another engine, is an error."""
    pack, other = small_pack(0, 1), small_pack(1, 0)
    accepted(engine, pack.trials[0].cell)
    checkpoint = engine.start(pack, device=engine.devices[0]).checkpoint()
    with pytest.raises(ValueError, match="other trials"):
        engine.start(other, device=engine.devices[0], checkpoint=checkpoint)
    with pytest.raises(ValueError, match="engine"):
        engine.start(pack, device=engine.devices[0], checkpoint=replace(checkpoint, engine="another"))


@pytest.mark.parametrize("stop", ["never", "when_decided"])
def test_nan_does_not_affect_other_trials(engine, stop):
    """A learning rate that makes one trial diverge leaves its neighbours' bits unchanged."""
    wild = small_cell("linear", learning_rate=1e30, stop=stop)
    tame = small_cell("linear", stop=stop)
    accepted(engine, wild)
    pack = Pack((Trial(tame, 0), Trial(wild, 1), Trial(tame, 2)))
    rows = trained(engine, pack)
    assert rows[1][0].outcome == Outcome.DIVERGED
    assert [rows[0], rows[2]] == [trained(engine, Pack((pack.trials[i],)))[0] for i in (0, 2)]


@pytest.mark.parametrize("learning_rate", [1e-3, 1e30])
def test_stopping_when_decided_does_not_change_outcomes(engine, learning_rate):
    """Trials ended early have the outcome, best step and solved-at of a full run."""
    changes = {"learning_rate": learning_rate, "success_epsilon": None, "success_threshold": 1e6}
    full, early = (small_cell("linear", stop=stop, **changes) for stop in ("never", "when_decided"))
    accepted(engine, full)
    outcomes = []
    for cell in (full, early):
        rows = trained(engine, Pack(tuple(Trial(cell, seed) for seed in range(5))))
        results = [row[0] for row in rows]
        outcomes.append(
            [(r.outcome, r.best_iteration, r.solved_at_iteration, r.metrics.get("test_mse")) for r in results]
        )
        if cell is early and learning_rate == 1e30:
            assert all(r.stopped_early and r.iterations < 40 for r in results)
    assert outcomes[0] == outcomes[1]


@dataclass(frozen=True, kw_only=True)
class Means(ArithmeticTask):
    """An arithmetic task on the means of the subsets."""

    def target(self, sums: Tensor) -> Tensor:
        return super().target(sums / self.subset_size)


def sums_of_all(*, operation: str, **values: Any) -> ArithmeticTask:
    """Build the arithmetic task of sums, regardless of the cell's operation."""
    return ArithmeticTask(operation="add", **values)


@pytest.mark.parametrize("task", [Means, sums_of_all])
def test_a_foreign_task_is_refused_or_trained_on_its_target(engine, task, monkeypatch):
    """An engine refuses cells of a foreign task in TASKS, or trains them as the torch engine does."""
    monkeypatch.setitem(TASKS, "foreign", task)
    # This shape is compiled for other tests, too.
    cell = small_cell("linear", task="foreign", subset_ratio=0.5, overlap_ratio=0.5)
    if (reason := engine.refuses(cell)) is not None:
        assert reason.startswith("it doesn't know the task foreign (class Means), ")
        return
    (actual,), (expected,) = (ended(candidate, Trial(cell, 0))[1] for candidate in (engine, ENGINES["torch"]))
    np.testing.assert_allclose(actual.metrics["validation_mse"], expected.metrics["validation_mse"], rtol=1e-4)
    np.testing.assert_allclose(actual.metrics["test_mse"], expected.metrics["test_mse"], rtol=1e-4)


def test_every_number_of_a_result(engine):
    """A result names trial, engine and device, and agrees with its curve."""
    pack = small_pack(0, 1, success_epsilon=None, success_threshold=1e9)
    accepted(engine, pack.trials[0].cell)
    training = engine.start(pack, device=engine.devices[0])
    last = training.advance(1e9)
    assert (last.iteration, last.iterations, last.trials, last.solved, last.diverged) == (41, 41, 2, 2, 0)
    results, curves, _ = training.finish()
    for trial, result, curve in zip(pack.trials, results, curves, strict=True):
        assert isinstance(result, Result)
        assert (result.trial, result.engine, result.device) == (trial, engine.name, engine.devices[0])
        assert (result.outcome, result.solved_at_iteration, result.iterations) == (Outcome.SOLVED, 0, 40)
        assert curve.iteration.tolist() == [0, 10, 20, 30, 40]
        window = curve.metrics["validation_mse"][-3:]
        best = 2 + int(np.argmin(window))
        assert result.best_iteration == 10 * best
        assert result.metrics.get("validation_mse") == curve.metrics["validation_mse"][best]
        assert result.metrics.get("test_mse") == curve.metrics["test_mse"][best]
        assert result.metrics.get("sparsity_error") == curve.metrics["sparsity_error"][best]
        assert result.training_s > 0
    with pytest.raises(ValueError, match="must be done"):
        engine.start(pack, device=engine.devices[0]).finish()


def ended(engine: Engine, *trials: Trial) -> Any:
    """Train a pack of these trials to its end, and return results, curves and weights."""
    training = engine.start(Pack(trials), device=engine.devices[0])
    while not training.done:
        training.advance(1e9)
    return training.finish()


def errors_of(trial: Trial, arrays: Mapping[str, npt.NDArray[np.float32]]) -> tuple[float, float, float]:
    """Return validation MSE, test MSE and sparsity error of weights, computed by the units' own modules."""
    cell = typed_cell(trial.cell)
    task = task_of(cell)
    bounds = cast("Bounds", cell.bounds or "clipped")
    network = Network(cell.network, cell.input_size, cell.hidden_size, bounds=bounds).eval()
    names = {"first": "layer_1", "second": "layer_2"}
    network.load_state_dict(
        {
            name: torch.from_numpy(arrays[f"{names[name.split('.')[0]]}.{name.split('.')[1]}"])
            for name in network.state_dict()
        }
    )
    place = uniforms(np.array([trial.seed], np.uint64), 1, 0, Purpose.OFFSET)[0, 0]
    masks = torch.from_numpy(task.masks(task.offset(float(place))))[None]
    with torch.no_grad():
        errors = []
        for source, purpose in ((cell.trained_on, Purpose.VALIDATION), (cell.tested_on, Purpose.TEST)):
            ((x, target),) = EvaluationRows([source], cell, purpose, task, masks).chunks(slice(0, 1))
            errors.append(float((network(x[0].mT).mT - target[0]).double().square().mean()))
        sparsity = max(float(layer.sparsity_error()) for layer in network.layers)
    return errors[0], errors[1], sparsity


@on_each_engine("name", [*MODELS, *CELLS])
def test_weights_are_those_after_the_last_update(engine, name):
    """A trial's weights have the errors of the last evaluation of a trial that is one update longer."""
    changes = {"model": name} if name in MODELS else CELLS[name]
    cell = small_cell(**{"learning_rate": 1e-2, **changes})
    accepted(engine, cell)
    trials = [Trial(cell.replace(iterations=39), seed) for seed in range(3)]
    curves = ended(engine, *(Trial(cell, seed) for seed in range(3)))[1]
    for trial, weights, curve in zip(trials, ended(engine, *trials)[2], curves, strict=True):
        assert (weights.trial_id, weights.iteration) == (trial.id, curve.iteration[-1])
        errors = errors_of(trial, weights.arrays)
        np.testing.assert_allclose(
            errors[:2], (curve.metrics["validation_mse"][-1], curve.metrics["test_mse"][-1]), rtol=1e-4
        )
        np.testing.assert_allclose(errors[2], curve.metrics["sparsity_error"][-1], atol=1e-6)


@on_each_engine("model", MODELS)
def test_weights_have_the_names_and_shapes_of_the_units(engine, model):
    """On every engine, a trial's arrays have the names, order and shapes of the units' parameters, in float32."""
    cell = small_cell(model)
    accepted(engine, cell)
    (weights,) = ended(engine, Trial(cell, 0))[2]
    layers = Network(MODELS[model], cell.value("input_size"), cell.value("hidden_size")).layers
    expected = [
        (f"layer_{number}.{name}", tuple(parameter.shape), np.dtype(np.float32))
        for number, layer in enumerate(layers, start=1)
        for name, parameter in layer.named_parameters()
    ]
    assert [(name, array.shape, array.dtype) for name, array in weights.arrays.items()] == expected


def test_a_stopped_trial_keeps_its_weights(engine):
    """Trials ended early keep the weights of their last evaluation, even with NaN, or after a resume of the others."""
    cells = [
        small_cell("linear", learning_rate=rate, evaluate_every=1, stop="when_decided")
        for rate in (1e-3, 1e16, 1e30, 1e-3, 1e16)
    ]
    accepted(engine, cells[0])
    pack = [Trial(cell, seed) for seed, cell in enumerate(cells)]
    results, curves, weights = ended(engine, *pack)
    training = engine.start(Pack(tuple(pack)), device=engine.devices[0])
    while training.advance(0.0).iteration < 10:
        pass
    checkpoint = through_disk(training.checkpoint())
    resumed = engine.start(Pack(tuple(pack)), device=engine.devices[0], checkpoint=checkpoint)
    resumed.advance(1e9)
    assert comparable(resumed.finish()) == comparable((results, curves, weights))
    assert [result.stopped_early for result in results] == [False, True, True, False, True]
    for place, (trial, result, trial_weights) in enumerate(zip(pack, results, weights, strict=True)):
        assert trial_weights.iteration == result.iterations + (not result.stopped_early)
        full = trial.cell.replace(stop="never", iterations=trial_weights.iteration - 1)
        (expected,) = ended(engine, Trial(full, trial.seed))[2]
        for name, array in trial_weights.arrays.items():
            np.testing.assert_array_equal(array, expected.arrays[name])
        if place in (1, 4):  # one more update would make all weights NaN
            assert np.isfinite(trial_weights.arrays["layer_2.bias"]).all()


def test_training_lowers_the_error(engine):
    """The NMU's validation error falls by more than 95% within two thousand updates."""
    pack = small_pack(*range(8), iterations=2000, evaluate_every=1000, sparsity_start=5000, sparsity_end=6000)
    accepted(engine, pack.trials[0].cell)
    training = engine.start(pack, device=engine.devices[0])
    while not training.done:
        training.advance(1e9)
    _, curves, _ = training.finish()
    assert (
        np.median([curve.metrics["validation_mse"][-1] / curve.metrics["validation_mse"][0] for curve in curves]) < 0.05
    )


def test_memory_grows_with_the_pack(engine):
    """The estimate of a pack's memory is positive and grows with its trials."""
    small, large = engine.memory_mb(small_pack(0)), engine.memory_mb(small_pack(*range(64)))
    assert 0 < small < large


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_an_error():
    """Training on a missing GPU is an error that names the option."""
    with pytest.raises(DeviceError, match="--device cpu"):
        ENGINES["torch"].start(small_pack(0), device="cuda")

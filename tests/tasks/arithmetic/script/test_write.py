"""Agreement of scripts with their trials: weights and rows to the bit, learning curves up to rounding."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from study.errors import InputError
from study.plan.plan import make_plan
from study.plugins.presets import preset_names, preset_text
from study.records import Cell, Curve, Outcome, Trial
from study.spec import load_spec
from study.spec.cells import canonical_cell
from study.stream.stream import Purpose
from tasks.arithmetic import MODELS
from tasks.arithmetic.cell import task_of, typed_cell
from tasks.arithmetic.engine.shared.evaluation_rows import Draws, draw_rows
from tasks.arithmetic.engine.shared.initial_weights import initial_state
from tasks.arithmetic.engine.shared.task import masks_of
from tasks.arithmetic.models import SINGLE_LAYERS
from tasks.arithmetic.networks import Network
from tasks.arithmetic.script import trial_script
from tests.tasks.arithmetic.script.builders import SEED, beginning, cell_of, run, script_of, train
from tests.tasks.arithmetic.script.cases import ALONE_CASES, BOUNDED, CASES, LATER, METHOD_CASES, NEAR_ZERO

MOST_LINES, MOST_OF_LATER, WIDTH = 119, 131, 120


@pytest.mark.parametrize(("model", "values"), CASES)
def test_weights_and_rows_are_those_of_the_trial(model: str, values: dict[str, Any]) -> None:
    """Initial weights, batches and evaluation rows have the engines' bits; targets use the trial's subsets."""
    cell, typed = cell_of(model, values), typed_cell(cell_of(model, values))
    script = beginning(cell)
    expected = [array[0] for name, array in initial_state([Trial(cell, SEED)]).items() if "weight/" in name]
    parameters = [parameter.detach().numpy() for parameter in script["network"].parameters()]
    assert [value.tolist() for value in parameters] == [value.tolist() for value in expected]
    batches = script["draw"](SEED, script["TRAIN"], range(5, 8), 16, *script["TRAINED_ON"])
    drawn = np.empty((1, typed.input_size, 16), np.float32)
    Draws([typed.trained_on]).fill(drawn, np.array([SEED], np.uint64), 6, Purpose.TRAIN)
    batch = torch.from_numpy(drawn[0])
    assert torch.equal(batches[1], batch.T)
    sources = {Purpose.VALIDATION: typed.trained_on, Purpose.TEST: typed.tested_on}
    for rows, (purpose, source) in zip(script["sets"], sources.items(), strict=True):
        assert rows.tolist() == draw_rows([source], typed, purpose)[0].T.tolist()
    task = task_of(typed)
    sums = torch.from_numpy(masks_of(task, np.array([SEED], np.uint64))[0]) @ batch
    torch.testing.assert_close(script["target"](batch.T), task.target(sums).T)


@pytest.mark.parametrize(("model", "values"), [*METHOD_CASES, *ALONE_CASES])
def test_a_scripts_network_computes_the_same_as_the_units(model: str, values: dict[str, Any]) -> None:
    """Outputs and gradients of a script's network equal those of the units, in training and in evaluation.

    Weights are on both sides of their bounds. A single layer receives inputs of both signs, and a zero; a second layer
    receives such numbers from the first.
    """
    cell = cell_of(model, values)
    typed, script = typed_cell(cell), beginning(cell)
    bounds = "regularized" if typed.bounds == "regularized" else "clipped"
    network = Network(typed.network, typed.input_size, typed.hidden_size, bounds=bounds)
    random = torch.Generator().manual_seed(3)
    x = 1 + torch.rand(16, typed.input_size, generator=random)
    is_alone = len(network.layers) == 1
    if is_alone:
        x *= torch.randn(x.shape, generator=random).sign()
        x[0, -1] = 0
    pairs = list(zip(network.parameters(), script["network"].parameters(), strict=True))
    for theirs, own in pairs:
        weights = 0.5 + 0.8 * torch.randn(theirs.shape, generator=random)
        if is_alone:
            weights[..., -1] = -0.5  # the weight of the zero input
        own.data = theirs.data = weights
    for is_training in (True, False):
        outputs = network.train(is_training)(x), script["network"].train(is_training)(x)
        torch.testing.assert_close(outputs[1], outputs[0], rtol=1e-5, atol=1e-5)  # processors round differently
        for output in outputs:
            output.sum().backward()
    for theirs, own in pairs:
        torch.testing.assert_close(own.grad, theirs.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("model", "values"), CASES)
def test_a_script_trains_as_an_engine_does(model: str, values: dict[str, Any]) -> None:
    """Regularisers, limits, optimiser, bounds and restarts agree: each metric is equal up to rounding.

    Units with logarithms or reciprocals of numbers near 0 amplify rounding fast, so only their first updates are
    compared. An MSE below 1e-11 consists of rounding alone.
    """
    result, curve, _ = train(cell_of(model, values))
    script = run(str(trial_script("a-study", result, curve)))
    assert list(script["curve"]) == curve.iteration.tolist()
    assert script["outcome"] == str(result.outcome)
    expected = np.stack([curve.metrics["validation_mse"], curve.metrics["test_mse"]], axis=1)
    is_rough = model in NEAR_ZERO and "task" not in values
    first, tolerance = (8, 5e-3) if is_rough else (len(expected), 1e-4)
    printed_mses = np.array(list(script["curve"].values()))
    rounding = 1e-11 * max(1.0, expected[0].max())
    np.testing.assert_allclose(printed_mses[:first], expected[:first], rtol=tolerance, atol=rounding)
    errors = np.array(re.findall(r"sparsity error (\S+)", script["printed"]), float)
    np.testing.assert_allclose(errors[:first], curve.metrics["sparsity_error"][:first], rtol=tolerance, atol=1e-4)
    if not is_rough:
        *_, stored, repeated, verdict = script["printed"].splitlines()
        assert stored.removeprefix("stored: ") == repeated.removeprefix("here:   ")
        assert verdict.endswith("of the threshold: at all of these iterations")


def cells_of_presets() -> Iterable[Cell]:
    """Return a cell for each task, model and operation in presets."""
    pattern = re.compile(r"name: (arithmetic|simple|single-module)\b")
    names = [name for name in preset_names() if pattern.search(preset_text(name))]
    cells = [cell for name in names for cell in make_plan(load_spec(name)).cells]
    return {(cell.task, cell.model, cell.value("operation")): cell for cell in cells}.values()


def extreme_cells() -> Iterator[Cell]:
    """Yield cells with the longest scripts."""
    long = {
        "init_variance": 0.0123456789, "stop": "when_decided", "best_step_window": 10, "optimizer": "momentum",
        "learning_rate": 0.00123456789, "iterations": 15_000_000, "extrapolation_range": ((-6.0, -2.0), (2.0, 6.0)),
    }  # fmt: skip
    parts = {
        "l1_first_strength": 1.23456789e-7, "l1_strength": 0.0123456789, "outward_strength": 0.0123456789,
        "outward_start": 12_345_678, "restart_memory": 12_345_678, "clip_norm": 0.123456789, "clip_value": 0.0123456789,
    }  # fmt: skip
    for model in MODELS:
        for values in ({}, *(BOUNDED.values() if MODELS[model].has_bounds else ())):
            for task in ({}, {"input_size": 1000}, {"input_size": 1000, "operation": "add", "subsets": 5}):
                for more in ({}, parts):
                    name = "arithmetic" if task else "simple"
                    yield canonical_cell(name, model, {**values, **task, **long, **more})
                if model in SINGLE_LAYERS and "subsets" not in task:
                    yield canonical_cell("single-module", model, {**values, **task, **long, **parts})


def most_lines(cell: Cell) -> int:
    """Return the maximum number of a script's lines; it is greater for later units and their options."""
    parts = ("l1_strength", "outward_strength", "restart_memory", "clip_norm", "clip_value")
    is_plain = cell.model not in LATER and all(cell.value(name) is None for name in parts)
    return MOST_LINES if is_plain else MOST_OF_LATER


@pytest.mark.parametrize("cells", [cells_of_presets, extreme_cells])
def test_a_script_is_short_and_needs_torch_alone(cells: Callable[[], Iterable[Cell]]) -> None:
    """A script has at most 119 lines, or 131 with later units, none too long, and imports only math and torch."""
    for cell in cells():
        text = script_of(cell, iterations=100, solved_at=55).text
        tree = ast.parse(text)
        assert text.count("\n") <= most_lines(cell), cell
        assert max(map(len, text.splitlines())) <= WIDTH, cell
        assert not any(line != line.rstrip() or "\n\n\n\n" in text for line in text.splitlines()), cell
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert imported == {"math", "torch"}
        assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


@pytest.mark.parametrize("mse", [1.5e-20, np.nan, np.inf])
def test_a_script_has_the_main_points_of_the_stored_curve(mse: float) -> None:
    """A script has the first, last and solved-at evaluation, and the one before that, even with non-finite values."""
    script = run(str(script_of(cell_of("linear", {}), iterations=1000, solved_at=500, mse=mse)))
    steps, *mses = np.array(script["STORED"]).T
    assert 10 <= len(steps) <= 12
    assert {0, 499, 500, 1000} <= set(steps)
    np.testing.assert_allclose(np.array(mses), mse)


def test_a_script_prints_the_first_difference_of_curves() -> None:
    """If curves differ from the stored one, a script prints the first evaluation with a different MSE."""
    result, curve, _ = train(cell_of("linear", {}))
    mses = curve.metrics["test_mse"].copy()
    mses[curve.iteration >= 12] *= 1.002
    changed = Curve(curve.trial_id, curve.iteration, {**curve.metrics, "test_mse": mses})
    script = run(str(trial_script("a-study", result, changed)))
    assert script["printed"].endswith("of the threshold: before iteration 13\n")


@pytest.mark.parametrize(("learning_rate", "outcome"), [(1e3, "diverged"), (1e-3, "unsolved")])
def test_a_trial_that_ends_early_ends_early(learning_rate: float, outcome: str) -> None:
    """With `stop: when_decided`, a script ends at the same evaluation as the engine."""
    values = {"stop": "when_decided", "optimizer": "sgd", "learning_rate": learning_rate}
    result, curve, _ = train(cell_of("linear", values, iterations=100))
    script = run(str(trial_script("a-study", result, curve)))
    assert script["outcome"] == str(result.outcome) == outcome
    assert list(script["curve"]) == curve.iteration.tolist()
    assert result.stopped_early == (outcome == "diverged")


def test_best_steps_are_in_the_window() -> None:
    """A trial that was solved before the window, but not in it, is unsolved."""
    cell = cell_of("linear", {"best_step_window": 1, "learning_rate": 100.0, "success_threshold": 1e6})
    result, curve, _ = train(cell)
    script = run(str(trial_script("a-study", result, curve)))
    assert result.outcome is Outcome.UNSOLVED
    assert result.solved_at_iteration is not None
    assert script["outcome"] == "unsolved"
    assert script["solved_at"] == f"first at iteration {result.solved_at_iteration}"


def test_other_tasks_are_refused() -> None:
    """A cell of another family is refused, since it has no script."""
    cell = Cell("identity", "NAU", {})
    with pytest.raises(InputError, match="its task, 'identity', isn't of the arithmetic family"):
        script_of(cell)


def test_a_file_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has the trial's name or a given name; existing files aren't replaced, and a failure leaves none."""
    monkeypatch.chdir(tmp_path)
    script = script_of(cell_of("linear", {}))
    path = script.write()
    assert path == Path(f"trial-{script.trial_id}.py")
    assert path.read_text(encoding="utf-8") == script.text == str(script)
    with pytest.raises(InputError, match=r"there is a file .* already"):
        script.write(path)
    with pytest.raises(InputError, match="can't be written: No such file"):
        script.write("none/script.py")
    other = script.write("other.py")
    assert sorted(file.name for file in tmp_path.iterdir()) == [str(other), str(path)]

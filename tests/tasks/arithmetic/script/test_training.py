"""Parts of a script's training for later units: their schedules, and their absence in other scripts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from study.engine.penalties import stepwise
from tasks.arithmetic import MODELS
from tasks.arithmetic.models import SINGLE_LAYERS
from tasks.arithmetic.script import trial_script
from tests.tasks.arithmetic.script.builders import cell_of, run, script_of, train
from tests.tasks.arithmetic.script.cases import ALONE, PARTS

MARKS = {
    "l1_strength": "β = ",
    "outward_strength": "torch.relu(20 - p.abs())",
    "restart_memory": "RESTART",
    "clip_norm": "clip_grad_norm_",
    "clip_value": "clip_grad_value_",
}
"""Parts of a script's text that depend on a hyperparameter."""


@pytest.mark.parametrize(
    ("first", "last"), [(1e-7, 1e-5), (1e-9, 1e-7), (3e-9, 1e-7), (1e-3, 1e-3), (1e-300, 1e-5), (0.5, 20.0)]
)
def test_l1_grows_in_steps(first: float, last: float) -> None:
    """In trials of any length, L1's strength grows tenfold after every 10,000 iterations, up to the last strength."""
    text = script_of(cell_of("NPU", {**ALONE, "l1_first_strength": first, "l1_strength": last})).text
    (strength,) = re.findall(r"    β = (.+)\n", text)
    for iteration in (0, 9_999, 10_000, 19_999, 20_000, 25_000, 100_000, 2_949_999, 2_950_000, 10_000_000):
        value = eval(strength, {"iteration": iteration})  # noqa: S307
        assert value == pytest.approx(stepwise(iteration, first, last), rel=1e-14, abs=0)


@pytest.mark.parametrize("name", [name for name in PARTS if name.startswith("outward")])
def test_parameters_are_pushed_outward_while_the_error_is_low(name: str) -> None:
    """Curves of the cases cross the limit of the outward push, and differ without the push."""
    model, values = PARTS[name]
    _, curve, _ = train(cell_of(model, values))
    mses = curve.metrics["validation_mse"][curve.iteration >= values["outward_start"]]
    assert mses.min() < 1 < mses.max()
    _, other, _ = train(cell_of(model, {**values, "outward_strength": 0.0}))
    assert not np.allclose(other.metrics["validation_mse"], curve.metrics["validation_mse"], rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in PARTS if name.startswith("new starts")])
def test_new_starts_are_drawn_from_the_stream(name: str) -> None:
    """Each case has a restart; without later updates, the script's weights have the engine's bits."""
    model, values = PARTS[name]
    result, curve, weights = train(cell_of(model, values))
    script = run(str(trial_script("a-study", result, curve)))
    assert script["since"] > 0
    if values["learning_rate"] > 1e-9:
        return
    expected = [array.tolist() for array in weights.arrays.values()]
    assert [parameter.tolist() for parameter in script["network"].parameters()] == expected


@pytest.mark.parametrize(
    ("model", "task"), [*((model, {}) for model in MODELS), *((model, ALONE) for model in SINGLE_LAYERS)]
)
def test_a_script_has_only_the_parts_of_its_trial(model: str, task: dict[str, Any]) -> None:
    """A script has clipping, penalties, restarts and modes only if its hyperparameters or units use them."""
    cell = cell_of(model, task)
    text = script_of(cell).text
    assert {name for name, mark in MARKS.items() if mark in text} == {name for name in MARKS if cell.value(name)}
    assert ("network.eval()" in text) == ("network.train()" in text) == (model in ("NRU", "NMRU"))

"""The training of iNALU's own experiment: what moves when, when trials start anew, and that each is as if alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks import inalu
from benchmarks.inalu_data import OPERATIONS, Key, Rows, all_keys, numbers_of, rows_of
from benchmarks.inalu_losses import Losses
from benchmarks.inalu_trials import Trials, mse_of_rows, squared_error
from benchmarks.inalu_units import ARMS, start_values
from benchmarks.inalu_updates import Group
from study.engine.device import one_thread
from study.stream.stream import Purpose, uniforms
from units.inalu_training import ORIGINAL, INALUTraining, outward_sum

NEVER = replace(ORIGINAL, outward_from=10**9, restart_every=None)
SOON = replace(ORIGINAL, outward_from=40, restart_every=50, restart_window=5, restart_memory=45)
every_arm = pytest.mark.parametrize("arm", ARMS)


def values_of(trials: Trials) -> dict[str, torch.Tensor]:
    """Copy all parameters by their names."""
    return {name: parameter.detach().clone() for name, parameter in trials.unit.named_parameters()}


def trained(arm: str, keys: list[Key], rows: Rows, iterations: int, training: INALUTraining) -> Trials:
    """Train trials for some iterations."""
    trials = Trials(arm, keys, iterations, training)
    with one_thread():
        for iteration in range(iterations):
            trials.step(iteration, *rows.batch(iteration))
    return trials


# --- updates ----------------------------------------------------------------------------------------------------


@every_arm
def test_eight_batches_of_ten_move_weights_and_two_the_gate(arm: str) -> None:
    """Batches 0 to 7 of ten in turn leave ĝ where it is, 8 and 9 leave Ŵ and M̂, in each trial."""
    keys = all_keys(1)
    rows = rows_of(numbers_of(keys, rows=640), "sub")
    trials = Trials(arm, keys, 20, NEVER)
    for iteration in range(20):
        before = values_of(trials)
        trials.step(iteration, *rows.batch(iteration))
        for name, value in values_of(trials).items():
            moves = (value != before[name]).flatten(1).any(1)
            assert moves.all() if (name == "gate") == (iteration % 10 >= 8) else not moves.any()


def test_an_update_is_that_of_tensorflow() -> None:
    """Mean squares start at 1, decay by 0.9, and gradients are clipped at 0.1 one by one."""
    parameter = torch.nn.Parameter(torch.zeros(1, 1, 3))
    group = Group([parameter], 0.1)
    for _ in range(2):
        group.update([torch.tensor([[[5.0, -0.02, float("nan")]]])])
    steps = [[0.01 * g / np.sqrt(s + 1e-10) for s in (0.9 + 0.1 * g * g, 0.81 + 0.19 * g * g)] for g in (0.1, -0.02)]
    assert parameter[0, 0, :2].tolist() == pytest.approx([-sum(step) for step in steps], rel=1e-5)
    assert parameter[0, 0, 2].isnan()


@every_arm
def test_parameters_are_pushed_outward_by_the_gradient_of_the_regulariser(arm: str) -> None:
    """A push is an update by the gradient that automatic differentiation gives, and 20 is its end."""
    trials = Trials(arm, all_keys(1), 1, NEVER)
    strengths = torch.tensor([0.05, 0.0, 0.05, 0.0, 0.05, 0.05, 0.05])
    with torch.no_grad():
        trials.unit.gate[2] = 20.5
    before = values_of(trials)
    parameters = dict(trials.unit.named_parameters())
    (strengths * outward_sum(trials.unit)).sum().backward()  # type: ignore[arg-type]
    Group(list(parameters.values()), 0.1).push(strengths)
    for name, parameter in parameters.items():
        gradient = parameter.grad
        square = 0.9 + 0.1 * gradient**2
        torch.testing.assert_close(parameter.detach(), before[name] - 0.01 * gradient / square.sqrt())
        assert (parameter[[1, 3]] == before[name][[1, 3]]).all()
        grows = parameter.abs() > before[name].abs()
        assert grows[[0, 4, 5, 6]].all()
        assert grows[2].all() == (name != "gate")


def test_only_trials_with_a_low_error_are_pushed() -> None:
    """From the first iteration of the regulariser on, a batch moves Ŵ, M̂ and ĝ of trials whose MSE is below 1."""
    keys = all_keys(1)
    rows = rows_of(numbers_of(keys, rows=640), "add")
    trials = Trials("separate", keys, 9, replace(NEVER, outward_from=5))
    for iteration in range(8):
        before, low = values_of(trials), squared_error(trials.unit, *rows.batch(iteration)) < 1
        assert low.any()
        assert not low.all()
        trials.step(iteration, *rows.batch(iteration))
        moves = (values_of(trials)["gate"] != before["gate"]).flatten()
        assert torch.equal(moves, low if iteration >= 5 else torch.zeros_like(low))


def test_the_loss_that_is_stored_is_the_last_that_was_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a batch pushes a trial, it is the error after the push of Ŵ and M̂ and before that of ĝ."""
    keys = all_keys(1)
    x, y = rows_of(numbers_of(keys, rows=64), "add").batch(0)
    trials, stored = Trials("shared", keys, 1, replace(NEVER, outward_from=0)), []
    before, gate = squared_error(trials.unit, x, y).detach(), values_of(trials)["gate"]
    monkeypatch.setattr(Losses, "add", lambda self, iteration, losses: stored.append(losses) or [])
    trials.step(0, x, y)
    with torch.no_grad():
        trials.unit.gate.copy_(gate)
    between = squared_error(trials.unit, x, y).detach()
    low = before < 1
    assert low.any()
    assert not low.all()
    assert (between != before).all()
    assert torch.equal(torch.from_numpy(stored[0]).float(), torch.where(low, between, before))


# --- new starts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [10, 900, 3_000])
def test_new_starts_are_those_of_the_definition(memory: int) -> None:
    """Sums over blocks decide as `INALUTraining.restarts` does on all losses, huge ones and NaN among them."""
    rule = replace(ORIGINAL, restart_every=300, restart_window=40, restart_memory=memory)
    rng = np.random.default_rng(memory)
    levels = np.array([9.0, 2.0, 1.03, 0.97, 0.2, 5.0, 3.0, 3.0, 9.0])[:, None]
    values = levels * rng.uniform(0.9, 1.1, (9, 4_000))
    values[0, rng.integers(0, 4_000, 40)] = 1e17
    values[5, 700:] = np.linspace(5, 1.2, 3_300)  # falls
    values[6, 2_222] = np.nan
    values[7] *= rng.pareto(1.2, 4_000) + 0.1
    values[8, 1_500:] *= np.repeat([0.2, 1.3, 0.8, 0.8, 0.8], 500)  # of which blocks of 500 differ, not what is in them
    losses = Losses(9, 4_000, rule)
    since, starts = [0] * 9, 0
    for iteration in range(4_000):
        new = losses.add(iteration, values[:, iteration])
        wanted = []
        if iteration >= 300 and iteration % 300 < 41:  # elsewhere, the rule's answer is no
            stored = [values[trial, since[trial] : iteration + 1] for trial in range(9)]
            wanted = [trial for trial in range(9) if rule.restarts(iteration, stored[trial])]
        assert new == wanted, iteration
        for trial in new:
            since[trial] = iteration + 1
        starts += len(new)
    assert starts >= 5


def plain_training(arm: str, key: Key, numbers: np.ndarray, operation: str, iterations: int) -> tuple[list, int]:
    """Train one trial as the protocol says it, with a list of losses and automatic differentiation alone."""
    unit = ARMS[arm](2, 1, generator=torch.Generator())
    parameters = dict(unit.named_parameters())
    seed = np.array([key.number()], np.uint64)

    def draw(iteration: int, purpose: Purpose):
        def uniform(index: int, shape: tuple[int, ...]) -> torch.Tensor:
            drawn = uniforms(seed, int(np.prod(shape)), iteration * len(parameters) + index, purpose)
            return torch.from_numpy(drawn).reshape(shape)

        return uniform

    start = start_values({name: tuple(each.shape) for name, each in parameters.items()}, draw(0, Purpose.INITIAL))
    unit.load_state_dict(start)
    squares = {name: torch.ones_like(each) for name, each in parameters.items()}

    def update(loss: torch.Tensor, names: list[str]) -> None:
        for name, gradient in zip(names, torch.autograd.grad(loss, [parameters[name] for name in names]), strict=True):
            clipped = gradient.clip(-0.1, 0.1)
            squares[name] = 0.9 * squares[name] + 0.1 * clipped**2
            parameters[name].data -= 0.01 * clipped / (squares[name] + 1e-10).sqrt()

    gate, weights = ["gate"], [name for name in parameters if name != "gate"]
    x = torch.from_numpy(numbers.T.astype(np.float32))
    y = torch.from_numpy(OPERATIONS[operation](*numbers).astype(np.float32))[:, None]
    losses: list[float] = []
    restarts = 0
    for iteration in range(iterations):
        place = 64 * iteration % len(x)
        batch_x, batch_y = x[place : place + 64], y[place : place + 64]
        loss = ((unit(batch_x) - batch_y) ** 2).mean()
        update(loss, weights if iteration % 10 < 8 else gate)
        if iteration >= SOON.outward_from and loss < 1:
            update(0.05 * outward_sum(unit), weights)
            loss = ((unit(batch_x) - batch_y) ** 2).mean()
            update(0.05 * outward_sum(unit), gate)
        losses.append(loss.item())
        if SOON.restarts(iteration, losses):
            unit.load_state_dict(SOON.new_values(unit, draw(iteration, Purpose.RESTART)))
            losses, restarts = [], restarts + 1
    return [parameter.detach() for parameter in parameters.values()], restarts


@every_arm
@pytest.mark.parametrize("operation", ["add", "div"])
def test_training_is_that_of_the_protocol(arm: str, operation: str) -> None:
    """Trials side by side come to the parameters and new starts of a plain loop over one trial."""
    keys = [Key("N(-3, 3)", 1), Key("U(-1, 1)", 2), Key("E(0.8)", 3)]
    numbers = numbers_of(keys, rows=640)
    trials = trained(arm, keys, rows_of(numbers, operation), 110, SOON)
    for trial, key in enumerate(keys):
        with one_thread():
            values, restarts = plain_training(arm, key, numbers[trial], operation, 110)
        assert trials.restarts[trial] == restarts
        for parameter, value in zip(trials.unit.parameters(), values, strict=True):
            torch.testing.assert_close(parameter[trial].detach(), value, rtol=1e-3, atol=1e-4)
    assert trials.restarts.any()


# --- trials -----------------------------------------------------------------------------------------------------


@every_arm
def test_a_trial_does_not_depend_on_the_others(arm: str) -> None:
    """Alone, among some, in another order or beside a trial that is NaN, a trial has the same bits and starts."""
    keys = all_keys(3)
    numbers = numbers_of(keys, rows=640)

    def run(places: list[int], broken: int | None = None) -> tuple[torch.Tensor, np.ndarray]:
        of = numbers[places]
        if broken is not None:
            of[broken] = np.nan
        trials = trained(arm, [keys[place] for place in places], rows_of(of, "div"), 120, SOON)
        return torch.cat([value.flatten(1) for value in values_of(trials).values()], 1), trials.restarts

    whole, restarts = run(list(range(21)))
    assert restarts.any()
    assert len({tuple(row) for row in whole.tolist()}) == 21
    for places in ([0], [20], [4, 17], list(range(20, -1, -1))):
        some, some_restarts = run(places)
        assert torch.equal(some, whole[places])
        assert (some_restarts == restarts[places]).all()
    beside, _ = run(list(range(21)), broken=5)
    assert beside[5].isnan().all()
    others = [place for place in range(21) if place != 5]
    assert torch.equal(beside[others], whole[others])


def test_an_inalu_learns_to_add() -> None:
    """With separate weights and the regulariser on early, trials extrapolate sums below the cut."""
    keys = [Key("U(-5, 5)", seed) for seed in range(3)]
    trials = trained(
        "separate", keys, rows_of(numbers_of(keys, rows=6_400), "add"), 1_600, replace(NEVER, outward_from=500)
    )
    test = rows_of(numbers_of(keys, is_test=True, rows=6_400), "add")
    assert (mse_of_rows(trials.unit, test) < inalu.LARGEST_MSE).all()
    assert (mse_of_rows(Trials("separate", keys, 1).unit, test) > 1).all()

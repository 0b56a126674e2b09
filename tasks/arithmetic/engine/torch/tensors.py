"""The tensors of the torch engine: trials train side by side, with one Python step an iteration for all.

Inputs are batch-innermost, [trials, features, batch], so that sums over features run along full cache lines; units get
the transposed view. Parameters, gradients and optimiser state are flat arrays, and the network's tensors are views of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.records import Trial
from study.stream.stream import Purpose
from tasks.arithmetic.cell import task_of, typed_cell
from tasks.arithmetic.distributions import Source
from tasks.arithmetic.engine.shared.evaluation_rows import CHUNK_ROWS, EvaluationRows, evaluation_keys
from tasks.arithmetic.engine.shared.initial_weights import KINDS, PREFIX, initial_state
from tasks.arithmetic.engine.shared.task import masks_of
from tasks.arithmetic.engine.shared.update_rule import UpdateRule, new_update_rule
from tasks.arithmetic.engine.torch.batches import Batches
from tasks.arithmetic.engine.torch.penalties import Penalties
from tasks.arithmetic.engine.torch.restarts import Restarts
from tasks.arithmetic.engine.torch.step import Flat, sparsity_strengths, step_compiled, step_torch
from tasks.arithmetic.init_seed import init_seed
from tasks.arithmetic.networks import Network

# Hidden values of one evaluation chunk, which fill about half of a core's second-level cache.
_CHUNK_NUMBERS = 64 * 1024


class TorchTensors:
    """The tensors of some trials.

    Args:
        trials: trials of equal tensor shape.
        device: ``cpu`` or ``cuda``.
        state: the result of `state` for these trials; None to draw initial weights.
    """

    def __init__(
        self, trials: Sequence[Trial], device: str, state: Mapping[str, npt.NDArray[Any]] | None = None
    ) -> None:
        self.trials = tuple(trials)
        self._cells = [typed_cell(trial.cell) for trial in trials]
        self._cell = self._cells[0]
        self._task = task_of(self._cell)
        init_seeds = np.array([init_seed(trial) for trial in trials], np.uint64)
        data_seeds = np.array([trial.sources.data for trial in trials], np.uint64)
        self._device = torch.device(device)
        self._on_cpu = device == "cpu"
        self._network = self._new_network(len(trials))
        self._flat = self._bind()
        self._load(initial_state(trials) if state is None else state)
        self._rule = self._new_rule()
        self._penalties = Penalties(self._cell, self._network, self._rule)
        if self._penalties.has_sparsity:
            self._rule = self._rule._replace(share=np.zeros_like(self._rule.share))
        self._restarts = (
            None if self._cell.restart_memory is None else Restarts(self._cell, self._network, init_seeds, state)
        )
        self._masks = torch.from_numpy(masks_of(self._task, data_seeds)).to(self._device)
        self._batches = Batches(self._cells, data_seeds, self._masks, self._task)
        self._validation = self._rows([cell.trained_on for cell in self._cells], Purpose.VALIDATION)
        self._test = self._rows([cell.tested_on for cell in self._cells], Purpose.TEST)
        self._chunks = self._new_chunks()

    # --- building -----------------------------------------------------------------------------------------

    def _new_network(self, trials: int) -> Network:
        cell = self._cell
        return Network(
            cell.network,
            cell.input_size,
            cell.hidden_size,
            trials=trials,
            bounds="regularized" if cell.bounds == "regularized" else "clipped",
        )

    def _bind(self) -> Flat:
        """Make the network's parameters views of one flat array, and their gradients views of another."""
        total = sum(p.numel() for p in self._network.parameters())
        flat = Flat(*(torch.zeros(total, device=self._device) for _ in range(4)))
        at = 0
        for p in self._network.parameters():
            p.data = flat.weight[at : at + p.numel()].view(p.shape)
            p.grad = flat.gradient[at : at + p.numel()].view(p.shape)
            at += p.numel()
        return flat

    def _views(self) -> dict[str, Tensor]:
        views, at = {}, 0
        for name, p in self._network.named_parameters():
            for kind in KINDS:
                flat: Tensor = getattr(self._flat, kind)
                views[f"{PREFIX}{kind}/{name}"] = flat[at : at + p.numel()].view(p.shape)
            at += p.numel()
        return views

    def _load(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, view in self._views().items():
            view.copy_(torch.from_numpy(np.ascontiguousarray(state[name])))

    def _new_rule(self) -> UpdateRule:
        shapes = {name: p.shape[1:] for name, p in self._network.named_parameters()}
        return new_update_rule(self._cells, shapes)

    def _rows(self, sources: Sequence[Source], purpose: Purpose) -> EvaluationRows:
        keys = evaluation_keys(self.trials)
        return EvaluationRows(sources, self._cell, purpose, self._task, self._masks, keys)

    def _new_chunks(self) -> list[tuple[slice, Network]]:
        """Split the trials into groups, each with a network whose parameters are views of the whole network's.

        On the CPU they are so small that they fit the cache; elsewhere there is one group.
        """
        trials, groups = len(self.trials), []
        size = max(1, _CHUNK_NUMBERS // (CHUNK_ROWS * self._cell.hidden_size)) if self._on_cpu else trials
        for first in range(0, trials, size):
            part = slice(first, min(first + size, trials))
            network = self._new_network(part.stop - part.start).eval()
            for view, parameter in zip(network.parameters(), self._network.parameters(), strict=True):
                view.data = parameter.data[part]
            groups.append((part, network))
        return groups

    # --- training -----------------------------------------------------------------------------------------

    @property
    def asks_for_losses(self) -> bool:
        """True if an update depends on the validation MSE of earlier evaluations."""
        return self._penalties.asks_for_losses or self._restarts is not None

    def update(self, iteration: int, losses: npt.NDArray[np.float32] | None = None) -> None:
        """Update every trial once, and restart iNALUs that meet their criterion.

        Args:
            iteration: updates made before this one.
            losses: validation MSE of the evaluations so far, float32 [trials, evaluations], if `asks_for_losses`; else
                None.

        Raises:
            ValueError: if a strength of the L1 penalty or a gradient limit is out of range; see `Penalties`.
        """
        prediction = self._network(self._batches.inputs(iteration).mT)
        with torch.no_grad():
            target = self._batches.targets()
            # Training needs only the gradient of the loss, the mean squared error over the batch.
            slope = (prediction - target).mul_(2 / self._cell.batch_size)
        outputs, slopes = [prediction], [slope]
        strength = sparsity_strengths(self._rule, iteration)
        for penalty, weight in self._penalties.terms(iteration, strength, None if losses is None else losses[:, -1]):
            outputs.append(penalty)
            slopes.append(weight)
        torch.autograd.backward(outputs, slopes)
        self._penalties.limit_gradients()
        step = step_compiled if self._on_cpu else step_torch
        step(self._rule, self._flat, iteration, strength)
        if self._restarts is not None and losses is not None:
            self._restarts.restart(iteration, losses)

    # --- evaluation ---------------------------------------------------------------------------------------

    @torch.no_grad()
    def evaluate(self) -> dict[str, npt.NDArray[np.float32]]:
        """Compute validation MSE, test MSE and sparsity error of every trial, float32 [trials].

        The relative test error is added if the cell measures it.
        """
        sparsity = torch.stack([layer.sparsity_error() for layer in self._network.layers]).amax(0)
        metrics = {
            "validation_mse": self._mse(self._validation),
            "test_mse": self._mse(self._test),
            "sparsity_error": sparsity.cpu().numpy(),
        }
        if self._cell.relative_error:
            metrics["test_relative_error"] = self._mean(self._test, lambda error, target: error.div_(target).abs_())
        return metrics

    def _mse(self, rows: EvaluationRows) -> npt.NDArray[np.float32]:
        return self._mean(rows, lambda error, target: error.square_())

    def _mean(self, rows: EvaluationRows, measure: Callable[[Tensor, Tensor], Tensor]) -> npt.NDArray[np.float32]:
        """Average a measure of errors and targets over the rows, float32 [trials]."""
        total = torch.zeros(len(self.trials), dtype=torch.float64, device=self._device)
        for part, network in self._chunks:
            for x, target in rows.chunks(part):
                measured = measure(network(x.mT).mT.sub_(target), target)
                total[part] += measured.sum((-1, -2)).double()
        return (total / self._cell.evaluation_rows).to("cpu", torch.float32).numpy()

    def has_nan(self) -> npt.NDArray[np.bool_]:
        """Return True for each trial with a parameter that is NaN, bool [trials]."""
        nan = [p.detach().isnan().flatten(1).any(1) for p in self._network.parameters()]
        return torch.stack(nan).any(0).cpu().numpy()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy weights, optimiser state and, with restarts, last starts; each array's first axis is the trial."""
        arrays = {name: view.cpu().numpy().copy() for name, view in self._views().items()}
        return arrays | ({} if self._restarts is None else self._restarts.state())

"""The trials of a pack of any task and any torch module: updates, evaluations and state.

One backward pass through `torch.func.vmap` differentiates the sum of the trials' losses. `torch.func.grad` inside of it
computes the same in 0.9 to 2.4 times the time, for networks of two hidden layers of 2, 32 and 128. After some updates
the pass is recorded, and its operations are repeated from then on (`traced`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_map

from study.engine.device import one_thread
from study.engine.packed.aligned import AlignedProducts
from study.engine.packed.flat import FlatWeights
from study.engine.packed.native import frozen_names, limits_of, regularisers, side_by_side, sparsity_errors
from study.engine.packed.optimizers import MOMENTS, Rates
from study.engine.packed.recipe import Member, Recipe, build, seed_of, seeded_generators, untrained
from study.engine.packed.traced import Compute, Draws, GivenStream, Gradients, ListeningStream, Numbers, drawn, recorded
from study.engine.penalties import l1
from study.interface.task import EVALUATIONS
from study.stream.device import use_device
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream, noise_from

Arrays = Mapping[str, npt.NDArray[Any]]
"""The state of trials by name; the first axis is the trial."""

Strengths = tuple[Tensor, Tensor]
"""The weights of the sparsity regulariser and of the L1 penalty in an iteration, scalars."""

SPARSITY_ERROR = "sparsity_error"
"""Suffix of the metric that the engine measures on the model's units, unless the task measures it."""

# Trials evaluated at once on the CPU: each has activations for a whole evaluation set, which may be large. On a GPU all
# are evaluated at once, since an operation takes about as long for few trials as for many.
_EVALUATED = 16

# Updates before the recording, which costs as much as tens of updates.
_RECORDED_AFTER = 64


class Members(ABC):
    """The trials of a pack in training.

    Args:
        recipe: the trials' common settings.
        members: each trial's own settings.
        size: number of rows in the arrays; the last trial is repeated to fill them.
        state: the trials' arrays as returned by `state`; None to start.
        device: the device that computes. Modules are built on the CPU, so that initial weights are the same everywhere.

    Raises:
        ValueError: unless the model has trainable parameters, all float32 or all float64.
        Exception: any error of the task or the model.
    """

    def __init__(self, recipe: Recipe, members: Sequence[Member], size: int, state: Arrays | None, device: str) -> None:
        self._device = device
        self.task = recipe.task
        self._metrics_names = tuple(recipe.task.measured())
        self._scores = recipe.task.scores()
        self._optimizer = recipe.optimizer
        self._count = len(members)
        self._rows = [min(row, self._count - 1) for row in range(size)]
        self._seeds = np.array([members[row].stream_seed for row in self._rows], np.uint64)
        self._rates = Rates([members[row].schedule for row in self._rows])
        self._modules = [build(recipe, member.seed) for member in members]
        moments = ["first", "second"][: MOMENTS[recipe.optimizer.name]]
        self._flat = FlatWeights(self._modules[0], size, moments, device=device)
        self._parts = self._flat.parts("weight")
        for name, part in self._parts.items():
            part.copy_(torch.stack([self._modules[row].get_parameter(name).detach() for row in self._rows]))
        self._limits = limits_of(self._modules[0])
        self._regularisers = regularisers(self._modules[0])
        self._sparsity = recipe.sparsity if self._regularisers else None
        self._l1 = recipe.l1
        self.iteration = 0
        if state is not None:
            self.iteration = int(state["iteration"][0])
            for kind in ("weight", *moments):
                for name, part in self._flat.parts(kind).items():
                    part.copy_(torch.from_numpy(state[f"{kind}/{name}"][self._rows]))
        self._sets = {
            part: purpose
            for part, purpose in EVALUATIONS.items()
            if any(name.startswith(f"{part}_") for name in self._metrics_names)
        }
        self._batches: dict[str, Any] = {}

    # --- for engines --------------------------------------------------------------------------------------

    def update(self, updates: int = 1) -> None:
        """Make a number of updates of every trial.

        Raises:
            ValueError: if the task's loss isn't a scalar.
            Exception: any error of the task or the model.
        """
        weight, gradient = self._flat.arrays["weight"], self._flat.arrays["gradient"]
        moments = [self._flat.arrays[name] for name in self._flat.moments]
        with self._computing():
            for _ in range(updates):
                self._differentiate()
                self._optimizer.step(weight, gradient, moments, self._rates.at(self.iteration), self.iteration)
                self._limit(self._parts)
                self.iteration += 1

    def update_for(self, most: int, for_s: float) -> int:
        """Update every trial for about `for_s` seconds, 1 to `most` times; return the number of updates.

        Unless a subclass overrides it, it makes one update.

        Raises:
            ValueError, Exception: as `update` does.
        """
        self.update()
        return 1

    def gradients(self) -> dict[str, npt.NDArray[Any]]:
        """Return the gradients of the next update by parameter, before clipping, each [trials, ...].

        Weights don't change. Buffers, such as running statistics, may change as in an update.

        Raises:
            ValueError: if the task's loss isn't a scalar.
            Exception: any error of the task or the model.
        """
        with self._computing():
            self._differentiate()
        return self._copied("gradient")

    def evaluate(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the task's metrics, except its `scores`, of every trial as it is now, each float64 [trials].

        A sparsity error is NaN if the model has no units.

        Raises:
            ValueError: if the task declares other metrics than it measures, or a metric isn't a scalar.
            Exception: any error of the task or the model.
        """
        metrics: dict[str, Tensor] = {}
        for module in self._modules:
            module.eval()
        with self._computing(), torch.no_grad():
            for part, purpose in self._sets.items():
                if part not in self._batches:
                    with seeded_generators(seed_of(0, 0, purpose), self._device):
                        self._batches[part] = self._evaluation(evaluation_stream(purpose), purpose)
                for name, values in self._measure(self._batches[part]).items():
                    metrics[f"{part}_{name}"] = values[: self._count].double()
            trained = {name: part[: self._count] for name, part in self._flat.parts("weight").items()}
            errors = sparsity_errors(self._modules[0], trained | self._frozen)
            for name in self._metrics_names:
                if name.endswith(SPARSITY_ERROR) and name not in metrics:
                    none = torch.full((self._count,), torch.nan)
                    metrics[name] = (none if errors is None else errors).double()
        self._check_metrics(metrics)
        names = [name for name in self._metrics_names if name not in self._scores]
        numbers = torch.stack([metrics[name] for name in names]).cpu().numpy()  # one copy, since each waits for a GPU
        return dict(zip(names, numbers, strict=True))

    def is_finite(self) -> npt.NDArray[np.bool_]:
        """Return True for each trial whose weights are all finite, bool [trials]."""
        return self._flat.arrays["weight"][: self._count].isfinite().all(1).cpu().numpy()

    def weights(self) -> dict[str, npt.NDArray[Any]]:
        """Copy out all parameters and buffers by name in the module, each [trials, ...]."""
        return self._copied("weight") | self.buffers()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy out everything needed to resume bit for bit; each array's first axis is the trial."""
        arrays = {
            f"{kind}/{name}": array
            for kind in ("weight", *self._flat.moments)
            for name, array in self._copied(kind).items()
        }
        buffers = {f"buffer/{name}": array for name, array in self.buffers().items()}
        return arrays | buffers | {"iteration": np.full(self._count, self.iteration, np.int64)}

    # --- implemented by the two subclasses -----------------------------------------------------------------

    @abstractmethod
    def _differentiate(self) -> None:
        """Compute the gradients of every trial's loss on its batch of this iteration, into the array ``gradient``."""

    @abstractmethod
    def _evaluation(self, stream: Stream, purpose: Purpose) -> Any:
        """Draw an evaluation set, or with a setup each trial's own, in the form for `_measure`."""

    @abstractmethod
    def _measure(self, batch: Any) -> dict[str, Tensor]:
        """Measure every trial on an evaluation set; return each metric, [trials or more], without the set's prefix."""

    @abstractmethod
    def buffers(self) -> dict[str, npt.NDArray[Any]]:
        """Copy out the buffers and the parameters that aren't trained, by name, each [trials, ...]."""

    # --- shared --------------------------------------------------------------------------------------------

    @cached_property
    def _frozen(self) -> dict[str, Tensor]:
        """Return the pack layers' frozen parameters by name, each [trials, ...]; training doesn't change them."""
        names = frozen_names(self._modules[0])
        arrays = self.buffers() if names else {}
        return {name: torch.from_numpy(arrays[name]).to(self._device) for name in names}

    def _computing(self) -> AbstractContextManager[None]:
        """Return the context for computations: one thread of the CPU, and the device."""
        return one_thread() if self._device == "cpu" else self._computing_elsewhere()

    @contextmanager
    def _computing_elsewhere(self) -> Iterator[None]:
        # Autograd would use one thread per GPU, where this thread's context variables aren't set.
        with one_thread(), use_device(self._device), torch.autograd.set_multithreading_enabled(False):
            yield

    def _products(self) -> AbstractContextManager[Any]:
        """Return the context in which the model computes its dense layers; by default, it changes nothing."""
        return nullcontext()

    def _limit(self, weights: Mapping[str, Tensor]) -> None:
        """Clamp parameters, given by name, to their limits in place."""
        for name, limits in self._limits.items():
            weights[name].clamp_(*limits)

    def _copied(self, kind: str) -> dict[str, npt.NDArray[Any]]:
        return self._flat.copied(kind, self._count)

    def _loss(
        self, module: nn.Module, tensors: Mapping[str, Tensor], batch: Any, noise: Stream, strengths: Strengths
    ) -> Tensor:
        """Return a trial's loss on a batch with its penalties added; raise ValueError unless it is a scalar."""
        with noise_from(noise), self._products():
            loss = self.task.loss(self._outputs(module, tensors, batch), batch)
        if loss.dim() != 0:
            raise ValueError(f"loss must return a scalar, but returned a tensor of shape {tuple(loss.shape)}")
        sparsity_strength, l1_strength = strengths
        if self._sparsity is not None:
            errors = (regulariser(tensors[name]) for name, regulariser in self._regularisers.items())
            loss = loss + sparsity_strength * sum(errors)
        if self._l1 is not None:
            loss = loss + l1_strength * l1(tensors[name] for name in self._flat.leaves)
        return loss

    def _strengths(self) -> Strengths:
        """Return the weights of both penalties in this iteration, 0 for a penalty that is off."""
        weight = self._flat.arrays["weight"]
        sparsity_strength, l1_strength = (
            torch.tensor(
                0.0 if penalty is None else penalty.at(self.iteration), dtype=weight.dtype, device=self._device
            )
            for penalty in (self._sparsity, self._l1)
        )
        return sparsity_strength, l1_strength

    def _metrics(
        self, module: nn.Module, tensors: Mapping[str, Tensor], batch: Any, noise: Stream
    ) -> dict[str, Tensor]:
        with noise_from(noise), self._products():
            metrics = self.task.measure(self._outputs(module, tensors, batch), batch)
        metric_tensors = {name: torch.as_tensor(value) for name, value in metrics.items()}
        for name, value in metric_tensors.items():
            if value.dim() != 0:
                raise ValueError(f"measure must return scalars, but {name!r} has shape {tuple(value.shape)}")
        return metric_tensors

    def _outputs(self, module: nn.Module, tensors: Mapping[str, Tensor], batch: Any) -> Any:
        def model(*inputs: Any, **options: Any) -> Any:
            return functional_call(module, dict(tensors), inputs, options)

        return self.task.predict(model, batch)

    def _check_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Raise ValueError if a declared metric wasn't measured, or no declared metric ends with a measured name."""
        declared = {name for name in self._metrics_names if name not in self._scores}
        missing = sorted(declared - set(metrics))
        endings = {name.partition("_")[2] for name in declared}
        extra = sorted({name.partition("_")[2] for name in metrics} - endings)
        name = type(self.task).__name__
        if missing:
            raise ValueError(f"task {name} declares metrics that measure doesn't return: {', '.join(missing)}")
        if extra:
            raise ValueError(f"task {name} measures {', '.join(extra)}, but no declared metric ends with that name")


@dataclass(frozen=True, kw_only=True)
class PackLayout:
    """A layout of a pack's arrays, chosen so that a trial's bits don't depend on its place in memory.

    Args:
        multiple: the number of trials in the arrays is a multiple of this, and at least two, since some kernels round
            differently for a single trial. The last trial is repeated to fill the arrays.
        is_aligned: whether dense layers are zero-padded until every matrix begins on a cache line.
        backend: the backend that computes updates; torch always computes evaluations.
        wide: for XLA, number of trials of the larger of its two programs; 0 if there is only one, for `multiple`
            trials.
    """

    multiple: int = 1
    is_aligned: bool = False
    backend: Literal["torch", "xla"] = "torch"
    wide: int = 0


_PLAIN = PackLayout()


class SideBySide(Members):
    """The trials of a pack as one array program.

    Args:
        recipe: the trials' common settings.
        members: each trial's own settings.
        layout: layout of the arrays.
        state: the trials' arrays as returned by `state`; None to start.
        device: the device that computes.

    Example:
        >>> from dataclasses import dataclass
        >>> from study.engine.packed.optimizers import Schedule
        >>> from study.interface.declarations import Metric
        >>> from study.interface.task import Task
        >>> @dataclass(frozen=True)
        ... class Double(Task):
        ...     rows: int = 32
        ...     metrics = {"validation_loss": Metric()}
        ...
        ...     def draw(self, stream):
        ...         x = stream.uniform(self.rows, 1)
        ...         return x, 2 * x
        ...
        ...     def loss(self, outputs, batch):
        ...         return (outputs - batch[1]).square().mean()
        >>> recipe = Recipe(task=Double(), model=nn.Linear, hyperparameters={"in_features": 1, "out_features": 1})
        >>> schedule = Schedule(learning_rate=0.02)
        >>> pack = SideBySide(recipe, [Member(seed=seed, schedule=schedule) for seed in range(3)])
        >>> pack.update(300)
        >>> bool((pack.evaluate()["validation_loss"] < 1e-2).all()), pack.weights()["weight"].shape
        (True, (3, 1, 1))
    """

    def __init__(
        self,
        recipe: Recipe,
        members: Sequence[Member],
        *,
        layout: PackLayout = _PLAIN,
        state: Arrays | None = None,
        device: str = "cpu",
    ) -> None:
        self._layout = layout
        size = max(2, -(-len(members) // layout.multiple) * layout.multiple)
        super().__init__(recipe, members, size, state, device)
        others = {
            name: torch.stack([untrained(self._modules[row])[name].detach() for row in self._rows])
            if state is None
            else torch.from_numpy(state[f"buffer/{name}"][self._rows])
            for name in untrained(self._modules[0])
        }
        self._others = {name: tensor.to(device) for name, tensor in others.items()}
        self._modules = [self._modules[0].to(device)]
        side_by_side(self._modules[0])
        self._places = torch.arange(size, device=device)
        at_once = max(_EVALUATED, layout.multiple) if device == "cpu" else size
        groups = np.array_split(range(size), -(-size // at_once))
        self._evaluated = [slice(int(rows[0]), int(rows[-1]) + 1) for rows in groups]
        self._setup = self._set_up()
        self._updates = 0
        self.draws: Draws = {}
        """The draws of an update, once it is recorded."""
        self._repeat: Compute | None = None

    @property
    def is_recorded(self) -> bool:
        """True if updates repeat recorded operations."""
        return self._repeat is not None

    def _set_up(self) -> tuple[Any, ...]:
        if not self.task.has_setup:
            return ()
        with torch.no_grad(), use_device(self._device):
            return (vmap(lambda place: self.task.setup(self._stream(Purpose.SETUP, place)))(self._places),)

    def _stream(self, purpose: Purpose, place: Tensor) -> Stream:
        iteration = 0 if purpose is Purpose.SETUP else self.iteration
        return Stream(self._seeds, iteration, purpose, trial=place)

    def _products(self) -> AbstractContextManager[Any]:
        return AlignedProducts() if self._layout.is_aligned else nullcontext()

    def _differentiate(self) -> None:
        """Compute the gradients of all trials' losses.

        After `_RECORDED_AFTER` calls, recorded operations compute them, if they can be recorded.
        """
        inputs = self._parts, self._others, self._strengths(), self._setup
        if self._updates == _RECORDED_AFTER:
            self._record(inputs)
        self._updates += 1
        if self._repeat is None:
            self._flat.set_gradient(self._compute(self._stream, *inputs))
        else:
            self._flat.set_gradient(self._repeat(*inputs, drawn(self.draws, self._seeds, self.iteration)))

    def _record(self, inputs: tuple[Any, ...]) -> None:
        """Record the computation of gradients for all later updates; a no-op if it can't be recorded."""

        def compute(weights: Any, others: Any, strengths: Strengths, setup: Any, numbers: Numbers) -> Gradients:
            return self._compute(self._stream, weights, others, strengths, setup, numbers)

        expected, self.draws = self._listened(*inputs)
        self._repeat = recorded(compute, expected, *inputs, drawn(self.draws, self._seeds, self.iteration))

    def _listened(self, *inputs: Any) -> tuple[Gradients, Draws]:
        """Compute gradients from the other inputs of `_compute`; return them with the draws that they took."""

        def listening(purpose: Purpose, place: Tensor) -> Stream:
            return ListeningStream(draws[purpose], self._seeds, self.iteration, purpose, trial=place)

        draws: Draws = {Purpose.TRAIN: [], Purpose.NOISE: []}
        return self._compute(listening, *inputs), draws

    def _compute(
        self,
        stream: Callable[[Purpose, Tensor], Stream],
        weights: Mapping[str, Tensor],
        others: Mapping[str, Tensor],
        strengths: Strengths,
        setup: tuple[Any, ...],
        numbers: Numbers | None = None,
    ) -> Gradients:
        """Return the gradients of all trials' losses by parameter, without parameters that no loss depends on.

        Args:
            stream: returns the stream for a purpose and a trial's place in the pack.
            weights: the trained parameters, each [trials, ...].
            others: the other parameters and the buffers.
            strengths: the weights of the penalties that are added to the losses.
            setup: the task's setup of each trial, if it has one.
            numbers: the numbers of the streams, if they are drawn already.
        """
        module = self._modules[0].train()
        leaves = {name: tensor.detach().requires_grad_() for name, tensor in weights.items()}

        def loss(tensors: dict[str, Tensor], setup: tuple[Any, ...], place: Tensor, numbers: Numbers | None) -> Tensor:
            data, noise = (
                stream(purpose, place) if numbers is None else GivenStream(numbers[purpose])
                for purpose in (Purpose.TRAIN, Purpose.NOISE)
            )
            return self._loss(module, tensors, self.task.draw(data, *setup), noise, strengths)

        in_dims = (0, 0, 0, None if numbers is None else 0)
        places = self._places[: len(next(iter(leaves.values())))]
        losses = vmap(loss, in_dims)({**leaves, **others}, setup, places, numbers)
        gradients = torch.autograd.grad(losses.sum(), list(leaves.values()), allow_unused=True)
        return {name: gradient for name, gradient in zip(leaves, gradients, strict=True) if gradient is not None}

    def _evaluation(self, stream: Stream, purpose: Purpose) -> Any:
        if not self.task.has_setup:
            return self.task.evaluation(stream, purpose)
        with torch.no_grad():
            return vmap(lambda setup: self.task.evaluation(stream, purpose, *setup))(self._setup)

    def _measure(self, batch: Any) -> dict[str, Tensor]:
        """Measure all trials on an evaluation set, some rows at a time, each metric [rows]."""
        module = self._modules[0]

        def metrics(tensors: dict[str, Tensor], batch: Any, place: Tensor) -> dict[str, Tensor]:
            return self._metrics(module, tensors, batch, self._stream(Purpose.EVALUATION_NOISE, place))

        tensors = self._flat.parts("weight") | self._others
        parts = []
        for rows in self._evaluated:
            each = tree_map(partial(self._for_rows, rows=rows), batch)
            parts.append(
                vmap(metrics)({name: tensor[rows] for name, tensor in tensors.items()}, each, self._places[rows])
            )
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def _for_rows(self, tensor: Tensor, rows: slice) -> Tensor:
        """Return the part of an evaluation set's tensor that the given trials see, [rows, ...].

        With a setup, the tensor has an axis of trials; without, all trials share it, and it is expanded.
        """
        if self.task.has_setup:
            return tensor[rows]
        # Without this, vmap would use one matrix product for all trials, whose rounding depends on their number.
        return tensor.expand(rows.stop - rows.start, *tensor.shape)

    def buffers(self) -> dict[str, npt.NDArray[Any]]:
        return {name: tensor[: self._count].cpu().numpy().copy() for name, tensor in self._others.items()}


class OneByOne(Members):
    """The trials of a pack one after another, for modules and tasks that can't train side by side.

    Global generators are seeded from the trial's own seed before each of its updates and evaluations.
    """

    def __init__(
        self, recipe: Recipe, members: Sequence[Member], *, state: Arrays | None = None, device: str = "cpu"
    ) -> None:
        super().__init__(recipe, members, len(members), state, device)
        self._modules = [module.to(device) for module in self._modules]
        with use_device(device):
            self._setups = [self._set_up(row) for row in range(len(members))]
        if state is not None:
            with torch.no_grad():
                for row, module in enumerate(self._modules):
                    for name, tensor in untrained(module).items():
                        tensor.copy_(torch.from_numpy(state[f"buffer/{name}"][row : row + 1])[0])

    def _set_up(self, row: int) -> tuple[Any, ...]:
        return (self.task.setup(self._stream(Purpose.SETUP, row)),) if self.task.has_setup else ()

    def _stream(self, purpose: Purpose, row: int) -> Stream:
        return Stream(self._seeds[row : row + 1], 0 if purpose is Purpose.SETUP else self.iteration, purpose)

    def _evaluation(self, stream: Stream, purpose: Purpose) -> Any:
        if not self.task.has_setup:
            return [self.task.evaluation(stream, purpose)] * self._count
        return [self.task.evaluation(evaluation_stream(purpose), purpose, *setup) for setup in self._setups]

    def _differentiate(self) -> None:
        """Compute the gradients of the trials' losses, one trial after another."""
        strengths = self._strengths()
        for row, module in enumerate(self._modules):
            module.train()
            leaves = {name: part[row].detach().requires_grad_() for name, part in self._flat.leaves.items()}
            with seeded_generators(seed_of(int(self._seeds[row]), self.iteration, Purpose.TRAIN), self._device):
                batch = self.task.draw(self._stream(Purpose.TRAIN, row), *self._setups[row])
                loss = self._loss(module, leaves, batch, self._stream(Purpose.NOISE, row), strengths)
            gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
            self._flat.set_gradient(dict(zip(leaves, gradients, strict=True)), row)

    def _measure(self, batch: Any) -> dict[str, Tensor]:
        """Measure the trials on their evaluation sets, one after another, each metric [trials]."""
        weights, metrics = self._flat.parts("weight"), []
        for row, module in enumerate(self._modules):
            tensors = {name: part[row] for name, part in weights.items()}
            seed = seed_of(int(self._seeds[row]), self.iteration, Purpose.EVALUATION_NOISE)
            with seeded_generators(seed, self._device):
                noise = self._stream(Purpose.EVALUATION_NOISE, row)
                metrics.append(self._metrics(module, tensors, batch[row], noise))
        return {name: torch.stack([trial_metrics[name] for trial_metrics in metrics]) for name in metrics[0]}

    def buffers(self) -> dict[str, npt.NDArray[Any]]:
        each = [untrained(module) for module in self._modules]
        return {name: torch.stack([buffers[name].detach() for buffers in each]).cpu().numpy() for name in each[0]}

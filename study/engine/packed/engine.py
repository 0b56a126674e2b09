"""The engine that trains tasks and models in packs: the user's own, and those that installed packages offer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from study.engine.base import Engine, Training
from study.engine.device import check_device, reproducible, room_for, trials_that_fit
from study.engine.own_code import OwnCode
from study.engine.packed.flat import FlatWeights
from study.engine.packed.members import PackLayout, SideBySide
from study.engine.packed.optimizers import MOMENTS, Optimizer, Schedule
from study.engine.packed.proof import MOST_ON_GPU, Proof, can_compile, prove
from study.engine.packed.recipe import L1, Member, Recipe, Sparsity, build
from study.engine.packed.training import COMPILED, OFF_CPU, CriterionScores, PackedTraining
from study.errors import InputError
from study.interface.criterion import Bound
from study.interface.declarations import Metric
from study.interface.layers import is_pack_layer
from study.interface.packed_family import recipe_text
from study.interface.signature import arguments_of
from study.interface.stop_signals import exceptions_only
from study.interface.task import Task
from study.plugins.packed_tasks import builder_of, is_stable_task, packed_task
from study.records import Cell, Checkpoint, Pack, Sources
from study.source import CodeFolder, SourceData, data_cache, is_import_string, parse_import_string

_MIB = 2**20
# Iterations from which compiling a recipe's updates, 2 to 10 s in each process, takes less time than it saves: about
# 0.3 ms per update of 16 small networks.
_COMPILED_FROM = 20_000


@dataclass(frozen=True)
class _Protocol:
    iterations: int
    evaluate_every: int
    best_step_window: int


@dataclass(frozen=True, kw_only=True)
class PackedEngine(Engine):
    """An engine that trains one task and its models; it is data, so that it can be sent to workers with their code.

    Args:
        task: the task's import string, or its name if an installed package offers it.
        fields: names of the task's hyperparameters.
        models: names of each model's arguments, by its import string.
        code: the code of the task and the models.
        metrics: the metrics that the task measures.
        criterion: bounds that the metrics of a solved trial meet; empty without a success criterion.
        data: the data that fields of the task name.
        layouts: each recipe's proof for the CPU, as text from `as_layout`. Other recipes are proven where they train.
            On a GPU all are proven there, since a proof holds for one device.
    """

    task: str
    fields: Sequence[str]
    models: Mapping[str, Sequence[str]]
    code: OwnCode
    metrics: Mapping[str, Metric]
    criterion: Mapping[str, Bound] = field(default_factory=dict)
    data: Sequence[SourceData] = ()
    layouts: Mapping[str, str] = field(default_factory=dict)

    name = "packed"
    backends = (COMPILED,)
    devices = ("cpu", "cuda")

    def prepare(self, cell: Cell) -> None:
        """Unpack the code and the data, and build a module, to find errors before a trial begins.

        Raises:
            InputError: if the code or the data can't be loaded, or the task can't be made or learned by the model.
            OSError: if the copy of the code or the data can't be written.
            ValueError: if a value of the cell is invalid.
            Exception: the error of the user's model.
        """
        folder, recipe = self._recipe(cell)
        with folder:
            build(recipe, 0)

    def refuses(self, cell: Cell) -> str | None:
        """Return the reason that this engine can't train the cell; None if it can."""
        if cell.task == self.task and cell.model in self.models:
            return None
        return f"it trains {', '.join(self.models)} on {self.task}, and nothing else"

    def memory_mb(self, pack: Pack) -> float:
        """Estimate the memory of weights, gradients and optimiser state, in MiB; activations aren't included.

        Raises:
            ValueError: if a value of the cell is invalid, or unless the model has trainable parameters, all float32 or
                all float64.
            InputError, OSError, Exception: as `prepare` does.
        """
        cell = pack.trials[0].cell
        _, recipe = self._recipe(cell)
        arrays = FlatWeights(build(recipe, 0), 1, []).arrays
        array_bytes = sum(array.numel() * array.element_size() for array in arrays.values()) / len(arrays)
        return len(pack.trials) * (2 + MOMENTS[recipe.optimizer.name]) * array_bytes / _MIB

    def trials_at_once(self, cell: Cell) -> int | None:
        """Return the number of trials that fit into this machine's GPU, at most `MOST_ON_GPU`, by training a few.

        Returns:
            None without a GPU, without room for a few trials, or unless `layouts` proves that they train side by side.

        Raises:
            InputError: if the code or the data can't be loaded, or the trials can't be trained there.
            OSError: if the copy of the code or the data can't be written.
            ValueError: if a value of the cell is invalid.
        """
        layout = self.layouts.get(recipe_text(cell))
        if not torch.cuda.is_available() or layout is None or not proof_of(layout).packs:
            return None
        folder, recipe = self._recipe(cell)

        def peak_bytes(trials: int) -> int:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            members = SideBySide(recipe, [_member(cell, Sources(seed, seed)) for seed in range(trials)], device="cuda")
            members.evaluate()
            members.update()  # reaches the peak
            return torch.cuda.max_memory_allocated() - before

        try:
            with reproducible("cuda"), exceptions_only():
                return min(MOST_ON_GPU, trials_that_fit(peak_bytes, torch.cuda.mem_get_info()[0]))
        except torch.OutOfMemoryError:
            return None
        except Exception as error:  # whatever the user's code raises
            raise _untrainable(cell, folder, error) from None

    def prove(self, cell: Cell, *, device: str = "cpu", trials: int | None = None, is_compiled: bool = False) -> Proof:
        """Test a cell's trials for the same bits in all packs on a device; return the proof.

        If the bits differ, or for a pack of one trial, the proof is for trials one by one, with the reason.

        Args:
            cell: the cell whose recipe is proven.
            device: the device that trains them.
            trials: size of the pack; None for the task's maximum.
            is_compiled: whether XLA is to compile updates on the CPU, if bits are the same in all packs.

        Raises:
            InputError: if the code or the data can't be loaded, the trials can't be trained at all, or a trial doesn't
                repeat itself.
            OSError: if the copy of the code or the data can't be written.
            ValueError: if a value of the cell is invalid.
            torch.OutOfMemoryError: if a GPU has no room for the pack.
        """
        folder, recipe = self._recipe(cell)
        try:
            most = trials or recipe.task.most_in_pack
            sizes = sorted({size for size in (2, 5, 8) if size < most} | {most})
            with exceptions_only():
                return prove(recipe, sizes=sizes, device=device, is_compiled=is_compiled)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever the user's code raises
            raise _untrainable(cell, folder, error) from None

    def proven(self, cells: Iterable[Cell], layouts: Mapping[str, str]) -> PackedEngine:
        """Return this engine with the layouts of the cells' recipes, proving those that aren't known.

        The proofs are for the CPU. If JAX is installed, XLA compiles the updates of recipes that train long enough to
        gain by it, unless they are known already or can't be compiled. The study alone decides what is long enough, so
        that trials have the same bits when it is trained again.

        Args:
            cells: the cells.
            layouts: known layouts, by recipe.

        Raises:
            InputError: if the code or the data can't be loaded, a recipe can't be trained, or a trial doesn't repeat
                itself.
            OSError: if the copy of the code or the data can't be written.
            ValueError: if a value of a cell is invalid.
        """
        known = {**self.layouts, **layouts}
        longest: dict[str, Cell] = {}
        for cell in cells:
            longest[recipe_text(cell)] = max(longest.get(recipe_text(cell), cell), cell, key=lambda c: c.iterations)
        for recipe, cell in longest.items():
            if recipe not in known:
                is_compiled = can_compile() and cell.iterations >= _COMPILED_FROM
                known[recipe] = as_layout(self.prove(cell, is_compiled=is_compiled))
        return replace(self, layouts=known)

    def _proof(self, cell: Cell, device: str, trials: int) -> tuple[Proof, Sequence[str]]:
        """Return the proof for a pack on a device, and new messages for the user; proofs for a GPU are cached."""
        recipe = recipe_text(cell)
        layout = self.layouts.get(recipe)
        if device == "cpu":
            return (self.prove(cell) if layout is None else proof_of(layout)), ()
        # Trials that train one by one on the CPU do so on a GPU, too; a pack of one proves that they repeat themselves.
        # All others are proven in a pack of at least two, since a network alone would have other bits.
        size = max(2, trials) if layout is None or proof_of(layout).packs else 1
        key = (self.code.digest, recipe, device, size)
        if key in _proven:
            return _proven[key], ()
        proof = _proven[key] = self.prove(cell, device=device, trials=size)
        if proof.packs or size == 1:
            return proof, ()
        return proof, (f"trials of {cell.model} train one after another on {device}: {proof.reason}",)

    def goes_on_from(self, checkpoint: Checkpoint, device: str) -> bool:
        """Return True for a checkpoint of this engine on this kind of device, since bits differ between kinds."""
        return super().goes_on_from(checkpoint, device) and (OFF_CPU in checkpoint.arrays) == (device != "cpu")

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Start a pack, or resume it from a checkpoint of the same trials.

        Args:
            pack: trials of equal `pack_key`.
            device: ``cpu`` or ``cuda``.
            checkpoint: the checkpoint to resume from; None to start.

        Raises:
            DeviceError: if the device isn't available.
            DeviceMemoryError: if it has no room for the pack.
            InputError: if the code or the data can't be loaded, the model can't be trained on the task, or the layout
                needs JAX, which isn't installed.
            OSError: if the copy of the code or the data can't be written.
            ValueError: if the checkpoint is of other trials or of another engine, or a value of a cell is invalid.
            Exception: any error of the user's model.
        """
        check_device(device)
        cell = pack.trials[0].cell
        folder, recipe = self._recipe(cell)
        memory_mb = 0.0 if device == "cpu" else self.memory_mb(pack)
        with reproducible(device), room_for(pack, memory_mb):
            proof, notices = self._proof(cell, device, len(pack.trials))
            training = PackedTraining(
                self.name,
                pack,
                device,
                checkpoint,
                CriterionScores(_protocol_of(cell), len(pack.trials), self.metrics, self.criterion),
                folder=folder,
                recipe=recipe,
                members=[_member(trial.cell, trial.sources) for trial in pack.trials],
                proof=proof,
                memory_mb=memory_mb,
            )
        training.notices = notices
        return training

    def _recipe(self, cell: Cell) -> tuple[CodeFolder, Recipe]:
        """Load the code and the data of a cell; return the code's folder, and the settings that its trials share.

        A task that can't be made, or a model that it can't train, raises InputError.
        """
        folder = self.code.folder()
        for data in self.data:
            data.provide(data_cache())
        task: type[Task] = (
            packed_task(cell.task)
            if is_stable_task(cell.task)
            else folder.load(parse_import_string(cell.task), (Task,))
        )
        try:
            with exceptions_only():
                made = task(**arguments_of(task, _named_values(cell, self.fields)))
        except Exception as error:  # such as fields that don't fit each other
            raise InputError(f"{cell.task} can't be made: {folder.reason(error)}") from None
        try:
            model = _builder(folder, cell, made)
        except TypeError as error:
            raise InputError(f"{cell.model} can't be trained on {cell.task}: {error}") from None
        names = ("momentum", "weight_decay", "clip_norm")
        optimizer = {name: value for name in names if (value := cell.value(name)) is not None}
        strength, l1_strength = cell.value("sparsity_strength"), cell.value("l1_strength")
        return folder, Recipe(
            task=made,
            model=model,
            hyperparameters=arguments_of(model, _named_values(cell, self.models[cell.model])),
            optimizer=Optimizer(name=cell.value("optimizer"), **optimizer),
            sparsity=None
            if strength is None
            else Sparsity(strength, cell.value("sparsity_start"), cell.value("sparsity_end")),
            l1=None if l1_strength is None else L1(cell.value("l1_first_strength"), l1_strength),
            programs=_programs(self.code.digest, recipe_text(cell), *(data.digest for data in self.data)),
        )


def _untrainable(cell: Cell, folder: CodeFolder, error: Exception) -> InputError:
    return InputError(f"{cell.model} can't be trained on {cell.task}: {folder.reason(error)}")


_proven: dict[tuple[str, str, str, int], Proof] = {}
"""Proofs for this machine's GPU, by the code's digest, the recipe, the device and the pack's size."""


@lru_cache(maxsize=8)
def _programs(*recipe: str) -> dict[Any, Any]:
    """Return a recipe's cache of compiled programs, shared by its packs; only the latest recipes are kept."""
    return {}


def _builder(folder: CodeFolder, cell: Cell, task: Task) -> Callable[..., nn.Module]:
    """Return the function that builds a trial's module from the values of the model's hyperparameters.

    A network of units whose input and output sizes the task can't determine raises TypeError.
    """
    if not is_import_string(cell.model):
        return builder_of(task, cell.model)
    model = folder.load(parse_import_string(cell.model), (nn.Module,))
    if is_pack_layer(model):
        return task.network(model, model)
    builder: Callable[..., nn.Module] = model
    return builder


def as_layout(proof: Proof) -> str:
    """Encode a proof as text.

    Example:
        >>> as_layout(Proof(layout=PackLayout())), as_layout(Proof(layout=None, reason="no"))
        ('{"multiple": 1, "is_aligned": false}', '{"reason": "no"}')
    """
    if proof.layout is None:
        return json.dumps({"reason": proof.reason})
    # Layouts of torch keep the form from before there was another backend.
    torch_fields = ("multiple", "is_aligned")
    layout = {
        key: value for key, value in vars(proof.layout).items() if proof.layout.backend == "xla" or key in torch_fields
    }
    return json.dumps(layout | ({"uncompiled": proof.uncompiled} if proof.uncompiled else {}))


def proof_of(layout: str) -> Proof:
    """Decode a proof from the text of `as_layout`.

    Raises:
        ValueError: if the text isn't JSON of an object.
        TypeError: if the object has no reason, and a key that isn't of a proof.
    """
    content = json.loads(layout)
    if not isinstance(content, dict):
        raise ValueError(f"a proof must be a JSON object, not {layout[:80]}")
    if "reason" in content:
        return Proof(layout=None, reason=content["reason"])
    uncompiled = content.pop("uncompiled", "")
    return Proof(layout=PackLayout(**content), uncompiled=uncompiled)


def _named_values(cell: Cell, names: Sequence[str]) -> dict[str, Any]:
    return {name: cell.values.get(name) for name in names}


def _member(cell: Cell, sources: Sources) -> Member:
    schedule = Schedule(
        learning_rate=cell.value("learning_rate"),
        warmup=cell.value("warmup"),
        decay=cell.value("schedule"),
        iterations=cell.iterations + 1,
    )
    return Member(seed=sources.init, data_seed=sources.data, schedule=schedule)


def _protocol_of(cell: Cell) -> _Protocol:
    return _Protocol(cell.iterations, cell.value("evaluate_every"), cell.value("best_step_window"))

"""The engines of a study, resolved once: the engine and device of each cell, and the resources of a worker."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from study import cluster
from study.console import Console
from study.driver.options import Options
from study.driver.own_engine import as_packed, layouts_of, own_engine, proven, training_notices
from study.driver.progress import waiting
from study.engine import Engine, engine_for, pack_key, passed_over, trials_at_once
from study.engine.calls import CallEngine
from study.errors import InputError
from study.extras import INSTALL_RAY, check_ray, ray_problem
from study.plan.packs import AtOnce, KeyOf, shape_key
from study.plan.plan import Plan
from study.records import Cell

# exists while NVIDIA's driver is loaded
_GPU_DRIVER = Path("/dev/nvidiactl")


@dataclass(frozen=True)
class Needs:
    """Resources of a worker.

    Args:
        cpus: cores.
        gpus: GPUs, or the share of one, if it trains on GPUs.
    """

    cpus: int
    gpus: float


@dataclass(frozen=True)
class Engines:
    """The engines that train the cells of a study.

    Args:
        cells: the plan's cells at the beginning of the run; a search adds others.
        options: options of the run, with the device of the study's own engine.
        own: the engine of the study's own code; None if installed engines train it.
        lacks_ray: whether this process trains only because Ray is missing.
    """

    cells: Sequence[Cell]
    options: Options
    own: Engine | None
    lacks_ray: bool = False

    @property
    def device(self) -> str:
        """Device of this machine that trains, ``cpu`` or ``cuda``; option ``auto`` is ``cuda`` if torch sees a GPU."""
        if self.options.device != "auto":
            return self.options.device
        import torch

        return cluster.GPU if torch.cuda.is_available() else cluster.CPU

    @property
    def cores(self) -> int:
        """Number of this machine's cores that train packs."""
        return 1 if self.options.local else self.options.cpus or os.cpu_count() or 1

    @property
    def may_begin_beside(self) -> bool:
        """True if training can begin in a process beside this one, before Ray is started.

        It can for a function or program that needs no GPU and trains on this machine. Not so if options ask for this
        process or for Ray at once, or if Ray is missing.
        """
        options, own = self.options, self.own
        if options.local or options.address is not None or options.ray_at_once:
            return False
        return isinstance(own, CallEngine) and not own.limits.gpus

    @property
    def needs(self) -> Needs:
        """Resources of a worker.

        For a function or program, those declared for a trial, by default one core and no GPU. Else one core and, on
        GPUs, the share of a pack: 1 / `packs_per_gpu`.
        """
        if not isinstance(self.own, CallEngine):
            return Needs(cpus=1, gpus=1 / self.options.packs_per_gpu)
        return Needs(self.own.limits.cpus or 1, self.own.limits.gpus or 0.0)

    @property
    def layouts(self) -> Mapping[str, str]:
        """Layouts of packs by recipe; empty unless the study trains packed tasks."""
        return layouts_of(self.own)

    def engine(self, cell: Cell, device: str | None = None) -> Engine:
        """Return the engine that trains a cell.

        Args:
            cell: the cell.
            device: ``cpu`` or ``cuda``; None for `device`.

        Raises:
            InputError: if no engine trains it on that device.
        """
        return engine_for(self.options.engine, cell, device or self.device, self.own)

    def used(self) -> list[tuple[Engine, Cell]]:
        """Return each engine that trains cells of the study on `device`, with the first of these cells.

        Raises:
            InputError: if no engine trains a cell there, or an engine can't be imported.
        """
        engines: dict[str, tuple[Engine, Cell]] = {}
        for cell in self.cells:
            engine = self.engine(cell)
            engines.setdefault(engine.name, (engine, cell))
        return list(engines.values())

    def check_trainable(self, device: str) -> None:
        """Check that each cell has an engine on the device.

        Raises:
            InputError: if a cell has none.
        """
        for cell in self.cells:
            self.engine(cell, device)

    def are_trainable(self, device: str) -> bool:
        """Return True if each cell has an engine on the device."""
        try:
            self.check_trainable(device)
        except InputError:
            return False
        return True

    def key_on(self, devices: Iterable[str]) -> KeyOf:
        """Return a function from a cell to the key that trials of a pack share on the given devices.

        The function raises InputError if no engine trains the cell on one of them.
        """
        kinds = tuple(devices)
        return cache(lambda cell: pack_key(self.options.engine, cell, kinds, self.own))

    def at_once(self, *, is_here: bool) -> AtOnce:
        """Return a function from a cell to the number of its trials that a GPU worker trains side by side.

        The function returns None if the number has no limit or isn't known, as without a GPU. For a shape that the plan
        lacks, it returns the smallest known number.

        Args:
            is_here: ask this process's GPU, instead of one of the cluster.

        Raises:
            InputError: if no engine trains a cell on a GPU, or the user's code can't be trained there.
            ClusterError: if no worker of the cluster answers, no GPU is free within ten minutes, or the worker fails.
            OSError: if the copy of the user's code can't be written here.
        """
        cells = {shape_key(cell): cell for cell in self.cells}
        query = partial(trials_at_once, self.options.engine, tuple(cells.values()), self.own)
        answers = query() if is_here else cluster.ask(query, 1 / self.options.packs_per_gpu)
        counts = dict(zip(cells, answers, strict=True))
        least = min((count for count in answers if count is not None), default=None)

        def at_once(cell: Cell) -> int | None:
            # A search tries shapes that weren't in the plan when the GPU was measured: use the smallest number.
            count = counts.get(shape_key(cell), least)
            return None if count is None else max(1, count // self.options.packs_per_gpu)

        return at_once

    def slow_cells(self) -> list[str]:
        """Return a sentence for each reason why trials train more slowly than others of their kind.

        Returns:
            Each sentence once. Engines are compared only if the option `engine` is ``auto`` and the study has no own
            code. For packed tasks, the sentences are those of `training_notices`.

        Raises:
            InputError: if a cell has no engine, or one that its family prefers can't be imported.
        """
        reasons: dict[str, None] = {}
        if self.options.engine == "auto" and self.own is None:
            for cell in self.cells:
                engine = self.engine(cell)
                for other, reason in passed_over(engine, cell, self.device).items():
                    reasons[f"{cell.model} is trained by the {engine.name} engine, not by {other}: {reason}"] = None
        return [*reasons, *training_notices(self.cells, self.own)]

    def missing_ray(self) -> list[str]:
        """Return one sentence on using all cores if this process trains only because Ray is missing; else none."""
        if not self.lacks_ray:
            return []
        return [
            f"{ray_problem()}: this process trains one pack after another, as with --local; for all cores of this "
            f"machine, or a cluster: {INSTALL_RAY}"
        ]

    def hidden_gpu(self) -> list[str]:
        """Return one sentence if the device is ``auto`` and torch can't use this machine's NVIDIA GPU; else none.

        A GPU is noticed by its driver. `resolve` has replaced ``auto`` for functions, programs and packed tasks.
        """
        if self.options.device != "auto" or self.device != cluster.CPU or not _GPU_DRIVER.exists():
            return []
        return [
            "there is an NVIDIA GPU here that torch can't use, so the CPU trains: "
            "docs/guides/one-machine.md says what to install"
        ]


def resolve(plan: Plan, options: Options, console: Console) -> Engines:
    """Return the engines that train a study, after checking that they can.

    Say on stderr if this process trains only because Ray is missing. For packed tasks, each recipe without a stored
    proof is proven now, by training a few trials (`proven`).

    Args:
        plan: the study's plan.
        options: options of the run.
        console: where long proofs are announced.

    Raises:
        InputError: if the study was read without its code, a cell has no engine, a recipe can't be trained, or the
            options and the study file name different devices.
        StoreError: if the stored proofs of recipes can't be read.
        DeviceError: if this machine lacks the device.
        MissingPackageError: if the options ask for a cluster or several cores, and Ray isn't installed.
        OSError: if the copy of the code or the data of packed tasks can't be written.
    """
    engines = _unproven(plan, options)
    for sentence in engines.missing_ray():  # to stderr, since nothing is wrong with the study
        Console(stderr=True).print(sentence, style="yellow", soft_wrap=True)
    if options.address is None and engines.device != cluster.CPU:
        from study.engine.device import check_device

        check_device(engines.device)
    engines.used()
    with waiting(console, "checking that trials can train side by side"):
        return _proven(engines, plan)


def resolve_to_estimate(plan: Plan, options: Options) -> Engines:
    """Return the engines of a study for an estimate of its cost.

    Args:
        plan: the study's plan.
        options: options of the run.

    Raises:
        InputError: if the study was read without its code, a recipe can't be trained, or the options and the study file
            name different devices.
        StoreError: if the stored proofs of recipes can't be read.
        MissingPackageError: if the options ask for a cluster or several cores, and Ray isn't installed.
        OSError: if the copy of the code or the data of packed tasks can't be written.
    """
    return _proven(_unproven(plan, options), plan)


def _unproven(plan: Plan, options: Options) -> Engines:
    own, local = own_engine(plan.spec), _without_ray(options)
    return Engines(plan.cells, _with_device(local, own), own, lacks_ray=local.local and not options.local)


def _without_ray(options: Options) -> Options:
    """Return the options, changed to train in this process without Ray; raise MissingPackageError if they need it."""
    if options.local or ray_problem() is None:
        return options
    if options.address is not None:
        check_ray("--address")
    if options.cpus is not None and options.cpus > 1:
        check_ray(f"--cpus {options.cpus}")
    return replace(options, local=True)


def _proven(engines: Engines, plan: Plan) -> Engines:
    """Add the proofs of packed tasks, from the store or made now."""
    return replace(engines, own=proven(engines.own, plan, engines.options.root))


def _with_device(options: Options, own: Engine | None) -> Options:
    """Return options with the device of a study's own engine; unchanged without one.

    Packed tasks train on the requested device, by default on the CPU. Raise InputError if the options and the file of
    a function or program name different devices.
    """
    # A training function's study file names the device. Packed tasks train on a GPU only on request: no measurement
    # shows that they are faster there.
    if as_packed(own) is not None:
        return replace(options, device=cluster.CPU) if options.device == "auto" else options
    if not isinstance(own, CallEngine):
        return options
    device = cluster.GPU if own.limits.gpus else cluster.CPU
    if options.device not in ("auto", device):
        must = "resources: {gpus: 1}, or 0.5 for half a GPU" if device == cluster.CPU else "no gpus under resources"
        raise InputError(
            f"--device {options.device} needs a study file with {must}; leave out --device, or change the file"
        )
    return replace(options, device=device)

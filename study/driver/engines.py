"""The engines of a study, resolved once: which engine trains a cell, on which device, and what a worker needs."""

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

# This file exists while NVIDIA's driver is loaded.
_GPU_DRIVER = Path("/dev/nvidiactl")


@dataclass(frozen=True)
class Needs:
    """Resources of a worker.

    Args:
        cpus: cores.
        gpus: GPUs, or the share of one, of a worker on GPUs.
    """

    cpus: int
    gpus: float


@dataclass(frozen=True)
class Engines:
    """The engines that train the cells of a study.

    Args:
        cells: the plan's cells when the run begins; a search adds others.
        options: where and how the study runs, with the device of its own engine.
        own: the engine of the study's own code; None if installed engines train it.
        lacks_ray: whether this process trains because Ray is missing, and not because it was asked to.
    """

    cells: Sequence[Cell]
    options: Options
    own: Engine | None
    lacks_ray: bool = False

    @property
    def device(self) -> str:
        """The device of this machine that trains: for ``auto`` the GPU if torch sees one, else the CPU."""
        if self.options.device != "auto":
            return self.options.device
        import torch

        return cluster.GPU if torch.cuda.is_available() else cluster.CPU

    @property
    def cores(self) -> int:
        """The number of cores of this machine on which packs train side by side."""
        return 1 if self.options.local else self.options.cpus or os.cpu_count() or 1

    @property
    def may_begin_beside(self) -> bool:
        """Return whether trials begin in a process beside this one, before Ray is started."""
        options, own = self.options, self.own
        if options.local or options.address is not None or options.ray_at_once:
            return False
        return isinstance(own, CallEngine) and not own.limits.gpus

    @property
    def needs(self) -> Needs:
        """The resources of a worker: those that a training function declares for a trial, else one core."""
        if not isinstance(self.own, CallEngine):
            return Needs(cpus=1, gpus=1 / self.options.packs_per_gpu)
        return Needs(self.own.limits.cpus or 1, self.own.limits.gpus or 0.0)

    @property
    def layouts(self) -> Mapping[str, str]:
        """Layouts of packs by recipe of a packed task; empty for other studies."""
        return layouts_of(self.own)

    def engine(self, cell: Cell, device: str | None = None) -> Engine:
        """Return the engine that trains a cell.

        Args:
            cell: the cell.
            device: ``cpu`` or ``cuda``; None for `device`.

        Raises:
            InputError: if no engine trains it there.
        """
        return engine_for(self.options.engine, cell, device or self.device, self.own)

    def used(self) -> list[tuple[Engine, Cell]]:
        """Return each engine that trains a cell, with one of its cells.

        Raises:
            InputError: if a cell has no engine.
        """
        engines: dict[str, tuple[Engine, Cell]] = {}
        for cell in self.cells:
            engine = self.engine(cell)
            engines.setdefault(engine.name, (engine, cell))
        return list(engines.values())

    def check_trainable(self, device: str) -> None:
        """Check that each cell has an engine on a device.

        Raises:
            InputError: if a cell has none.
        """
        for cell in self.cells:
            self.engine(cell, device)

    def are_trainable(self, device: str) -> bool:
        """Return whether each cell has an engine on a device."""
        try:
            self.check_trainable(device)
        except InputError:
            return False
        return True

    def key_on(self, devices: Iterable[str]) -> KeyOf:
        """Return the key that trials of a pack share, on any of some devices."""
        kinds = tuple(devices)
        return cache(lambda cell: pack_key(self.options.engine, cell, kinds, self.own))

    def at_once(self, *, is_here: bool) -> AtOnce:
        """Ask a GPU how many trials of each shape it trains side by side.

        Args:
            is_here: whether to ask this process's GPU, and not one of the cluster.
        """
        cells = {shape_key(cell): cell for cell in self.cells}
        query = partial(trials_at_once, self.options.engine, tuple(cells.values()), self.own)
        answers = query() if is_here else cluster.ask(query, 1 / self.options.packs_per_gpu)
        counts = dict(zip(cells, answers, strict=True))
        least = min((count for count in answers if count is not None), default=None)

        def at_once(cell: Cell) -> int | None:
            # A search reaches shapes that weren't in the plan when the device was asked.
            count = counts.get(shape_key(cell), least)
            return None if count is None else max(1, count // self.options.packs_per_gpu)

        return at_once

    def slow_cells(self) -> list[str]:
        """Return a sentence for each reason why trials train more slowly than others of their kind."""
        reasons: dict[str, None] = {}
        if self.options.engine == "auto" and self.own is None:
            for cell in self.cells:
                engine = self.engine(cell)
                for other, reason in passed_over(engine, cell, self.device).items():
                    reasons[f"{cell.model} is trained by the {engine.name} engine, not by {other}: {reason}"] = None
        return [*reasons, *training_notices(self.cells, self.own)]

    def missing_ray(self) -> list[str]:
        """Return a sentence if this process trains because Ray is missing, and how to use all cores."""
        if not self.lacks_ray:
            return []
        return [
            f"{ray_problem()}: this process trains one pack after another, as with --local; for all cores of this "
            f"machine, or a cluster: {INSTALL_RAY}"
        ]

    def hidden_gpu(self) -> list[str]:
        """Return a sentence if this machine has a GPU that torch can't use, though any device may train."""
        if self.options.device != "auto" or self.device != cluster.CPU or not _GPU_DRIVER.exists():
            return []
        return [
            "there is an NVIDIA GPU here that torch can't use, so the CPU trains: "
            "docs/guides/one-machine.md says what to install"
        ]


def resolve(plan: Plan, options: Options, console: Console) -> Engines:
    """Return the engines that are to train a study, after checking that they can.

    Args:
        plan: what the study asks for.
        options: where and how it runs.
        console: where to say that proofs take long.

    Raises:
        InputError: if the study was read without its code, a cell has no engine, a recipe can't be trained, or the
            options name another device than the study file.
        DeviceError: if this machine lacks the device.
        MissingPackageError: if the options ask for a cluster or for several cores, and Ray isn't installed.
    """
    engines = _unproven(plan, options)
    for sentence in engines.missing_ray():  # to stderr, since nothing is wrong with the study
        Console(stderr=True).print(sentence, style="yellow", soft_wrap=True)
    if options.address is None and engines.device != cluster.CPU:
        from study.engine.device import check_device

        check_device(engines.device)
    engines.used()
    with waiting(console, "finding out whether trials train side by side"):
        return _proven(engines, plan)


def resolve_to_estimate(plan: Plan, options: Options) -> Engines:
    """Return the engines of a study whose costs are to be estimated; errors are those of `resolve`."""
    return _proven(_unproven(plan, options), plan)


def _unproven(plan: Plan, options: Options) -> Engines:
    own, local = own_engine(plan.spec), _without_ray(options)
    return Engines(plan.cells, _with_device(local, own), own, lacks_ray=local.local and not options.local)


def _without_ray(options: Options) -> Options:
    """Return options that train in this process if Ray is missing, and the same options if it isn't.

    Raises:
        MissingPackageError: if they ask for a cluster or for several cores, which needs Ray.
    """
    if options.local or ray_problem() is None:
        return options
    if options.address is not None:
        check_ray("--address")
    if options.cpus is not None and options.cpus > 1:
        check_ray(f"--cpus {options.cpus}")
    return replace(options, local=True)


def _proven(engines: Engines, plan: Plan) -> Engines:
    """Prove whether trials of packed tasks train side by side, unless the store has the proofs."""
    return replace(engines, own=proven(engines.own, plan, engines.options.root))


def _with_device(options: Options, own: Engine | None) -> Options:
    """Return options with the device of a study's own engine.

    A study file of a training function names it. Packed tasks train on a GPU only if that is asked for, because no
    measurement says that they are faster there.
    """
    if as_packed(own) is not None:
        return replace(options, device=cluster.CPU) if options.device == "auto" else options
    if not isinstance(own, CallEngine):
        return options
    device = cluster.GPU if own.limits.gpus else cluster.CPU
    if options.device not in ("auto", device):
        must = "resources: {gpus: 1}, or a share" if device == cluster.CPU else "no gpus under resources"
        raise InputError(f"--device {options.device} needs a study file with {must}: it says what a trial may use")
    return replace(options, device=device)

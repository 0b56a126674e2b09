"""What a worker does with one pack: from its checkpoint, through an engine, to results in the store.

The other side of `run`: it joins engine and store in the worker's process, as `run` joins the stages in the driver's.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from study.engine import Training, engine_for
from study.errors import DeviceMemoryError, StoreError
from study.prepare import prepare
from study.provenance import provenance
from study.records import (
    Checkpoint,
    Curve,
    Event,
    Notice,
    Pack,
    PackDone,
    PackSplit,
    Progress,
    Result,
    Weights,
)
from study.store import Store, StudyStore

_SLICE_S = 1.0
# Halves of a pack that found no room on a GPU are tried down to so many trials: where these find none, nothing does.
_FEWEST_HALVED = 8


@dataclass(frozen=True)
class PackWork:
    """Trains packs of one study; travels to the workers.

    Args:
        root: the store's folder.
        study: the study's name.
        attempt: the driver's attempt; a worker stops when another driver has taken the study over.
        engine: name in `ENGINES`, or ``auto``.
        device: ``cpu`` or ``cuda``.
        checkpoint_every_s: seconds of training between checkpoints.
    """

    root: Path
    study: str
    attempt: str
    engine: str
    device: str
    checkpoint_every_s: float = 60.0

    def __call__(self, pack: Pack) -> Iterator[Event]:
        """Train the pack and store its results, yielding its progress about every second.

        Closed early, or crashing, it leaves the last checkpoint; closed early, it takes one more.
        """
        folder = Store(self.root).study(self.study)
        if folder.has_pack(pack.id):  # stored by a worker that died before it could say so
            return
        try:
            results, curves, weights = yield from self._train(folder, pack)
        except DeviceMemoryError as error:
            told = str(error)  # the error itself holds on to what the pack has taken
        else:
            self._check_attempt(folder)
            folder.write_pack(pack.id, results, curves, weights, provenance(self.device))
            folder.drop_checkpoint(pack.id)
            return
        yield from self._elsewhere(pack, told)

    def _elsewhere(self, pack: Pack, told: str) -> Iterator[Event]:
        """Train a pack that found no room in halves, and a small one on the CPU."""
        if len(pack.trials) <= _FEWEST_HALVED:
            yield Notice(f"{told}. Pack {pack.id} trains on the CPU instead")
            yield from replace(self, device="cpu", engine="auto")(pack)
            return
        middle = len(pack.trials) // 2
        halves = (Pack(pack.trials[:middle]), Pack(pack.trials[middle:]))
        yield Notice(f"{told}. Pack {pack.id} trains in halves")
        yield PackSplit(pack.id, halves)
        for half in halves:
            yield from self(half)
            yield PackDone(half.id)

    def _start(self, folder: StudyStore, pack: Pack) -> Training:
        cell = pack.trials[0].cell
        engine = engine_for(self.engine, cell, self.device)
        prepare(engine, cell)
        kept: Checkpoint | None = folder.load_checkpoint(pack.id)
        if kept is not None and kept.engine != engine.name:
            kept = None
        return engine.start(pack, device=self.device, checkpoint=kept)

    def _train(
        self, folder: StudyStore, pack: Pack
    ) -> Generator[Progress, None, tuple[list[Result], list[Curve], list[Weights]]]:
        training = self._start(folder, pack)
        kept_at = time.monotonic()
        try:
            while not training.done:
                progress = training.advance(_SLICE_S)
                if time.monotonic() - kept_at >= self.checkpoint_every_s:
                    self._keep(folder, training)
                    kept_at = time.monotonic()
                yield progress
        except GeneratorExit:
            if not folder.has_pack(pack.id):  # another worker may have been quicker
                self._keep(folder, training)
            raise
        return training.finish()

    def _keep(self, folder: StudyStore, training: Training) -> None:
        self._check_attempt(folder)
        folder.save_checkpoint(training.checkpoint())

    def _check_attempt(self, folder: StudyStore) -> None:
        if folder.attempt() != self.attempt:
            raise StoreError(f"study {self.study!r} was taken over by another driver; this worker stops")

"""What a worker does with one pack: from its checkpoint, through an engine, to results in the store.

The other side of `run`: it joins engine and store in the worker's process, as `run` joins the stages in the driver's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from study.engine import Training, engine_for
from study.errors import DeviceMemoryError, StoreError
from study.prepare import prepare
from study.provenance import provenance
from study.records import Checkpoint, Event, Notice, Pack, Progress
from study.store import Store, StudyStore

_SLICE_S = 1.0


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
        device = self.device
        try:
            training = self._start(folder, pack, device)
        except DeviceMemoryError as error:
            device = "cpu"
            yield Notice(f"{error}. Pack {pack.id} trains on the CPU instead")
            training = self._start(folder, pack, device)
        yield from self._train(folder, training)
        results, curves, weights = training.finish()
        self._check_attempt(folder)
        folder.write_pack(pack.id, results, curves, weights, provenance(device))
        folder.drop_checkpoint(pack.id)

    def _start(self, folder: StudyStore, pack: Pack, device: str) -> Training:
        cell = pack.trials[0].cell
        engine = engine_for(self.engine if device == self.device else "auto", cell, device)
        prepare(engine, cell)
        kept: Checkpoint | None = folder.load_checkpoint(pack.id)
        if kept is not None and kept.engine != engine.name:
            kept = None
        return engine.start(pack, device=device, checkpoint=kept)

    def _train(self, folder: StudyStore, training: Training) -> Iterator[Progress]:
        kept_at = time.monotonic()
        try:
            while not training.done:
                progress = training.advance(_SLICE_S)
                if time.monotonic() - kept_at >= self.checkpoint_every_s:
                    self._keep(folder, training)
                    kept_at = time.monotonic()
                yield progress
        except GeneratorExit:
            self._keep(folder, training)
            raise

    def _keep(self, folder: StudyStore, training: Training) -> None:
        self._check_attempt(folder)
        folder.save_checkpoint(training.checkpoint())

    def _check_attempt(self, folder: StudyStore) -> None:
        if folder.attempt() != self.attempt:
            raise StoreError(f"study {self.study!r} was taken over by another driver; this worker stops")

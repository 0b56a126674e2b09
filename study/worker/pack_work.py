"""A worker's work on one pack: from its checkpoint, through an engine, to results in the store.

It joins engine and store in the worker's process, as `run` joins the stages in the driver's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from study.engine import Engine, Training, engine_for
from study.engine.calls import CallEngine
from study.environment import provenance
from study.errors import PATIENCE_S, BusyError, DeviceMemoryError, StoreAwayError
from study.records import Checkpoint, Curve, Event, Keep, Notice, Pack, PackDone, PackSplit, Result, Weights
from study.store import Store, StudyStore
from study.store.retry import patiently
from study.store.rungs import StoredRungs
from study.store.trial_files import TrialFiles
from study.worker.prepare import prepared

T = TypeVar("T")
Trained = tuple[list[Result], list[Curve], list[Weights]]

_SLICE_S = 1.0
_BACK = "the store is back: checkpoints and results are kept again"
_RUNGS: dict[tuple[str, str, str], StoredRungs] = {}
"""Values at rungs by store, study and attempt, so that this process writes one file per attempt at a study."""
# A pack that doesn't fit on a GPU is halved down to this many trials; if these don't fit, it trains on the CPU.
_FEWEST_HALVED = 8


@dataclass(frozen=True)
class PackWork:
    """A callable that trains packs of one study; it is sent to workers.

    Args:
        root: the store's address, the same on every machine.
        study: the study's name.
        attempt: id of the driver's attempt; a worker stops when another driver has taken the study over.
        engine: name of an engine, or ``auto``.
        device: ``cpu`` or ``cuda``.
        own: the study's own engine, if it has one.
        checkpoint_every_s: seconds of training between checkpoints.
        patience_s: seconds that the store may be away before a pack fails.
        repository: fields of the user's repository for the provenance; workers run copies of the code.
        keep: rule for the files of trials to keep.
        is_shared: whether this process also has output of its own.
    """

    root: str
    study: str
    attempt: str
    engine: str
    device: str
    own: Engine | None = None
    checkpoint_every_s: float = 60.0
    patience_s: float = PATIENCE_S
    repository: Mapping[str, Any] = field(default_factory=dict)
    keep: Keep = field(default_factory=Keep)
    is_shared: bool = False

    def __call__(self, pack: Pack) -> Iterator[Event]:
        """Train the pack and store its results, yielding its progress about every second.

        If it crashes, the last checkpoint remains. If it is closed early, it stores a new one. While the store is away,
        it continues training without checkpoints, and waits to store its results. Results that another worker has
        stored, before or meanwhile, are left unchanged. A pack that doesn't fit on a GPU trains in halves, a small
        one on the CPU.

        Raises:
            StoreAwayError: if the store is away for longer than `patience_s`, or at an early close.
            StoreError: if the store can't be read or written.
            BusyError: if another driver has taken the study over.
            InputError: if the store's address is invalid, no engine trains the pack, or a newer package wrote its
                checkpoint or results.
            OSError: if the lock file of an engine's preparation can't be opened or locked.
            Exception: the error of an engine or of the user's code.
        """
        folder = Store(self.root).study(self.study).of_attempt(self.attempt)
        yield from self._patiently(folder.check)
        if not (yield from self._patiently(lambda: self._has(folder, pack))):
            halves = _halves(pack)
            if (yield from self._patiently(lambda: any(self._has(folder, half) for half in halves))):
                yield from self._split(pack, halves)  # another worker split it, and has died since
                return
            reason = yield from self._train_and_store(folder, pack)
            if reason is not None:
                yield from self._train_elsewhere(pack, halves, reason)
                return
        yield from self._patiently(lambda: folder.drop_checkpoint(pack.id))

    def _has(self, folder: StudyStore, pack: Pack) -> bool:
        """Return True if the store has a pack's results; stopped trials count if the study stops trials early."""
        is_pruned = isinstance(self.own, CallEngine) and self.own.pruning is not None
        return folder.has_pack(pack.id, with_stopped=is_pruned)

    def _train_and_store(self, folder: StudyStore, pack: Pack) -> Generator[Event, None, str | None]:
        """Train and store a pack; return the reason if it doesn't fit on its device, else None."""
        checkpoint = yield from self._patiently(lambda: folder.load_checkpoint(pack.id))
        for notice in folder.notices:
            yield Notice(notice)
        with _scratch(folder) as scratch:
            files = folder.trial_files(scratch, self.keep)
            try:
                trained, was_away = yield from self._train(folder, files, pack, checkpoint)
            except DeviceMemoryError as error:
                return str(error)  # the error itself would keep the pack's memory in use
            if trained is not None:
                yield from self._patiently(lambda: self._store(folder, files, pack, trained))
                if was_away:
                    yield Notice(_BACK)
        return None

    def _train_elsewhere(self, pack: Pack, halves: Sequence[Pack], reason: str) -> Iterator[Event]:
        """Train a pack that doesn't fit on its device in halves, or a small one on the CPU."""
        if not halves:
            yield Notice(f"{reason}. Pack {pack.id} trains on the CPU instead")
            yield from replace(self, device="cpu", engine="auto")(pack)
            return
        yield Notice(f"{reason}. Pack {pack.id} trains in halves")
        yield from self._split(pack, halves)

    def _split(self, pack: Pack, halves: Sequence[Pack]) -> Iterator[Event]:
        yield PackSplit(pack.id, tuple(halves))
        for half in halves:
            yield from self(half)
            yield PackDone(half.id)

    def _patiently(self, act: Callable[[], T]) -> Generator[Event, None, T]:
        return patiently(act, self.patience_s)

    def _start(
        self, files: TrialFiles, pack: Pack, checkpoint: Checkpoint | None
    ) -> Generator[Event, None, tuple[Training, int]]:
        """Prepare the engine, and start a pack, or resume it from a checkpoint; also return its first iteration.

        A checkpoint that the engine can't resume is ignored.
        """
        cell = pack.trials[0].cell
        engine = engine_for(self.engine, cell, self.device, self.own)
        for step in prepared(engine, cell):
            yield replace(step, pack_id=pack.id)
        if checkpoint is not None and not engine.goes_on_from(checkpoint, self.device):
            checkpoint = None
        begun_at = checkpoint.iteration if checkpoint is not None else 0
        if engine.has_files:
            engine = engine.with_folders(files, is_shared=self.is_shared)
            if isinstance(engine, CallEngine) and engine.pruning is not None:
                key = self.root, self.study, self.attempt
                rungs = _RUNGS[key] = _RUNGS.get(key) or StoredRungs(files.store, engine.pruning.compared)
                engine = engine.with_rungs(rungs)
            if checkpoint is not None:
                yield from self._patiently(lambda: files.fetch([trial.id for trial in pack.trials]))
        return engine.start(pack, device=self.device, checkpoint=checkpoint), begun_at

    def _train(
        self, folder: StudyStore, files: TrialFiles, pack: Pack, checkpoint: Checkpoint | None
    ) -> Generator[Event, None, tuple[Trained | None, bool]]:
        """Train a pack, storing checkpoints; return its results, and True if the store is away.

        The results are None if another worker has stored them.
        """
        training, begun_at = yield from self._start(files, pack, checkpoint)
        yield from _notices(training)
        stored_at, is_away = time.monotonic(), False
        try:
            while not training.done:
                progress = training.advance(_SLICE_S)
                yield from _notices(training)
                if time.monotonic() - stored_at >= self.checkpoint_every_s:
                    was_away = is_away
                    try:
                        if self._has(folder, pack):
                            return None, False
                        self._upload(files, pack)
                        folder.save_checkpoint(training.checkpoint())
                        is_away, notice = False, _BACK
                    except StoreAwayError as error:
                        is_away, notice = True, f"no checkpoint was kept, and training goes on: {error}"
                    if is_away != was_away:
                        yield Notice(notice)
                    stored_at = time.monotonic()
                yield replace(progress, begun_at=begun_at)
        except GeneratorExit:
            with suppress(BusyError):  # another driver's workers store their own
                if not self._has(folder, pack):  # another worker may have been quicker
                    self._upload(files, pack)
                    folder.save_checkpoint(training.checkpoint())
            raise
        finally:
            training.close()
        return training.finish(), is_away

    def _upload(self, files: TrialFiles, pack: Pack) -> None:
        if self.own is not None and self.own.has_files:
            files.upload([trial.id for trial in pack.trials])

    def _store(self, folder: StudyStore, files: TrialFiles, pack: Pack, trained: Trained) -> None:
        folder.check()  # an unmounted file system looks like an empty store
        if not self._has(folder, pack):
            self._upload(files, pack)
            folder.write_pack(pack.id, *trained, provenance(self.device, self.repository))


@contextmanager
def _scratch(folder: StudyStore) -> Iterator[Path]:
    """Yield a folder for trials' files until they are uploaded: the store itself if it is a folder."""
    if folder.path is not None:
        yield folder.path
        return
    with tempfile.TemporaryDirectory(prefix="study-files-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


def _notices(training: Training) -> Iterator[Notice]:
    return (Notice(text, is_once=True) for text in training.take_notices())


def _halves(pack: Pack) -> tuple[Pack, ...]:
    """Split a pack into two halves; return () for a pack of at most `_FEWEST_HALVED` trials."""
    if len(pack.trials) <= _FEWEST_HALVED:
        return ()
    middle = len(pack.trials) // 2
    return Pack(pack.trials[:middle]), Pack(pack.trials[middle:])

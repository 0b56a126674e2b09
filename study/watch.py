"""What surrounds the training of a study: it is watched, stored and published as it comes, and stopped gently."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from study.errors import last_line
from study.heartbeat import beating, in_job
from study.patience import Later
from study.plan import Plan
from study.progress import Board, Clock, duration, shown
from study.provenance import provenance
from study.publishing import FAILED
from study.records import (
    Event,
    Notice,
    Outcome,
    Pack,
    PackCrashed,
    PackDone,
    PackFailed,
    PackSplit,
    Progress,
    Result,
    Trial,
)
from study.store import StudyStore
from study.table import table_results
from study.tracking import Publisher

_LOOK_AGAIN_S = 0.5


@contextmanager
def watching(
    plan: Plan,
    folder: StudyStore,
    packs: Sequence[Pack],
    pending: Sequence[Trial],
    publisher: Publisher | None,
    console: Console,
    stop: threading.Event,
) -> Iterator[Callable[[Event], None]]:
    """Show, store and publish what happens to the packs.

    While the store is away, workers go on: what the driver has to do there is done when it is back, at the end at the
    latest; or not at all if `stop` is set, for then the next run finds it.
    """
    missing = {trial.id for trial in pending}
    planned = {trial.id for trial in plan.trials}
    board = Board(packs, _counted(folder, planned - missing))
    by_id = {pack.id: pack for pack in packs}
    split: dict[str, tuple[Pack, ...]] = {}
    told: set[str] = set()
    tell = partial(console.print, style="yellow")
    clock, later = Clock(), Later(tell)

    def untold(pack_id: str) -> list[Pack]:
        """Give the pack, or what it was split into, but for what was told done or failed."""
        if pack_id in split:
            return [pack for part in split[pack_id] for pack in untold(part.id)]
        return [] if pack_id in told else [by_id[pack_id]]

    def count(pack_id: str) -> None:
        parts = untold(pack_id)
        results = _publish(folder, pack_id, publisher) if parts else []
        for part in parts:
            ids = {trial.id for trial in part.trials}
            board.done(part.id, [result for result in results if result.trial.id in ids])
            told.add(part.id)
        tell_counts()

    def count_failed(pack_id: str, error: str) -> None:
        for part in untold(pack_id):
            failed, name = _failed(part, error), f"{part.id}{FAILED}"
            folder.write_pack(name, failed, [], [], provenance("cpu"))
            _publish(folder, name, publisher)
            board.failed(PackFailed(part.id, error), len(failed))
            told.add(part.id)
            console.print(f"pack {part.id} failed: {last_line(error)}", style="red")
        tell_counts()

    def tell_counts() -> None:
        if publisher is not None:
            publisher.counts(board.counts)

    with beating(board, plan.spec.study, console) if in_job() else shown(board, console) as show:

        def on_event(event: Event) -> None:
            if (jump_s := clock.jump_s()) is not None:
                tell(
                    f"this machine's clock was set {'ahead' if jump_s > 0 else 'back'} by {duration(abs(jump_s))}: "
                    "no result depends on it, but times that are shown do"
                )
            match event:
                case Progress():
                    board.progress(event)
                case Notice(text):
                    tell(text)
                case PackCrashed(pack_id, error):
                    tell(f"pack {pack_id} crashed, and is tried again: {last_line(error)}")
                case PackSplit(pack_id, parts):
                    board.split(pack_id, parts)
                    by_id.update({part.id: part for part in parts})
                    split[pack_id] = parts
                case PackDone(pack_id):
                    later.do(partial(count, pack_id))
                case PackFailed(pack_id, error):
                    later.do(partial(count_failed, pack_id, error))
            later.go_on()
            show()

        show()
        yield on_event
        while later.waiting and not stop.wait(_LOOK_AGAIN_S):
            later.go_on()
            show()


def _counted(folder: StudyStore, trial_ids: Collection[str]) -> dict[Outcome, int]:
    """Count what these trials came to before."""
    rows = folder.outcomes()
    kept = rows.filter(pc.is_in(rows["trial_id"], pa.array(list(trial_ids), pa.string())))
    return {Outcome(one["values"]): one["counts"] for one in pc.value_counts(kept["outcome"]).to_pylist()}


def _publish(folder: StudyStore, pack_id: str, publisher: Publisher | None) -> list[Result]:
    """Queue a stored pack for MLflow, and give its results."""
    results = table_results(folder.read_pack(pack_id, with_curves=False)[0])
    if publisher is not None:
        publisher.publish(pack_id, len(results))
    return results


def _failed(pack: Pack, error: str) -> list[Result]:
    return [Result(trial=trial, outcome=Outcome.FAILED, error=error) for trial in pack.trials]


@contextmanager
def stopping(console: Console) -> Iterator[threading.Event]:
    """Turn the first SIGINT or SIGTERM into a gentle stop; the second acts as ever."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])
        console.print("\nstopping: keeping checkpoints; once more to stop at once", style="yellow")

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""The driver's side of the lanes: the callback that turns Tune's calls into events, and ends who has fallen silent."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.cluster.connect import node_lives
from study.cluster.queue import NODES
from study.cluster.workers import BEGIN_ANEW
from study.errors import last_line
from study.plan.open_packs import OpenPacks
from study.records import Event, Notice, Pack, PackCrashed, PackDone, PackFailed, PackSplit, Preparing, Tick

# A lane whose worker dies again and again before it has said a word can't work where it is.
_MOST_DEATHS_UNHEARD = 3
# A lane is silent while it starts, and while it prepares its engine.
_PREPARED_S = 300.0
# Tune calls more often than that, unless the driver itself was busy, or asleep.
_USUAL_PAUSE_S = 1.0
_OUT_OF_MEMORY = ("running low on memory", "OutOfMemory")
_LOST_TOO_OFTEN = (
    f"{NODES} machines were lost while they trained this pack, the last one while it trained nothing else: perhaps the "
    "pack needs more memory than they have. Its trials are tried again when the study is run again"
)


def listener(
    loads: Sequence[tuple[Pack, ...]],
    on_event: Callable[[Event], None],
    stop: threading.Event,
    silent_after_s: float,
    more: Callable[[], tuple[Sequence[tuple[Pack, ...]], Mapping[str, float] | None]] | None = None,
    shares: Mapping[str, float] | None = None,
) -> Any:
    """Make the Tune callback.

    Args:
        loads: what is to be done.
        on_event: told what happens; what it raises ends the run, and is in `failure` then.
        stop: set to end early.
        silent_after_s: seconds without a word after which a worker is ended.
        more: asked for more loads when all is done; None if there never are any.
        shares: of the loads, as for `study.cluster.queue.Desk`.
    """
    import ray
    from ray import tune

    class Listener(_NeverSaved, tune.Callback):
        """Belongs to one run of a study, which may take several rounds of Tune.

        Attributes:
            workers: that were used.
            left: ids of packs that are neither done nor failed.
            grows: whether there may be more when all is done.
            shares: of the packs that are to be done now.
            spoke: whether a lane has said a word in this round.
            last_error: of a lane.
            failure: what `on_event` raised.
        """

        def __init__(self) -> None:
            self.workers: set[str] = set()
            self.left = {pack.id for load in loads for pack in load}
            self._open = OpenPacks(pack for load in loads for pack in load)
            self.grows = more is not None
            self.shares = shares
            self._loads = list(loads)
            self._idle: set[str] = set()
            self.spoke = False
            self.last_error = ""
            self.failure: Exception | None = None
            self._desk: Any = None
            self._packs: list[Any] = []
            self._trials: dict[str, Any] = {}
            self._heard_at: dict[str, float] = {}
            self._where: dict[str, dict[str, Any]] = {}
            self._unheard: Counter[str] = Counter()
            self._silent: set[str] = set()
            self._looked_at = time.monotonic()

        @property
        def over(self) -> bool:
            gave_up = not self.spoke and all(
                self._unheard[lane] >= _MOST_DEATHS_UNHEARD for lane in self._trials
            )
            through = not self.left and not self.grows
            return stop.is_set() or through or self.failure is not None or (bool(self._trials) and gave_up)

        def loads_left(self) -> list[tuple[Pack, ...]]:
            """Give what is neither done nor failed."""
            left = (tuple(pack for pack in load if pack.id in self.left) for load in self._loads)
            return [load for load in left if load]

        def begin(self, desk: Any, packs: list[Any]) -> None:
            """Begin a round, with a desk of its own."""
            self._desk, self._packs, self.spoke = desk, packs, False
            for kept in (
                self._trials,
                self._heard_at,
                self._where,
                self._unheard,
                self._silent,
                self._idle,
            ):
                kept.clear()
            self._looked_at = time.monotonic()

        def on_step_end(self, iteration: int, trials: Any, **info: Any) -> None:
            self._tell(Tick())
            if self.grows and self.failure is None and not stop.is_set():
                self._go_on()
            now = time.monotonic()
            # Nobody was heard while the driver waited for its store, or the machine slept: that isn't their silence.
            deaf_s = max(0.0, now - self._looked_at - _USUAL_PAUSE_S)
            self._looked_at = now
            for lane in self._heard_at:
                self._heard_at[lane] += deaf_s
            for lane in [lane for lane, at in self._heard_at.items() if now - at > silent_after_s]:
                silent_s = now - self._heard_at.pop(lane)
                self._silent.add(lane)
                self._notice(
                    self._where.get(lane), f"hasn't been heard of for {silent_s:.0f} s, and is ended"
                )
                actor = self._trials[lane].temporary_state.ray_actor
                if actor is not None:  # else it has just died
                    ray.kill(actor)

        def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            lane = _lane(trial)
            self._trials[lane] = trial
            self._heard_at[lane] = time.monotonic() + max(0.0, _PREPARED_S - silent_after_s)

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
            lane = _lane(trial)
            self.spoke = True
            self.workers.add(result["worker"])
            self._where[lane] = {name: result[name] for name in ("worker", "node")}
            silent = any(
                isinstance(event, Preparing) and event.doing != "ready" for event in result["events"]
            )
            grace_s = max(0.0, _PREPARED_S - silent_after_s) if silent else 0.0
            self._heard_at[lane] = time.monotonic() + grace_s
            for event in result["events"]:
                self._take(event)
            (self._idle.add if result["idle"] else self._idle.discard)(lane)

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self._heard_at.pop(_lane(trial), None)

        def on_trial_recover(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self._lost(_lane(trial), _error_of(trial))

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self._lost(_lane(trial), _error_of(trial))

        def _go_on(self) -> None:
            """Ask for more once all is done, and hand out again what nobody has: a desk that died forgot it."""
            if not self.left and more is not None:
                try:
                    loads_more, self.shares = more()
                except Exception as error:
                    self.failure = error  # raised where Tune has ended
                    return
                self._loads = list(loads_more)
                self.left = {pack.id for load in self._loads for pack in load}
                self._open.add(pack for load in self._loads for pack in load)
                self.grows = bool(self._loads)
            elif not (self._heard_at and self._idle >= self._heard_at.keys()):
                return
            if self.left:
                self._idle.clear()
                ray.get(self._desk.add.remote(self.loads_left(), self.shares, self._packs))

        def _take(self, event: Event) -> None:
            """Pass an event on, unless it is old news: of a pack that has ended, or was split before."""
            if isinstance(event, PackSplit) and not self._open.split(event):
                return
            if isinstance(event, PackCrashed | PackDone | PackFailed) and event.pack_id not in self._open:
                return
            if isinstance(event, PackDone | PackFailed):
                self._open.end(event.pack_id)
                self.left.discard(event.pack_id)
            self._tell(event)

        def _tell(self, event: Event) -> None:
            if self.failure is None:
                try:
                    on_event(event)
                except Exception as error:
                    self.failure = error  # raised where Tune has ended, which would turn it into a text

        def _lost(self, lane: str, error: str) -> None:
            self.last_error = error
            where = self._where.pop(lane, None)
            self._heard_at.pop(lane, None)
            self._idle.discard(lane)
            was_silent, on_purpose = lane in self._silent, BEGIN_ANEW in error
            self._silent.discard(lane)
            # A lane that has not said a word has told the desk where it is.
            node = where["node"] if where else ray.get(self._desk.node_of.remote(lane, self._packs))
            node_lost = node is not None and not node_lives(node)
            self._trials.setdefault(lane, None)
            self._unheard[lane] += where is None and not node_lost
            if node_lost:
                self._notice(where, "was lost with its machine")
            elif where is None and not was_silent and self._unheard.total() <= _MOST_DEATHS_UNHEARD:
                self._tell(Notice(f"a worker couldn't start: {last_line(error)}"))
            elif where is not None and not was_silent and not on_purpose:
                memory = any(words in error for words in _OUT_OF_MEMORY)
                self._notice(where, "died: its machine ran out of memory" if memory else "died")
            blame = not node_lost and not on_purpose
            taken_back = self._desk.take_back.remote(lane, blame, node_lost, self._packs)
            for pack_id in ray.get(taken_back):
                self._take(PackFailed(pack_id, _LOST_TOO_OFTEN if node_lost else error))

        def _notice(self, where: dict[str, Any] | None, what: str) -> None:
            worker = "a worker that was starting" if where is None else f"worker {where['worker']}"
            self._tell(Notice(f"{worker} {what}; its packs go on from their checkpoints"))

    return Listener()


class _NeverSaved:
    """Belongs to this process: Tune's snapshots of its own state, which nobody reads, get a blank instead."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return object, ()


def stopper(listener: Any) -> Any:
    """Make the Tune stopper that ends everything once the listener's run is over."""
    from ray import tune

    class Stopper(_NeverSaved, tune.Stopper):
        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            over: bool = listener.over
            return over

    return Stopper()


def _lane(trial: Any) -> str:
    return str(trial.config["lane"])


def _error_of(trial: Any) -> str:
    written = Path(trial.error_file or os.devnull)
    return written.read_text(errors="replace").strip() or "it died without a word"

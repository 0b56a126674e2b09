"""Packs on Ray Tune: a Tune trial is a lane, which trains packs until there are none left.

What a pack does is an argument: `work` takes a pack and yields its progress, keeps its own checkpoints and stores its
own results. So Tune checkpoints nothing, its experiment state is thrown away, and what a lane leaves behind that died
goes on elsewhere from what `work` kept. The driver keeps nothing of what is done but its name.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study import versions
from study.abreast import Work, abreast
from study.cluster.connect import node_ids
from study.cluster.desk import GPU, Desk
from study.errors import ClusterError
from study.records import Event, Notice, Pack, PackCrashed, PackDone, PackFailed, PackSplit, Tick

# Events of a lane come together this often at most: each report costs the driver some milliseconds.
_EVERY_S = 1.0
# A lane whose worker dies again and again before it has said a word can't work where it is.
_MOST_DEATHS_UNHEARD = 3
# Tune would hand these from the driver to its workers in a runtime environment, which Ray writes into logs and shows to
# whoever may use the cluster. Nodes have credentials of their own.
_NOT_HANDED_ON = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"}
_OUT_OF_MEMORY = ("running low on memory", "OutOfMemory")
_DESK_AGAIN = "the process that hands out packs died and was started again; what was being trained goes on"
_BEGIN_ANEW = "a crash may have left the device's context unusable: begin anew"


@dataclass(frozen=True)
class Lanes:
    """Some lanes of one kind.

    Args:
        kind: ``cpu`` or ``cuda``.
        count: how many.
        work: what they do with a pack; travels to the workers.
        gpu_share: share of a GPU that each takes.
    """

    kind: str
    count: int
    work: Work
    gpu_share: float = 0.0

    @property
    def resources(self) -> dict[str, float]:
        """Give what Ray reserves for one."""
        return {"CPU": 1, "GPU": self.gpu_share} if self.gpu_share else {"CPU": 1}


def run_on_tune(
    loads: Sequence[tuple[Pack, ...]],
    lanes: Sequence[Lanes],
    on_event: Callable[[Event], None],
    *,
    stop: threading.Event,
    shares: Mapping[str, float] | None = None,
    silent_after_s: float = 300.0,
) -> set[str]:
    """Run loads in the lanes of the connected cluster.

    Args:
        loads: what to run, the costliest first; the packs of a load side by side in one lane.
        lanes: where; more than the cluster has room for begin when it has.
        on_event: told what happens, in this process.
        stop: set to end early, with checkpoints.
        shares: as for `Desk`, where lanes of both kinds take the same loads.
        silent_after_s: seconds without a word after which a worker is ended, and its packs given to others.

    Returns:
        The workers that were used, as ``host:process``.

    Raises:
        ClusterError: if Tune itself failed, or no worker can work.
    """
    import ray
    from ray import tune
    from ray.exceptions import RayError
    from ray.tune.error import TuneError
    from ray.tune.execution import class_cache

    class_cache.ENV_VARS_TO_PROPAGATE -= _NOT_HANDED_ON
    # No more lanes than loads: each costs a worker's start.
    kinds = [kind for kind in lanes for _ in range(min(kind.count, len(loads)))]
    packs = ray.put((list(loads), shares))
    desk = _hire()
    listener = _listener(
        desk, [packs], {p.id for load in loads for p in load}, on_event, stop, silent_after_s
    )
    trainable = tune.with_resources(
        tune.with_parameters(_trainable(), lanes=kinds, desk=desk, packs=[packs], ours=versions.versions()),
        lambda config: tune.PlacementGroupFactory([kinds[config["lane"]].resources]),
    )
    try:
        while listener.left and not stop.is_set():
            listener.begin()
            with tempfile.TemporaryDirectory(prefix="study-tune-") as scratch:
                tuner = tune.Tuner(
                    trainable,
                    param_space={"lane": tune.grid_search(list(range(len(kinds))))},
                    run_config=tune.RunConfig(
                        name=uuid.uuid4().hex,
                        storage_path=scratch,
                        failure_config=tune.FailureConfig(max_failures=-1),
                        checkpoint_config=tune.CheckpointConfig(
                            checkpoint_frequency=0, checkpoint_at_end=False
                        ),
                        callbacks=[listener],
                        stop=_stopper(listener),
                        verbose=0,
                    ),
                )
                tuner.fit()
            if listener.left and not listener.spoke and not stop.is_set():
                raise ClusterError(f"no worker of the cluster can work: {_last_line(listener.last_error)}")
    except (TuneError, RayError) as error:
        raise ClusterError(f"Ray Tune stopped: {error}") from error
    finally:
        with suppress(RayError):
            ray.kill(desk)
        del packs
    used: set[str] = listener.workers
    return used


def _hire() -> Any:
    """Open the desk, in a process on this machine: while the driver is busy with its store, lanes must not wait.

    If it dies, it opens again with all packs: those that are stored are handed out once more, and done at once. What a
    `Desk` takes comes with each call, as a list of one object of Ray's; so it is there for one that was started again.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    class OpenDesk:
        def __init__(self) -> None:
            self._desk: Desk | None = None
            self._to_tell = bool(ray.get_runtime_context().was_current_actor_reconstructed)

        def hand_out(self, lane: str, kind: str, packs: list[Any]) -> tuple[tuple[Pack, ...], bool]:
            """Give a lane its next packs, and say, once, if this desk was started again."""
            to_tell, self._to_tell = self._to_tell, False
            return self._opened(packs).next(lane, kind), to_tell

        def settle(self, lane: str, pack_id: str, done: bool, packs: list[Any]) -> bool:
            """Take in that a pack is done, or that it crashed, and say whether it is tried again."""
            if done:
                self._opened(packs).done(lane, pack_id)
            return not done and self._opened(packs).crashed(lane, pack_id)

        def take_back(self, lane: str, blame: bool, packs: list[Any]) -> list[str]:
            return self._opened(packs).lost(lane, blame=blame)

        def _opened(self, packs: list[Any]) -> Desk:
            self._desk = self._desk or Desk(*ray.get(packs[0]))
            return self._desk

    # Not softly: from a head without cores Ray would move it to a worker, whose loss would then be everybody's.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor: Any = ray.remote(OpenDesk)
    return actor.options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here).remote()


def _trainable() -> type:
    """Make the class that Tune runs in its workers."""
    import ray
    from ray import tune

    class PackTrainable(tune.Trainable):
        """A lane."""

        def setup(  # type: ignore[override]  # Tune passes `with_parameters` by name
            self,
            config: dict[str, Any],
            lanes: Sequence[Lanes],
            desk: Any,
            packs: list[Any],
            ours: Mapping[str, str],
        ) -> None:
            self._lane, self._desk, self._packs = str(config["lane"]), desk, packs
            self._kind, self._work = lanes[config["lane"]].kind, lanes[config["lane"]].work
            self._steps: Any = None
            self._crashed = False
            context = ray.get_runtime_context()
            self._where = {
                "worker": f"{self._local_ip}:{os.getpid()}",
                "node": context.get_node_id(),
                "actor": context.current_actor,
            }
            apart = versions.difference(ours, versions.versions())
            if apart is not None:
                raise ClusterError(
                    f"worker {self._where['worker']} doesn't run what the driver runs: {apart}"
                )

        def step(self) -> dict[str, Any]:
            if self._crashed and self._kind == GPU:
                raise RuntimeError(_BEGIN_ANEW)
            events: list[Event] = []
            until = time.monotonic() + _EVERY_S
            while time.monotonic() < until and not self._crashed:
                if self._steps is None:
                    asked = self._desk.hand_out.remote(self._lane, self._kind, self._packs)
                    packs, again = ray.get(asked)
                    if again:
                        events.append(Notice(_DESK_AGAIN))
                    if not packs:
                        return {"events": events, "done": True, **self._where}
                    self._steps = abreast(self._work, packs)
                told = next(self._steps, None)
                if told is None:
                    self._steps = None
                else:
                    events += [self._settled(event) for event in told]
            self._crashed = self._crashed and self._kind == GPU
            return {"events": events, "done": False, **self._where}

        def _settled(self, event: Event) -> Event:
            """Tell the desk what it must know, and the driver what came of it."""
            if isinstance(event, PackDone):
                ray.get(self._desk.settle.remote(self._lane, event.pack_id, True, self._packs))
            if isinstance(event, PackCrashed):
                self._crashed = True
                again = ray.get(self._desk.settle.remote(self._lane, event.pack_id, False, self._packs))
                return event if again else PackFailed(event.pack_id, event.error)
            return event

        def cleanup(self) -> None:
            if self._steps is not None:
                self._steps.close()

    return PackTrainable


class _NeverSaved:
    """Belongs to this process: Tune's snapshots of its own state, which nobody reads, get a blank instead."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return object, ()


def _stopper(listener: Any) -> Any:
    """Make the Tune stopper that ends everything once it was asked for, or nothing is left to do."""
    from ray import tune

    class Stopper(_NeverSaved, tune.Stopper):
        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            over: bool = listener.over
            return over

    return Stopper()


def _error_of(trial: Any) -> str:
    written = Path(trial.error_file or os.devnull)
    return written.read_text(errors="replace").strip() or "it died without a word"


def _last_line(error: str) -> str:
    return error.splitlines()[-1]


def _listener(
    desk: Any,
    packs: list[Any],
    pack_ids: set[str],
    on_event: Callable[[Event], None],
    stop: threading.Event,
    silent_after_s: float,
) -> Any:
    """Make the Tune callback that turns Tune's calls into events."""
    import ray
    from ray import tune

    class Listener(_NeverSaved, tune.Callback):
        def __init__(self) -> None:
            self.workers: set[str] = set()
            self.spoke = False
            self.last_error = ""
            self._left = set(pack_ids)
            self._parts: set[str] = set()
            self._heard_at: dict[str, float] = {}
            self._where: dict[str, dict[str, Any]] = {}
            self._unheard = 0

        @property
        def left(self) -> int:
            return len(self._left)

        @property
        def over(self) -> bool:
            gave_up = not self.spoke and self._unheard >= _MOST_DEATHS_UNHEARD
            return stop.is_set() or not self._left or gave_up

        def begin(self) -> None:
            self.spoke, self._unheard = False, 0

        def on_step_end(self, iteration: int, trials: Any, **info: Any) -> None:
            on_event(Tick())
            now = time.monotonic()
            for lane in [lane for lane, at in self._heard_at.items() if now - at > silent_after_s]:
                silent_s = now - self._heard_at.pop(lane)
                self._notice(lane, f"hasn't been heard of for {silent_s:.0f} s, and is ended")
                ray.kill(self._where[lane]["actor"])

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
            lane = str(trial.config["lane"])
            self.spoke = True
            self.workers.add(result["worker"])
            self._where[lane] = {name: result[name] for name in ("worker", "node", "actor")}
            self._heard_at[lane] = time.monotonic()
            for event in result["events"]:
                self._take(event)

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self._heard_at.pop(str(trial.config["lane"]), None)

        def on_trial_recover(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self._lost(str(trial.config["lane"]), _error_of(trial))

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self._lost(str(trial.config["lane"]), _error_of(trial))

        def _take(self, event: Event) -> None:
            if isinstance(event, PackSplit):
                self._parts |= {part.id for part in event.parts}
            if isinstance(event, PackDone | PackFailed):
                known = self._parts if event.pack_id in self._parts else self._left
                if event.pack_id not in known:  # told before: by another lane, or by a worker that died since
                    return
                known.remove(event.pack_id)
            on_event(event)

        def _lost(self, lane: str, error: str) -> None:
            self.last_error = error
            where = self._where.get(lane)
            was_silent = self._heard_at.pop(lane, None) is None
            node_lost = where is not None and where["node"] not in node_ids()
            if where is None:
                self._unheard += 1
                if self._unheard <= _MOST_DEATHS_UNHEARD:
                    on_event(Notice(f"a worker couldn't start: {_last_line(error)}"))
            elif node_lost:
                self._notice(lane, "was lost with its machine")
            elif not was_silent and _BEGIN_ANEW not in error:
                memory = any(words in error for words in _OUT_OF_MEMORY)
                self._notice(lane, "died: its machine ran out of memory" if memory else "died")
            for pack_id in ray.get(desk.take_back.remote(lane, not node_lost, packs)):
                self._take(PackFailed(pack_id, error))

        def _notice(self, lane: str, what: str) -> None:
            worker = self._where[lane]["worker"]
            on_event(Notice(f"worker {worker} {what}; its packs go on from their checkpoints"))

    return Listener()

"""The worker's side of a lane: the Tune trial that asks the desk for packs and trains them until none are left."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from study import environment
from study.cluster.queue import GPU
from study.cluster.workers import BEGIN_ANEW
from study.errors import ClusterError
from study.records import Event, Notice, PackCrashed, PackDone, PackFailed, Preparing
from study.worker.concurrent import abreast

if TYPE_CHECKING:
    from study.cluster.workers import Lanes

# Events of a lane come together this often at most: each report costs the driver some milliseconds, in which other
# lanes wait. So many lanes it hears once a second.
_EVERY_S = 1.0
_LANES_A_SECOND = 50
_DESK_AGAIN = "the process that hands out packs died and was started again; what was being trained goes on"


def trainable() -> type:
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
            self._every_s = max(_EVERY_S, len(lanes) / _LANES_A_SECOND)
            self._steps: Any = None
            self._crashed = False
            self._where = {
                "worker": f"{self._local_ip}:{os.getpid()}",
                "node": ray.get_runtime_context().get_node_id(),
            }
            apart = environment.difference(ours, environment.versions())
            if apart is not None:
                raise ClusterError(
                    f"worker {self._where['worker']} doesn't run what the driver runs: {apart}"
                )

        def step(self) -> dict[str, Any]:
            if self._crashed and self._kind == GPU:
                raise RuntimeError(BEGIN_ANEW)
            events: list[Event] = []
            until = time.monotonic() + self._every_s
            while time.monotonic() < until and not self._crashed:
                if self._steps is None:
                    wait_s = 0.0 if events else self._every_s  # what happened is told before any waiting
                    packs, again, may_be_more = ray.get(
                        self._desk.hand_out.remote(
                            self._lane, self._kind, self._where["node"], self._packs, wait_s
                        )
                    )
                    if again:
                        events.append(Notice(_DESK_AGAIN))
                    if not packs:
                        return {"events": events, "done": not may_be_more, "idle": True, **self._where}
                    self._steps = abreast(self._work, packs)
                told = next(self._steps, None)
                if told is None:
                    self._steps = None
                else:
                    events += [self._settled(event) for event in told]
                    if any(isinstance(event, Preparing) for event in told):
                        break  # heard before the worker is silent for as long as compiling takes
            self._crashed = self._crashed and self._kind == GPU
            return {"events": events, "done": False, "idle": False, **self._where}

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

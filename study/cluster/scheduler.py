"""Packs on Ray Tune: a Tune trial is a lane, which trains packs until there are none left.

What a pack does is an argument: `work` takes a pack and yields its progress, keeps its own checkpoints and stores its
own results. So Tune checkpoints nothing, its experiment state is thrown away, and what a lane leaves behind that died
goes on elsewhere from what `work` kept. The driver keeps nothing of what is done but its name.

A lane in a worker: lane.py; what the driver hears of it: listener.py; who trains what: desk.py.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from study import environment
from study.cluster.callback import listener, stopper
from study.cluster.queue import Desk
from study.cluster.worker import trainable
from study.cluster.workers import HandedOut, Lanes, Load, More
from study.errors import ClusterError, last_line
from study.records import Event

# Tune would hand these from the driver to its workers in a runtime environment, which Ray writes into logs and shows to
# whoever may use the cluster. Nodes have credentials of their own.
_NOT_HANDED_ON = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"}


def run_on_tune(
    loads: Sequence[Load],
    lanes: Sequence[Lanes],
    on_event: Callable[[Event], None],
    *,
    stop: threading.Event,
    shares: Mapping[str, float] | None = None,
    silent_after_s: float = 300.0,
    more: More | None = None,
) -> set[str]:
    """Run loads in the lanes of the connected cluster.

    Args:
        loads: what to run, the costliest first; the packs of a load side by side in one lane.
        lanes: where; more than the cluster has room for begin when it has.
        on_event: told what happens, in this process.
        stop: set to end early, with checkpoints.
        shares: as for `Desk`, where lanes of both kinds take the same loads.
        silent_after_s: seconds without a word after which a worker is ended, and its packs given to others.
        more: asked, in this process, whenever all is done: for loads, and shares as above, until it has none. Lanes
            wait for its answer.

    Returns:
        The workers that were used, as ``host:process``.

    Raises:
        ClusterError: if Tune itself failed, or no worker can work.
        Exception: what `on_event` or `more` raised, once all lanes have stopped.
    """
    from ray.exceptions import RayError
    from ray.tune.error import TuneError
    from ray.tune.execution import class_cache

    class_cache.ENV_VARS_TO_PROPAGATE -= _NOT_HANDED_ON
    heard = listener(loads, on_event, stop, silent_after_s, more, shares)
    try:
        # A worker may die after it has told the desk of a pack, and before it has told the driver. So what is left
        # when all lanes have ended is handed out again, by a new desk: a pack that is stored is done at once.
        while heard.left and not stop.is_set():
            _round(heard.loads_left(), lanes, heard)
            if heard.failure is not None:
                raise heard.failure
            if heard.left and not heard.spoke and not stop.is_set():
                raise ClusterError(f"no worker of the cluster can work: {last_line(heard.last_error)}")
    except (TuneError, RayError) as error:
        raise ClusterError(f"Ray Tune stopped: {error}") from error
    used: set[str] = heard.workers
    return used


def _round(loads: Sequence[Load], lanes: Sequence[Lanes], heard: Any) -> None:
    """Run loads until all lanes have ended."""
    from ray import tune

    # No more lanes than loads, if these are all: each costs a worker's start.
    kinds = [k for k in lanes for _ in range(k.count if heard.grows else min(k.count, len(loads)))]
    with (
        _desk(loads, heard.shares, heard.grows) as (desk, packs),
        tempfile.TemporaryDirectory(prefix="study-tune-") as scratch,
    ):
        heard.begin(desk, packs)
        tuner = tune.Tuner(
            tune.with_resources(
                tune.with_parameters(
                    trainable(), lanes=kinds, desk=desk, packs=packs, ours=environment.versions()
                ),
                lambda config: tune.PlacementGroupFactory([kinds[config["lane"]].resources]),
            ),
            param_space={"lane": tune.grid_search(list(range(len(kinds))))},
            run_config=tune.RunConfig(
                name=uuid.uuid4().hex,
                storage_path=scratch,
                failure_config=tune.FailureConfig(max_failures=-1),
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                callbacks=[heard],
                stop=stopper(heard),
                verbose=0,
            ),
        )
        tuner.fit()


@contextmanager
def _desk(
    loads: Sequence[Load], shares: Mapping[str, float] | None, grows: bool
) -> Iterator[tuple[Any, list[Any]]]:
    """Open a desk, and give it with the packs that each call takes along."""
    import ray
    from ray.exceptions import RayError

    packs = [ray.put((list(loads), shares, grows))]
    desk = _hire()
    try:
        yield desk, packs
    finally:
        with suppress(RayError):
            ray.kill(desk)


def _hire() -> Any:
    """Open the desk, in a process on this machine: while the driver is busy with its store, lanes must not wait.

    If it dies, it opens again with the packs that it began with: those that are stored are handed out once more, and
    done at once. What a `Desk` takes comes with each call, as a list of one object of Ray's; so it is there for one
    that was started again. What was added since, the driver adds again when it hears that all lanes are idle.
    """
    import asyncio

    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    class OpenDesk:
        def __init__(self) -> None:
            self._desk: Desk | None = None
            self._grows = False
            self._added = asyncio.Event()
            self._to_tell = bool(ray.get_runtime_context().was_current_actor_reconstructed)

        async def hand_out(
            self, lane: str, kind: str, node: str, packs: list[Any], wait_s: float
        ) -> HandedOut:
            """Give a lane its next packs; if there are none but may be more, after a while."""
            desk = await self._opened(packs)
            handed = desk.next(lane, kind, node)
            if not handed and self._grows and wait_s:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._added.wait(), wait_s)
                handed = desk.next(lane, kind, node)
            to_tell, self._to_tell = self._to_tell, False
            return handed, to_tell, self._grows

        async def settle(self, lane: str, pack_id: str, done: bool, packs: list[Any]) -> bool:
            """Take in that a pack is done, or that it crashed, and say whether it is tried again."""
            desk = await self._opened(packs)
            if done:
                desk.done(lane, pack_id)
            return not done and desk.crashed(lane, pack_id)

        async def node_of(self, lane: str, packs: list[Any]) -> str | None:
            return (await self._opened(packs)).node_of(lane)

        async def take_back(self, lane: str, blame: bool, with_node: bool, packs: list[Any]) -> list[str]:
            return (await self._opened(packs)).lost(lane, blame=blame, with_node=with_node)

        async def add(self, loads: list[Load], shares: Mapping[str, float] | None, packs: list[Any]) -> None:
            """Take in more loads, and wake the lanes that wait for them."""
            (await self._opened(packs)).add(loads, shares)
            self._added.set()
            self._added = asyncio.Event()

        async def _opened(self, packs: list[Any]) -> Desk:
            if self._desk is None:
                loads, shares, grows = await packs[0]
                if self._desk is None:  # another call may have been quicker
                    self._desk, self._grows = Desk(loads, shares), grows
            return self._desk

    # Not softly: from a head without cores Ray would move it to a worker, whose loss would then be everybody's.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor: Any = ray.remote(OpenDesk)
    return actor.options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here).remote()

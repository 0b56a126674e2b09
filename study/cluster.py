"""Packs on Ray Tune, or in this process for debugging; the only file importing Ray.

A load is one Tune trial: a pack, or the packs that share a GPU. What a pack does is an argument: `work` takes a pack
and yields its progress, keeps its own checkpoints and stores its own results. So Tune checkpoints nothing, its
experiment state is thrown away, and a crashed pack goes on from what `work` kept.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import tempfile
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from study.abreast import Work, abreast, close
from study.errors import ClusterError
from study.records import Event, Pack, PackDone, PackFailed, Tick

_Answer = TypeVar("_Answer")

RETRIES = 2
_ROLL_CALL_TIMEOUT_S = 30.0
_CONNECT_TIMEOUT_S = 5.0
# A node may have to be started first.
_ANSWER_TIMEOUT_S = 600.0
_OBJECT_STORE_BYTES = 128 * 2**20

# Read when Ray is imported: no usage reports, no CSV, JSON and TensorBoard files of each trial, no state
# snapshots; and signals are ours to handle.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "86400",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


def run_here(
    packs: Sequence[Pack], work: Work, on_event: Callable[[Event], None], *, stop: threading.Event
) -> None:
    """Run the packs one after another in this process, so that a debugger sees everything.

    Args:
        packs: what to run.
        work: what a pack does.
        on_event: told what happens.
        stop: set to end early, with a checkpoint.
    """
    for pack in packs:
        steps = work(pack)
        try:
            for progress in steps:
                on_event(progress)
                if stop.is_set():
                    return
        except Exception:  # a pack's crash must not take the other packs along
            on_event(PackFailed(pack.id, traceback.format_exc(limit=-4)))
        else:
            on_event(PackDone(pack.id))
        finally:
            close(steps)


@contextmanager
def connection(address: str | None, cpus: int | None) -> Iterator[None]:
    """Start Ray on this machine, or connect to a running cluster, and leave it at the end.

    Args:
        address: of a running cluster; None to start one here.
        cpus: cores of this machine to use; None for all. Not used with an address.

    Raises:
        ClusterError: if the cluster can't be started or reached.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    if address is not None:
        _check_reachable(address)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    own: dict[str, Any] = (
        {
            "address": "local",
            "num_cpus": cpus,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
        if address is None
        else {"address": address}
    )
    try:
        ray.init(logging_level=logging.ERROR, log_to_driver=False, namespace="study", **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = "on this machine" if address is None else f"at {address}"
        hint = (
            ""
            if address is None
            else "; if the cluster asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        )
        raise ClusterError(f"Ray can't be started or reached {where}: {error}{hint}") from error
    try:
        yield
    finally:
        gc.collect()  # handles of Ray that die after it has shut down end the process
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Try the address first: Ray itself tries for minutes, and says little."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # such as "auto": Ray knows what is meant
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise ClusterError(f"no Ray cluster answers at {address}: {error}; check --address") from error


def slots(gpu_share: float) -> int:
    """Count the packs that can run side by side on the connected cluster.

    Args:
        gpu_share: share of a GPU that each pack takes; 0 for packs on the CPU.

    Raises:
        ClusterError: if not even one can.
    """
    import ray

    have: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    count = int(have.get("CPU", 0))
    if gpu_share:
        count = min(count, int(have.get("GPU", 0) / gpu_share + 1e-9))
    if count < 1:
        wanted = f"1 CPU and {gpu_share:g} GPU" if gpu_share else "1 CPU"
        has = f"{have.get('CPU', 0):g} CPU and {have.get('GPU', 0):g} GPU"
        raise ClusterError(f"a pack needs {wanted}, but the cluster has {has}")
    return count


def ask(question: Callable[[], _Answer], gpu_share: float) -> _Answer:
    """Have a worker of the connected cluster answer, one with a GPU if packs need it.

    Args:
        question: travels to the worker.
        gpu_share: share of a GPU that it takes.

    Raises:
        ClusterError: if no worker does.
    """
    import ray
    from ray.exceptions import RayError

    asked = ray.remote(lambda: question()).options(num_cpus=1, num_gpus=gpu_share)
    try:
        answer: _Answer = ray.get(asked.remote(), timeout=_ANSWER_TIMEOUT_S)
    except RayError as error:
        raise ClusterError(f"no worker of the cluster answers: {error}") from error
    return answer


def run_on_tune(
    loads: Sequence[Sequence[Pack]],
    work: Work,
    on_event: Callable[[Event], None],
    *,
    stop: threading.Event,
    slots: int,
    gpu_share: float,
) -> set[str]:
    """Run loads as Tune trials on the connected cluster.

    Args:
        loads: what to run, the costliest first; the packs of a load side by side in one worker.
        work: what a pack does; travels to the workers.
        on_event: told what happens, in this process.
        stop: set to end early, with checkpoints.
        slots: loads that can run side by side.
        gpu_share: share of a GPU that each load takes.

    Returns:
        The workers that were used, as ``host:process``: as many as slots, unless there were fewer loads.

    Raises:
        ClusterError: if Tune itself failed.
    """
    from ray import tune
    from ray.exceptions import RayError
    from ray.tune.error import TuneError

    listener = _listener(loads, on_event)
    roll = _roll(min(slots, len(loads)))
    trainable = tune.with_resources(
        tune.with_parameters(_trainable(), loads=list(loads), work=work, roll=roll),
        {"CPU": 1, "GPU": gpu_share} if gpu_share else {"CPU": 1},
    )
    with tempfile.TemporaryDirectory(prefix="study-tune-") as scratch:
        tuner = tune.Tuner(
            trainable,
            param_space={"load": tune.grid_search(list(range(len(loads))))},
            tune_config=tune.TuneConfig(reuse_actors=True),
            run_config=tune.RunConfig(
                name=uuid.uuid4().hex,
                storage_path=scratch,
                failure_config=tune.FailureConfig(max_failures=RETRIES),
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                callbacks=[listener],
                stop=_stopper(stop),
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        except (TuneError, RayError) as error:
            raise ClusterError(f"Ray Tune stopped: {error}") from error
    used: set[str] = listener.workers
    return used


def _roll(expected: int) -> Any:
    """Start the roll call: workers wait in it until all have come.

    With `reuse_actors`, a worker that finishes early takes over the next trial, and Tune then drops the worker which
    was still starting for that trial. When packs are shorter than a worker's start (2 s), one worker so ends up
    doing everything. None can finish before all have come if each waits for the others once, at its start.
    """
    import ray

    class Roll:
        def __init__(self, expected: int) -> None:
            self._missing = expected
            self._complete = asyncio.Event()

        async def arrive(self) -> None:
            self._missing -= 1
            if self._missing <= 0:
                self._complete.set()
            await self._complete.wait()

    actor: Any = ray.remote(Roll)
    return actor.options(num_cpus=0, max_concurrency=1000).remote(expected)


def _trainable() -> type:
    """Make the class that Tune runs in its workers."""
    import ray
    from ray import tune

    class PackTrainable(tune.Trainable):
        """Steps through one load's work; reused for the next load."""

        def setup(  # type: ignore[override]  # Tune passes `with_parameters` by name
            self, config: dict[str, Any], loads: list[Sequence[Pack]], work: Work, roll: Any
        ) -> None:
            self._loads, self._work = loads, work
            self._begin(config)
            # A node that isn't coming must not hold up the others.
            with suppress(ray.exceptions.RayError):
                ray.get(roll.arrive.remote(), timeout=_ROLL_CALL_TIMEOUT_S)

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self.cleanup()
            self._begin(new_config)
            return True

        def _begin(self, config: dict[str, Any]) -> None:
            self._events = abreast(self._work, self._loads[config["load"]])

        def step(self) -> dict[str, Any]:
            worker = f"{self._local_ip}:{os.getpid()}"
            events = next(self._events, None)
            return {"events": events, "done": events is None, "worker": worker}

        def cleanup(self) -> None:
            self._events.close()

    return PackTrainable


class _NeverSaved:
    """Belongs to this process: Tune's snapshots of its own state, which nobody reads, get a blank instead."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return object, ()


def _stopper(stop: threading.Event) -> Any:
    """Make the Tune stopper that ends everything once `stop` is set."""
    from ray import tune

    class Stopper(_NeverSaved, tune.Stopper):
        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            return stop.is_set()

    return Stopper()


def _error_of(trial: Any) -> str:
    written = Path(trial.error_file or os.devnull)
    return written.read_text(errors="replace").strip() or "the worker died without a word"


def _listener(loads: Sequence[Sequence[Pack]], on_event: Callable[[Event], None]) -> Any:
    """Make the Tune callback that turns Tune's calls into events."""
    from ray import tune

    class Listener(_NeverSaved, tune.Callback):
        def __init__(self) -> None:
            self.workers: set[str] = set()
            self._done: set[str] = set()

        def on_step_end(self, iteration: int, trials: Any, **info: Any) -> None:
            on_event(Tick())

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
            self.workers.add(result["worker"])
            for event in result["events"] or ():
                if isinstance(event, PackDone):
                    if event.pack_id in self._done:  # before a crash of another that shared its worker
                        continue
                    self._done.add(event.pack_id)
                on_event(event)

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            for pack in loads[trial.config["load"]]:
                if pack.id not in self._done:
                    on_event(PackFailed(pack.id, _error_of(trial)))

    return Listener()

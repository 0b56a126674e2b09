"""The faults: each strikes a study in progress, and makes an operator's repairs.

A fault is a function of the study that it strikes. When it returns, the study's last driver must end well. `FAULTS` has
the required message to the user.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults.bed import DEADLINE_S, Bed, Study
from tests.faults.nodes import WORKERS
from tests.processes import wait_for

AN_HOUR_S = 3600
GO_ON = "its packs go on from their checkpoints"
# A checkpoint or a result may meet the silence first: each has its message.
_NO_ANSWER = "no answer from the server at"


def worker_killed(study: Study) -> None:
    """Kill the process of a worker."""
    with study.struck(GO_ON):
        os.kill(study.bed.trainer(), signal.SIGKILL)


def raylet_killed(study: Study) -> None:
    """Kill a machine's raylet; the machine stays away."""
    with study.struck(GO_ON):
        study.bed.network.kill(WORKERS[0], "raylet/raylet")
    study.until_progress()


def raylet_killed_and_back(study: Study) -> None:
    """Kill a machine's raylet; its supervisor starts it again."""
    with study.struck(GO_ON):
        study.bed.network.kill(WORKERS[0], "raylet/raylet")
    wait_for(lambda: study.bed.nodes.ended(WORKERS[0]), "the node to end")
    study.bed.nodes.mend()


def driver_killed(study: Study) -> None:
    """Kill the driver; the user runs the study again."""
    with study.struck():
        study.drivers[-1].signal(signal.SIGKILL)
    study.drivers[-1].wait()
    study.run_again()


def kept_driver_killed(study: Study) -> None:
    """Kill a driver that `study keep` watches over, as in a job."""
    keeper = study.drivers[-1].process.pid
    (driver,) = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    with study.struck():
        os.kill(int(driver), signal.SIGKILL)


def driver_terminated(study: Study) -> None:
    """Terminate the driver by SIGTERM; the user runs the study again."""
    with study.struck():
        study.drivers[-1].signal(signal.SIGTERM)
    assert study.drivers[-1].wait() == 130, study.drivers[-1].told[-3000:]
    study.run_again()


def head_killed(study: Study) -> None:
    """Kill GCS and the head's raylet; the operator starts a cluster, the user runs the study again."""
    first = study.drivers[-1]
    with study.struck():
        study.bed.network.kill(1, "gcs/gcs_server")
        study.bed.network.kill(1, "raylet/raylet")
    assert first.wait() > 0, first.told[-3000:]
    study.bed.nodes.mend()
    study.run_again()


def mlflow_killed(study: Study) -> None:
    """Kill MLflow's server; its supervisor starts it again."""
    with study.struck():
        study.bed.service.mlflow.kill()
    _until_told(study, _PUBLISHED_LATER[0])
    study.until_progress()
    study.bed.service.mlflow.start()


def mlflow_away_to_the_end(study: Study) -> None:
    """Kill MLflow's server; it comes back when the study is over."""
    with study.struck():
        study.bed.service.mlflow.kill()
    study.drivers[-1].wait()
    study.bed.service.mlflow.start()


def postgres_killed(study: Study) -> None:
    """Kill PostgreSQL; its supervisor starts it again."""
    with study.struck():
        study.bed.service.postgres.kill()
    _until_told(study, _PUBLISHED_LATER[0])
    study.until_progress()
    study.bed.service.postgres.start()


def node_cut_off(study: Study) -> None:
    """Cut a machine off until it is given up and its packs go on elsewhere."""
    with study.struck(GO_ON):
        study.bed.network.cut(WORKERS[0])
    study.until_progress()
    study.bed.network.mend(WORKERS[0])


def node_cut_off_for_a_moment(study: Study) -> None:
    """Cut a machine off until another machine has finished a pack."""
    with study.struck():
        study.bed.network.cut(WORKERS[0])
    before = study.done
    wait_for(lambda: study.done > before, "another pack")
    study.bed.network.mend(WORKERS[0])


def worker_paused(study: Study) -> None:
    """Pause a worker's process for good."""
    with study.struck(GO_ON):
        os.kill(study.bed.trainer(), signal.SIGSTOP)


def disk_full(study: Study) -> None:
    """Fill the disk until the user has been told."""
    with study.struck():
        study.disk.fill()
    try:
        _until_told(study, "the disk is full")
    finally:
        study.disk.free()


def store_read_only(study: Study) -> None:
    """Close the file system to writers until the user has been told."""
    with study.struck():
        study.disk.close_to_writers()
    try:
        _until_told(study, "is read-only")
    finally:
        study.disk.reopen()


def object_store_paused(study: Study) -> None:
    """Pause the object store until the user has been told; its content must survive."""
    with study.struck():
        study.bed.s3.pause()
    try:
        _until_told(study, _NO_ANSWER)
    finally:
        study.bed.s3.go_on()


def result_torn(study: Study) -> None:
    """Tear a result while no driver runs; the user runs the study again."""
    study.drivers[-1].signal(signal.SIGTERM)
    assert study.drivers[-1].wait() == 130
    folder = study.folder.path
    assert folder is not None
    with study.struck():
        torn = sorted((folder / "results").iterdir())[0]
        torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
    study.run_again()


def checkpoint_flipped(study: Study) -> None:
    """Flip a bit in the array headers of each checkpoint while no driver runs; the user runs the study again."""
    study.drivers[-1].signal(signal.SIGTERM)
    assert study.drivers[-1].wait() == 130
    folder = study.folder.path
    assert folder is not None
    with study.struck():
        for checkpoint in (folder / "checkpoints").iterdir():
            content = bytearray(checkpoint.read_bytes())
            content[content.index(b"{'descr'") + 1] ^= 1
            checkpoint.write_bytes(content)
    study.run_again()


def two_drivers(study: Study) -> None:
    """Run the study a second time while it runs, with its workers paused so that it can't finish."""
    for number in WORKERS:
        study.bed.network.send(number, "PackTrainable", signal.SIGSTOP)
    try:
        with study.struck():
            second = study.run()
        assert second.wait() == 1, second.told[-3000:]
    finally:
        study.bed.network.go_on()
    study.drivers.reverse()


def clock_set_back(study: Study) -> None:
    """Set the clock of the cluster and the driver back."""
    assert study.bed.clock is not None
    with study.struck():
        study.bed.clock.set_back(AN_HOUR_S)


def queue_killed(study: Study) -> None:
    """Kill the process that hands out packs."""
    assert study.bed.network.processes(1, "QueueActor"), "the queue must be where the driver is"
    with study.struck():
        study.bed.network.kill(1, "QueueActor")


def _until_told(study: Study, phrase: str) -> None:
    def told() -> bool:
        assert study.drivers[-1].runs, study.drivers[-1].told[-3000:]
        return phrase in study.drivers[-1].told

    wait_for(told, f"the user to read {phrase!r}", DEADLINE_S)


@dataclass(frozen=True)
class Fault:
    """A fault.

    Args:
        description: text in the table.
        strike: function that causes it.
        told: messages to the user; the first is the sentence of the table.
        options: options of the driver.
        store: ``folder``, ``disk`` (a small file system) or ``s3``.
        own_clock: whether it requires a cluster whose clock can be set.
        kept: whether `study keep` watches over the driver.
    """

    description: str
    strike: Callable[[Study], None]
    told: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    store: str = "folder"
    own_clock: bool = False
    kept: bool = False

    def begun(self, bed: Bed) -> Study:
        """Start a study, wait until midway, and return it."""
        study = bed.study(self.store)
        study.until_midway(study.run(*self.options, kept=self.kept))
        return study


_LOST = (f"was lost with its machine; {GO_ON}",)
_UNPUBLISHED = ("MLflow at", "aren't published yet")
_PUBLISHED_LATER = ("The study goes on", "can be used again")
_SECOND = ("is being run by process",)

FAULTS: Mapping[str, Fault] = {
    "worker killed": Fault("kill -9 of a worker", worker_killed, (f"died; {GO_ON}",)),
    "raylet killed": Fault("kill -9 of a raylet; the node stays away", raylet_killed, _LOST),
    "raylet killed and back": Fault("kill -9 of a raylet; the node comes back", raylet_killed_and_back, _LOST),
    "driver killed": Fault("kill -9 of the driver; run again", driver_killed, ("ended without a word",)),
    "driver of a job killed": Fault(
        "kill -9 of the driver of a job", kept_driver_killed, ("the driver was killed by SIGKILL",), kept=True
    ),
    "driver terminated": Fault("SIGTERM to the driver; run again", driver_terminated, ("goes on where it",)),
    "head killed": Fault(
        "kill -9 of the head (GCS and raylet); cluster started anew, run again", head_killed, ("the cluster's head at",)
    ),
    "mlflow killed": Fault("kill -9 of MLflow's server; started again", mlflow_killed, _PUBLISHED_LATER),
    "mlflow away to the end": Fault(
        "kill -9 of MLflow's server; away until the end", mlflow_away_to_the_end, _UNPUBLISHED
    ),
    "postgres killed": Fault("kill -9 of PostgreSQL; started again", postgres_killed, _PUBLISHED_LATER),
    # On S3: a machine that is cut off could still reach a folder here, unlike a shared folder on a real network.
    "node cut off": Fault("a node's network cut until it is given up, then restored", node_cut_off, _LOST, store="s3"),
    "node cut off for a moment": Fault(
        "a node's network cut for less than that", node_cut_off_for_a_moment, store="s3"
    ),
    "worker paused": Fault(
        "SIGSTOP of a worker for longer than --silent-after-s",
        worker_paused,
        ("hasn't been heard of",),
        options=("--silent-after-s", "8"),
    ),
    "disk full": Fault(
        "the disk under the store full, then freed", disk_full, ("the disk is full", "the store is back"), store="disk"
    ),
    "store read-only": Fault(
        "the store read-only for a while", store_read_only, ("is read-only", "the store is back"), store="disk"
    ),
    "object store hangs": Fault(
        "the object store hangs for a while", object_store_paused, (_NO_ANSWER, "is back"), store="s3"
    ),
    "result torn": Fault("a result file torn in half; run again", result_torn, ("was set aside",)),
    "checkpoint flipped": Fault("a bit of each checkpoint flipped; run again", checkpoint_flipped, ("was set aside",)),
    "two drivers": Fault("two drivers on one study, its store in a folder", two_drivers, _SECOND),
    "two drivers on S3": Fault("two drivers on one study, its store on S3", two_drivers, _SECOND, store="s3"),
    "clock set back": Fault("the clock set back by an hour", clock_set_back, ("clock was set back",), own_clock=True),
    "queue killed": Fault("kill -9 of the queue that hands out packs", queue_killed, ("died and was started again",)),
}

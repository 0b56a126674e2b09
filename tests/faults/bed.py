"""The test bed of the fault campaign: a cluster, a store, MLflow on PostgreSQL, and a study in progress."""

from __future__ import annotations

import functools
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

from mlflow import MlflowClient
from mlflow.entities import ViewType

from study import cluster
from study.arrow import table_results
from study.errors import StudyError
from study.plan.packs import make_packs
from study.plan.plan import make_plan
from study.records import Event, PackFailed, Result
from study.spec import parse_spec
from study.store import Store, StudyStore
from study.tracking.rows import KIND, TRIAL_ID
from study.worker.pack_work import PackWork
from tests.faults.nodes import ROOT, WORKERS, Nodes
from tests.faults.places import Clock, Disk, Network, own_folder
from tests.processes import Server, answers, wait_for
from tests.servers import Service, make_bucket, tracking_service

DEADLINE_S = 300.0
CHECKPOINT_EVERY_S = 0.5
PACK_SIZE = 20
TRIALS = 240
SPEC = """
study: NAME
question: Does what is disturbed come out the same?
task: {name: simple}
models: [NMU, linear]
seeds: 120
fixed: {batch_size: 64, sparsity_start: 1000, sparsity_end: 3000}
protocol: {iterations: 300000, evaluate_every: 15000, evaluation_rows: 50}
"""


@functools.cache
def undisturbed() -> list[Result]:
    """Train the study in this process, in one go; cached on disk until the code changes."""
    code = hashlib.sha256(SPEC.encode())
    for folder in ("study", "units", "tasks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            code.update(path.read_bytes())
    root = ROOT / ".pytest_cache" / "faults" / code.hexdigest()[:16]
    folder = Store(root).study("undisturbed")
    with folder.lock():
        attempt = folder.begin_attempt()
        work = PackWork(
            str(root), "undisturbed", attempt, engine="auto", device="cpu", checkpoint_every_s=CHECKPOINT_EVERY_S
        )
        done = folder.done()
        pending = [trial for trial in make_plan(parse_spec(SPEC, source="test")).trials if trial.id not in done]
        if pending:
            bundles = [(pack,) for pack in make_packs(pending, slots=1, size=PACK_SIZE)]
            cluster.LocalScheduler(work, threading.Event()).run(bundles, None, _raise_failure)
    return bits(folder)


def _raise_failure(event: Event) -> None:
    if isinstance(event, PackFailed):
        raise AssertionError(f"pack {event.pack_id} of the undisturbed study failed: {event.error}")


def bits(folder: StudyStore) -> list[Result]:
    """Return the part of the results that doesn't depend on the way of running."""
    results = [replace(result, training_s=0.0) for result in table_results(folder.read_results())]
    return sorted(results, key=lambda result: result.trial.id)


@dataclass
class Driver:
    """A driver's process, and its output.

    Args:
        process: the process.
        log: the file of its output.
    """

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def told(self) -> str:
        """Return the driver's output as one line."""
        return " ".join(self.log.read_text(errors="replace").split())

    @property
    def runs(self) -> bool:
        """Return True if it is running."""
        return self.process.poll() is None

    def wait(self, timeout_s: float = DEADLINE_S) -> int:
        """Wait for its end, and return its exit code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the driver still runs after {timeout_s:.0f} s: {self.told[-3000:]}") from None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)


@dataclass
class Strike:
    """The state of a study when a fault struck, and the time of its recovery.

    Args:
        at: time by this process's clock.
        iterations: iterations of the packs with a checkpoint.
        done: the stored packs.
        since_checkpoint_s: age of the oldest checkpoint of packs in training: an upper bound of the loss.
        until_told: message of the driver from which on progress counts as recovery, because a worker may outlive its
            raylet; None if progress counts from the fault on.
    """

    at: float
    iterations: Mapping[str, int]
    done: frozenset[str]
    since_checkpoint_s: float
    until_told: str | None = None
    recovered_at: float | None = None


class Study:
    """A study of one test.

    Args:
        bed: the bed on which it runs.
        root: the store's address.
    """

    def __init__(self, bed: Bed, root: str) -> None:
        self.bed, self.root = bed, root
        self.name = f"disturbed-{uuid.uuid4().hex[:8]}"
        self.drivers: list[Driver] = []
        self.strikes: list[Strike] = []
        self.file = bed.folder / f"{self.name}.yaml"
        self.file.write_text(SPEC.replace("NAME", self.name))
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._changed_at: dict[str, float] = {}
        self._iterations: dict[str, int] = {}
        self._done: frozenset[str] = frozenset()

    @property
    def disk(self) -> Disk:
        """Return the file system of its store."""
        return self.bed.disks[-1]

    @property
    def done(self) -> int:
        """Count its stored packs."""
        return len(self._done)

    @property
    def folder(self) -> StudyStore:
        """Return its store, opened read-only, so that no broken file is set aside."""
        return Store(self.root, read_only=True).study(self.name)

    def run(self, *more: str, kept: bool = False) -> Driver:
        """Start a driver; if `kept`, it runs under `study keep` and so is restarted after a kill."""
        words = [
            *(["keep", "--"] if kept else []),
            "run",
            self.file.name,
            "--address",
            self.bed.nodes.address,
            "--store",
            self.root,
        ]
        words += ["--pack-size", str(PACK_SIZE), "--checkpoint-every-s", str(CHECKPOINT_EVERY_S), *more]
        self.drivers.append(self.bed.command(f"{self.name}-{len(self.drivers)}.log", *words))
        if not self._watcher.is_alive():
            self._watcher.start()
        return self.drivers[-1]

    def run_again(self) -> Driver:
        """Start another driver after the last one's end; earlier progress of its workers doesn't count."""
        with suppress(StudyError, OSError):
            self._look()
        strike = self.strikes[-1]
        strike.iterations = {k: v for k, v in self._iterations.items() if k not in self._done}
        strike.recovered_at = None
        return self.run()

    def until_midway(self, driver: Driver, *, done: int = 3) -> None:
        """Wait until `done` packs are stored, and each worker has a checkpoint of another pack."""

        def midway() -> bool:
            assert driver.runs, f"the driver ended too early: {driver.told[-3000:]}"
            return len(self._done) >= done and len(self._iterations.keys() - self._done) >= len(WORKERS)

        wait_for(midway, "the middle of the study", DEADLINE_S)

    @contextmanager
    def struck(self, until_told: str | None = None) -> Iterator[Strike]:
        """Record the study's state at a strike; progress counts as recovery after the message `until_told`."""
        now = time.monotonic()
        runs = any(driver.runs for driver in self.drivers)
        training = {k: v for k, v in self._iterations.items() if runs and k not in self._done}
        ages = [now - self._changed_at[pack] for pack in training]
        strike = Strike(now, training, self._done, max(ages, default=0.0), until_told)
        yield strike
        self.strikes.append(strike)

    def until_progress(self) -> None:
        """Wait until the packs of the last strike make progress."""
        strike = self.strikes[-1]

        def goes_on() -> bool:
            assert any(driver.runs for driver in self.drivers), self.drivers[-1].told[-3000:]
            return strike.recovered_at is not None

        wait_for(goes_on, "progress after the fault", DEADLINE_S)

    def end(self) -> None:
        """Kill the remaining drivers, and stop the thread that reads the store."""
        for driver in self.drivers:
            if driver.runs:
                driver.signal(signal.SIGCONT)
                driver.signal(signal.SIGKILL)
                driver.wait()
        self._over.set()
        if self._watcher.ident is not None:
            self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            with suppress(StudyError, OSError):
                self._look()

    def _look(self) -> None:
        """Read checkpoints before finished packs, so that a pack that finishes in between counts as finished."""
        folder = self.folder
        iterations = {pack: iteration for pack, _, iteration in folder.checkpoints()}
        now = time.monotonic()
        for pack, iteration in iterations.items():
            if self._iterations.get(pack) != iteration:
                self._changed_at[pack] = now
        self._iterations, self._done = iterations, frozenset(folder.pack_ids())
        for strike in self.strikes:
            if strike.until_told is not None:
                if strike.until_told not in self.drivers[-1].told:
                    continue
                strike.until_told = None
                strike.iterations = {pack: iterations.get(pack, before) for pack, before in strike.iterations.items()}
            if strike.recovered_at is None and all(
                pack in self._done or iterations.get(pack, 0) > before for pack, before in strike.iterations.items()
            ):
                strike.recovered_at = now


@dataclass
class Bed:
    """The running services that a study needs.

    Args:
        folder: folder of files; its path is short.
        network: network of this process.
        nodes: nodes of the cluster.
        service: MLflow and its database.
        s3: an object store that every node reaches.
        s3_environment: the environment of its clients.
        clock: clock of all processes of the cluster and its drivers; None for the machine's.
    """

    folder: Path
    network: Network
    nodes: Nodes
    service: Service
    s3: Server
    s3_environment: Mapping[str, str]
    clock: Clock | None = None
    disks: list[Disk] = field(default_factory=list)
    studies: list[Study] = field(default_factory=list)

    def study(self, store: str = "folder") -> Study:
        """Make a study with a store of its own: ``folder``, ``disk`` (a small file system) or ``s3``."""
        self.mend()
        folder = self.folder / f"store-{uuid.uuid4().hex[:8]}"
        if store == "disk":
            self.disks.append(Disk(folder))
        study = Study(self, self._bucket() if store == "s3" else str(folder / "studies"))
        self.studies.append(study)
        return study

    def _bucket(self) -> str:
        """Return the URL of an object store's bucket."""
        name = f"bucket-{uuid.uuid4().hex}"
        make_bucket(self.s3_environment, name)
        return f"s3://{name}/studies"

    def command(self, log: str, *words: str) -> Driver:
        """Start the command line as a user does."""
        path = self.folder / log
        clock = {} if self.clock is None else self.clock.environment
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_", "STUDY_"))}
        with path.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "study", *words],
                cwd=self.folder,
                env=inherited
                | self.nodes.client_environment
                | self.service.mlflow.client_environment
                | dict(self.s3_environment)
                | clock
                | {"COLUMNS": "1000", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        return Driver(process, path)

    def mend(self) -> None:
        """End processes of earlier studies, and repair all ended, paused, cut off or full parts of the bed."""
        while self.studies:
            self.studies.pop().end()
        while self.disks:
            self.disks.pop().remove()
        self.network.go_on()
        for server in (self.service.postgres, self.service.mlflow, self.s3):
            if server.process is None or server.process.poll() is not None:
                server.kill()
                server.start()
        self.nodes.mend()

    def trainers(self) -> list[int]:
        """Return the ids of the processes that train packs."""
        return [p for number in WORKERS for p in self.network.processes(number, "Trainable.train")]

    def trainer(self) -> int:
        """Wait for a process that trains a pack, and return its id."""
        wait_for(self.trainers, "a process that trains")
        return self.trainers()[0]

    def runs_of(self, study: str) -> Counter[tuple[str, str | None, str]]:
        """Count MLflow's runs of a study, by kind, trial (None for other kinds) and state."""
        client = MlflowClient(self.service.mlflow.address)
        experiment = client.get_experiment_by_name(study)
        counts: Counter[tuple[str, str | None, str]] = Counter()
        page = None
        while experiment is not None and page != "":
            ids = [experiment.experiment_id]
            runs = client.search_runs(ids, "", ViewType.ACTIVE_ONLY, 1000, page_token=page)
            counts.update((run.data.tags[KIND], run.data.tags.get(TRIAL_ID), run.info.status) for run in runs)
            page = runs.token or ""
        return counts


@contextmanager
def opened(*, own_clock: bool = False) -> Iterator[Bed]:
    """Start a test bed, yield it, and end it.

    Args:
        own_clock: whether the cluster and its drivers have a clock that can be set back.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(own_folder())
        network = Network()
        network.open()
        stack.callback(network.close)
        service = stack.enter_context(tracking_service())
        s3, s3_environment = _object_store(network.address(1), folder)
        s3.start()
        stack.callback(s3.kill)
        stack.enter_context(patch.dict(os.environ, s3_environment | service.mlflow.client_environment))
        clock = Clock(folder) if own_clock else None
        nodes = Nodes(network, folder, s3_environment | ({} if clock is None else clock.environment))
        stack.callback(nodes.end)
        bed = Bed(folder, network, nodes, service, s3, s3_environment, clock)
        stack.callback(lambda: [disk.remove() for disk in bed.disks])
        stack.callback(lambda: [study.end() for study in bed.studies])
        nodes.start_all()
        yield bed


def _object_store(address: str, folder: Path) -> tuple[Server, dict[str, str]]:
    """Return a server of S3's protocol in the nodes' network; it requires no password."""
    url = f"http://{address}:5000"
    command = [sys.executable, "-m", "moto.server", "-H", address, "-p", "5000"]
    environment = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_ENDPOINT_URL_S3": url,
    }
    server = Server("the store's S3", command, functools.partial(answers, f"{url}/moto-api/"), folder / "s3.log")
    return server, environment

"""Real Ray clusters on this machine for tests, and a study with its undisturbed results."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from study import cluster
from study.jobs import Client, parse_address
from study.plan.packs import make_packs
from study.plan.plan import make_plan
from study.records import Result
from study.spec import parse_spec
from study.store import Store
from study.worker.pack_work import PackWork
from tests.study import builders

DEADLINE_S = 600
ROOT = Path(__file__).resolve().parents[1]
SPEC = """
study: NAME
question: Does what is disturbed come out the same?
task: {name: simple}
models: [NMU, linear]
seeds: 2
fixed: {batch_size: 16, sparsity_start: 1000, sparsity_end: 3000}
protocol: {iterations: 10000, evaluate_every: 500, evaluation_rows: 50}
"""


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster of one test.

    Args:
        url: the address of its dashboard.
        token: the token that it requires; None if it requires none.
    """

    url: str
    token: str | None = field(repr=False)

    @property
    def client(self) -> Client:
        """A client of the dashboard, with the token."""
        return Client(parse_address(self.url), self.token)


def until(condition: Callable[[], object], event: str) -> None:
    """Wait until a condition holds; AssertionError after the deadline names `event`."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s for {event}"
        time.sleep(0.1)


def free_port() -> int:
    """Return a free port outside the range of Ray's workers."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if not 10002 <= port <= 19999:
            return port


@contextmanager
def ray_cluster(nodes: int, token: str | None, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[RayCluster]:
    """Start a cluster of nodes with one core each, and end exactly its processes.

    Args:
        nodes: the number of nodes.
        token: the token that it requires; None for none.
        more: variables that are set in the environment of all its processes.
    """
    # Sockets need short paths; nodes that shared a folder would replace each other's copy of a working folder.
    folder = tempfile.mkdtemp(prefix="r")
    auth = {"RAY_AUTH_MODE": "disabled"} if token is None else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | auth
    environment |= more
    paths = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *words: str) -> None:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", "1", *words]
        command += ["--object-store-memory", "80000000", "--disable-usage-stats", "--temp-dir", f"{folder}/{name}"]
        command += ["--node-ip-address", "127.0.0.1", "--dashboard-agent-listen-port", str(free_port())]
        with Path(folder, f"{name}.log").open("wb") as log:
            started.append(
                subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=subprocess.STDOUT)
            )

    gcs, dashboard = free_port(), free_port()
    client = Client(parse_address(f"http://127.0.0.1:{dashboard}"), token)

    def count() -> int:
        try:
            return len(client.nodes())
        except Exception:  # the dashboard isn't up yet
            assert all(process.poll() is None for process in started), Path(folder, "h.log").read_text()
            return 0

    try:
        # The dashboard listens on loopback only.
        words = ["--dashboard-host", "127.0.0.1", "--dashboard-port", str(dashboard), "--include-dashboard", "true"]
        start("h", "--head", "--port", str(gcs), *words, "--ray-client-server-port", str(free_port()))
        until(lambda: count() == 1, "the head")
        for i in range(1, nodes):
            start(f"n{i}", "--address", f"127.0.0.1:{gcs}")
        until(lambda: count() == nodes, "all nodes")
        yield RayCluster(client.address.url, token)
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)  # `ray start --block` ends what it has started
        for process in started:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def undisturbed(root: Path, spec: str = SPEC) -> list[Result]:
    """Run the study in this process without interruption, and return its results, sorted by trial."""
    folder = Store(root).study("NAME")
    folder.write_spec(spec)
    work = PackWork(root, "NAME", folder.begin_attempt(), "torch", "cpu")
    trials = make_plan(parse_spec(spec, source="test")).trials
    bundles = [(pack,) for pack in make_packs(trials, slots=1)]
    cluster.LocalScheduler(work, threading.Event()).run(bundles, None, lambda event: None)
    return bits(root, "NAME")


def bits(root: Path, study: str) -> list[Result]:
    """Return a study's results without their training times."""
    return builders.bits(Store(root).study(study))


def as_user(home: Path, target: RayCluster | None = None, *, token: str | None = "the cluster's") -> dict[str, str]:
    """Return a user's environment: home folder, cluster's address if any, and its token, another one, or none."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "STUDY_", "MLFLOW_"))
    }
    environment |= {"HOME": str(home), "PYTHONPATH": str(ROOT), "COLUMNS": "300"}
    environment |= {} if target is None else {"STUDY_CLUSTER": target.url}
    user_token = target.token if target is not None and token == "the cluster's" else token
    return environment | ({"RAY_AUTH_TOKEN": user_token} if user_token else {})


def study(*words: str, environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "study", *words],
        env=environment,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def status(name: str, environment: dict[str, str], cwd: Path) -> dict[str, object]:
    """Return a study's status, as the command line prints it."""
    completed = study("status", name, "--json", environment=environment, cwd=cwd)
    assert completed.returncode == 0, completed.stdout
    (entry,) = json.loads(completed.stdout)["studies"]
    return dict(entry)

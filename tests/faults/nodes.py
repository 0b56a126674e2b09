"""A real Ray cluster on this machine: a head without a core, and workers with a core and an address each."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.faults.places import Network
from tests.processes import below, wait_for

WORKERS = (2, 3)
ROOT = Path(__file__).resolve().parents[2]
_PORT = 6379
_LOSES_A_NODE_AFTER = {
    # A node is lost after three missed checks in a row: within 15 s here, by Ray's own settings within about 40 s.
    "RAY_health_check_initial_delay_ms": "5000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "4000",
    "RAY_health_check_failure_threshold": "3",
}
_COUNT_NODES = """
import sys
from ray._raylet import GcsClient
nodes = GcsClient(address=sys.argv[1]).get_all_node_info(timeout=5)
print(sum(node.state == 0 for node in nodes.values()))
"""


class Nodes:
    """A cluster that requires a token.

    Args:
        network: network of its places.
        folder: folder of its logs and sockets; its path must be short.
        environment: variables added to every node's environment.
    """

    def __init__(self, network: Network, folder: Path, environment: Mapping[str, str]) -> None:
        self._network, self._folder = network, folder
        self.token = secrets.token_hex(32)
        self.address = f"{network.address(1)}:{_PORT}"
        self._roots: dict[int, subprocess.Popen[bytes]] = {}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_", "STUDY_"))}
        self.client_environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token, "PYTHONPATH": str(ROOT)}
        self._environment = inherited | self.client_environment | _LOSES_A_NODE_AFTER | dict(environment)
        for number in WORKERS:
            network.add(number)

    def start(self, number: int) -> None:
        """Start one node; the head is number 1."""
        words = ["--address", self.address, "--num-cpus", "1"]
        if number == 1:
            words = ["--head", "--port", str(_PORT), "--num-cpus", "0", "--include-dashboard", "false"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *words]
        command += ["--node-ip-address", self._network.address(number), "--disable-usage-stats"]
        command += ["--object-store-memory", "80000000", "--temp-dir", str(self._folder / str(number))]
        self._roots[number] = self._network.start(
            number, command, environment=self._environment, folder=self._folder, log=f"{number}.log"
        )

    def start_all(self) -> None:
        """Start the head, then the workers, and wait until all are connected."""
        self.start(1)
        wait_for(lambda: self.count() == 1, "the head")
        for number in WORKERS:
            self.start(number)
        self.wait_for_all()

    def wait_for_all(self) -> None:
        """Wait until all nodes are connected."""
        wait_for(lambda: self.count() == 1 + len(WORKERS), "all nodes")

    def mend(self) -> None:
        """Restart ended nodes, as a supervisor of the machines would."""
        if self.ended(1):
            for number in (1, *WORKERS):
                self.kill(number)
            self.start_all()
            return
        for number in WORKERS:
            self._network.mend(number)
            if self.ended(number):
                self.kill(number)
                self.start(number)
        self.wait_for_all()

    def ended(self, number: int) -> bool:
        """Return True if the root process of a node has ended, as it does after its raylet."""
        return self._roots[number].poll() is not None

    def kill(self, number: int) -> None:
        """End all processes of a node."""
        if number == 1:
            for process in [*below(self._roots[1].pid), self._roots[1].pid]:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        else:
            self._network.kill(number)
        self._roots[number].wait()

    def end(self) -> None:
        """End all nodes, and wait for each root process: an unawaited one fails the test run at its end."""
        for number in self._roots:
            self.kill(number)

    def count(self) -> int:
        """Count the nodes that the head believes alive."""
        completed = subprocess.run(
            [sys.executable, "-c", _COUNT_NODES, self.address],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return int(completed.stdout) if completed.returncode == 0 else 0

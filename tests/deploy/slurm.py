"""A Slurm cluster on this machine: a controller, and nodes with networks and /tmp folders of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.faults.places import Network
from tests.processes import wait_for

NODES = (2, 3)
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare")
_CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}({controller})
AuthInfo=socket={folder}/munge.socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=20
KillWait=20
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{nodes}
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE PreemptMode=REQUEUE GraceTime=20
PartitionName=high Nodes=ALL PriorityTier=2 MaxTime=INFINITE PreemptMode=OFF
"""


def missing() -> str | None:
    """Return a message about missing Slurm programs; None if all are installed."""
    absent = [program for program in _PROGRAMS if shutil.which(program) is None]
    return f"Slurm's tests need {', '.join(absent)} (slurm-wlm, munge, util-linux)" if absent else None


class Slurm:
    """A controller at place 1 of a network, and a node at each other place.

    Args:
        network: network of the cluster.
        folder: folder of its files; all nodes see it, like users' home folders.
    """

    def __init__(self, network: Network, folder: Path) -> None:
        self._network, self._folder = network, folder
        self._processes: list[subprocess.Popen[bytes]] = []
        host = socket.gethostname()
        nodes = "\n".join(
            f"NodeName=n{number} NodeHostname={host} NodeAddr={network.address(number)} Port=17000 CPUs=2 State=UNKNOWN"
            for number in NODES
        )
        self._file = folder / "slurm.conf"
        self._file.write_text(
            _CONFIGURATION.format(host=host, controller=network.address(1), folder=folder, nodes=nodes)
        )
        self.environment = dict(os.environ) | {"SLURM_CONF": str(self._file)}
        for number in NODES:
            network.add(number)
        (folder / "state").mkdir()

    def start(self) -> None:
        """Start all daemons, and wait until the controller has all nodes."""
        key = self._folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        endings = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        files = [f"--{option}={self._folder}/munge.{ending}" for option, ending in endings.items()]
        self._begin(1, "munged", ["munged", "--foreground", "--force", *files])
        wait_for((self._folder / "munge.socket").exists, "munge")
        self._begin(1, "slurmctld", ["slurmctld", "-D", "-f", str(self._file)])
        wait_for(self._answers, "the controller")
        for number in NODES:
            self.start_node(number)
        idle = ["idle", str(len(NODES))]
        wait_for(lambda: self("sinfo", "--noheader", "-p", "low", "-o", "%T %D").split() == idle, "the nodes")

    def _answers(self) -> bool:
        completed = subprocess.run(["scontrol", "ping"], env=self.environment, capture_output=True, check=False)
        return b"UP" in completed.stdout

    def start_node(self, number: int) -> None:
        """Start a node, with a /tmp of its own."""
        own_tmp = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /tmp && exec "$@"', "sh"]
        self._begin(number, f"n{number}", [*own_tmp, "slurmd", "-D", "-N", f"n{number}", "-f", str(self._file)])

    def end(self) -> None:
        """End all processes."""
        for number in NODES:
            self._network.kill(number)
        for process in self._processes:
            process.kill()
            process.wait()

    def __call__(self, *words: str) -> str:
        """Run a Slurm command that must succeed, and return its output."""
        completed = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=False, cwd=self._folder
        )
        assert completed.returncode == 0, f"{' '.join(words)}: {completed.stderr}"
        return completed.stdout

    def _begin(self, number: int, name: str, words: Sequence[str]) -> None:
        self._processes.append(
            self._network.start(number, words, environment=self.environment, folder=self._folder, log=f"{name}.out")
        )

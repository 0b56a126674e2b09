"""Networks that can be cut, disks that can be full, clocks that can be set back: real ones, for this test only.

All of it requires root, and Linux.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.processes import command_line, wait_for

_CLONE_NEWNET = 0x40000000
_HERE = Path(__file__).parent


def missing() -> str | None:
    """Return a message about missing requirements of faults; None if all are met."""
    if os.geteuid() != 0:
        return "these faults need root: they cut networks and fill file systems of their own"
    absent = [program for program in ("ip", "nsenter", "mount", "fallocate") if shutil.which(program) is None]
    return f"these faults need {', '.join(absent)} (iproute2, util-linux)" if absent else None


def sh(*command: str) -> None:
    """Run a command that must succeed."""
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, f"{' '.join(command)}: {completed.stderr}"


class Network:
    """A network namespace for this process, with a bridge and places on it that can be cut off.

    Processes started in it are found by the namespace, even if their parents have ended, and end with it.
    """

    _made = itertools.count()

    def __init__(self) -> None:
        number = next(self._made)  # distinguishes networks that are open at once
        self._tag, self._third = f"f{os.getpid()}-{number}", (os.getpid() + number) % 256
        self._places: dict[int, str] = {}

    def open(self) -> None:
        """Leave this process's network for a new one."""
        self._before = os.open("/proc/self/ns/net", os.O_RDONLY)
        self._set(ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET))
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "link", "add", "nodes", "type", "bridge")
        sh("ip", "address", "add", f"{self.address(1)}/24", "dev", "nodes")
        sh("ip", "link", "set", "nodes", "up")
        sh("ip", "route", "add", "default", "dev", "nodes")

    def close(self) -> None:
        """End everything in it, and go back."""
        for number in self._places:
            self.mend(number)
        wait_for(self._ended, "the processes in the network to end")
        for name in self._places.values():
            sh("ip", "netns", "delete", name)
        self._set(ctypes.CDLL(None, use_errno=True).setns(self._before, _CLONE_NEWNET))
        os.close(self._before)

    def address(self, number: int) -> str:
        """Return the address of a place; this process's is 1."""
        return f"10.77.{self._third}.{number}"  # Ray looks at the addresses of other clusters, too

    def add(self, number: int) -> None:
        """Make another place."""
        name, cable = f"{self._tag}-{number}", f"cable{number}"
        sh("ip", "netns", "add", name)
        self._places[number] = name
        sh("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        sh("ip", "link", "set", cable, "master", "nodes", "up")
        for words in (
            "link set lo up",
            f"address add {self.address(number)}/24 dev eth0",
            "link set eth0 up",
            f"route add default via {self.address(1)}",
        ):
            sh("ip", "-n", name, *words.split())

    def inside(self, number: int) -> list[str]:
        """Return the words that run a command in a place; `ip netns exec` would hide mounts made later."""
        return [] if number == 1 else ["nsenter", f"--net=/run/netns/{self._places[number]}"]

    def start(
        self, number: int, words: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: str
    ) -> subprocess.Popen[bytes]:
        """Start a process in a place and in a folder, with its output in a file."""
        with (folder / log).open("ab") as output:
            return subprocess.Popen(
                [*self.inside(number), *words],
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def cut(self, number: int) -> None:
        """Disconnect a place."""
        sh("ip", "link", "set", f"cable{number}", "down")

    def mend(self, number: int) -> None:
        """Reconnect a place."""
        sh("ip", "link", "set", f"cable{number}", "up")

    def processes(self, number: int, word: str = "") -> list[int]:
        """Return the ids of processes in a place whose command has a word, without this process."""
        at = Path("/proc/self/ns/net") if number == 1 else Path("/run/netns", self._places[number])
        inode = at.stat().st_ino
        process_ids = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with suppress(OSError):  # the process has ended meanwhile
                    is_inside = (entry / "ns/net").stat().st_ino == inode
                    if is_inside and word.encode() in (entry / "cmdline").read_bytes():
                        process_ids.append(int(entry.name))
        return sorted(process_ids)

    def kill(self, number: int, word: str = "") -> None:
        """End processes in a place by SIGKILL."""
        self.send(number, word, signal.SIGKILL)

    def send(self, number: int, word: str, signal_number: signal.Signals) -> None:
        """Send a signal to the processes in a place whose command has a word."""
        for process in self.processes(number, word):
            with suppress(ProcessLookupError):
                os.kill(process, signal_number)

    def go_on(self) -> None:
        """Resume all paused processes, in every place."""
        for number in (1, *self._places):
            self.send(number, "", signal.SIGCONT)

    def _ended(self) -> bool:
        remaining = [process for number in (1, *self._places) for process in self._living(number)]
        for process in remaining:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return not remaining

    def _living(self, number: int) -> list[int]:
        """Return the ids of a place's processes, without zombies."""
        return [process for process in self.processes(number) if command_line(process)]

    @staticmethod
    def _set(failed: int) -> None:
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Disk:
    """A small file system in memory that can be filled and made read-only.

    Args:
        path: mount point.
        size_mb: its size.
    """

    def __init__(self, path: Path, size_mb: int = 64) -> None:
        self.path = path
        path.mkdir()
        sh("mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "faults", str(path))

    def fill(self) -> None:
        """Fill it to the last byte."""
        with (self.path / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(b"0" * 4096)

    def free(self) -> None:
        """Free the space again."""
        (self.path / "filler").unlink()

    def close_to_writers(self) -> None:
        """Make it read-only for files opened from now on, as after a remount; a driver keeps its lock open."""
        sh("mount", "--bind", str(self.path), str(self.path))
        sh("mount", "-o", "remount,ro,bind", str(self.path))

    def reopen(self) -> None:
        """Make it writable again."""
        sh("umount", str(self.path))

    def remove(self) -> None:
        """Unmount it, however often it is mounted."""
        while os.path.ismount(self.path):
            sh("umount", "--lazy", str(self.path))


class Clock:
    """The clock of the processes started with its environment.

    Args:
        folder: folder of its library and its setting.
    """

    def __init__(self, folder: Path) -> None:
        library, self._setting = folder / "clock.so", folder / "back"
        sh("cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_HERE / "clock.c"), "-ldl", "-pthread")
        self.set_back(0)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_BACK_S": str(self._setting)}

    def set_back(self, back_s: int) -> None:
        """Set it back for all processes at once."""
        if not self._setting.exists():
            self._setting.write_bytes(struct.pack("l", back_s))
        with self._setting.open("r+b") as setting:
            setting.write(struct.pack("l", back_s))


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a folder with a short path, as required by Ray's sockets, and delete it."""
    folder = Path(tempfile.mkdtemp(prefix="f"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

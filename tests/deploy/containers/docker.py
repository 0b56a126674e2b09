"""A Docker engine for the tests, and images made here, because registries may be out of reach."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.processes import wait_for

ROOT = Path(__file__).resolve().parents[3]
IMAGE = "study:stand-in"
_BIN = Path(sys.executable).parent
_CLIENT = Path("/usr/bin/docker")
"""Debian's client builds with BuildKit; other clients need a plug-in."""
_LOCKS = ("base", "cluster", "server", "torch-cpu")


def missing() -> str | None:
    """Return a message about missing requirements of containers; None if all are met."""
    if os.geteuid() != 0:
        return "containers are tested by root, with an engine of their own"
    absent = [program for program in ("dockerd", "debootstrap", "iptables") if shutil.which(program) is None]
    if absent or not _CLIENT.exists():
        return f"containers need {', '.join([*absent, str(_CLIENT)])} (docker.io, debootstrap, iptables)"
    return None


def run(command: Sequence[str | Path], *, given: bytes = b"", environment: dict[str, str] | None = None) -> bytes:
    """Run a command that must succeed, and return its output."""
    completed = subprocess.run(
        [str(word) for word in command],
        input=given,
        env=os.environ | (environment or {}),
        capture_output=True,
        check=False,
    )
    assert completed.returncode == 0, (
        f"{command}: {completed.stdout.decode()[-2000:]} {completed.stderr.decode()[-4000:]}"
    )
    return completed.stdout


class Docker:
    """An engine whose files are in a folder. Its containers end with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"DOCKER_HOST": f"unix://{folder}/docker.sock", "DOCKER_BUILDKIT": "1"}

    def __call__(self, *words: str, given: bytes = b"") -> str:
        """Run a command of Docker's client, and return its output."""
        return run([_CLIENT, *words], given=given, environment=self.environment).decode()

    def start(self) -> None:
        paths = [f"--{name}={self.folder}/{value}" for name, value in (("data-root", "data"), ("exec-root", "exec"))]
        paths += [f"--pidfile={self.folder}/docker.pid", f"--host={self.environment['DOCKER_HOST']}"]
        with (self.folder / "dockerd.log").open("wb") as log:
            self._engine = subprocess.Popen(["dockerd", *paths], stdout=log, stderr=log, start_new_session=True)
        wait_for(lambda: self._engine.poll() is not None or (self.folder / "docker.sock").exists(), "Docker's engine")
        assert self._engine.poll() is None, (self.folder / "dockerd.log").read_text()

    def end(self) -> None:
        """End all containers and the engine."""
        for container in self("ps", "--quiet", "--all").split():
            self("rm", "--force", "--volumes", container)
        self._engine.terminate()
        self._engine.wait()

    def build(self, base: str, image: str, *options: str) -> None:
        """Build an image by the service's Dockerfile, from the checkout."""
        words = ["--quiet", "--file", str(ROOT / "deploy" / "Dockerfile"), "--build-arg", f"BASE={base}", *options]
        self("build", *words, "--tag", image, str(ROOT))

    def build_all(self) -> None:
        """Build substitutes for the registries' images, and the service's own image on top of one."""
        context = self.folder / "images"
        shutil.copytree(Path(__file__).parent / "images", context)
        for program in ("caddy", "weed"):
            shutil.copy(_BIN / program, context)
        locks = [word for lock in _LOCKS for word in ("--requirement", str(ROOT / "deploy" / "lock" / f"{lock}.txt"))]
        words = ["--quiet", "--no-deps", "--require-hashes", "--no-build-isolation", "--dest", str(context / "wheels")]
        run([sys.executable, "-m", "pip", "download", *words, *locks])
        targets = ["--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm"]
        mirror = run(["apt-get", "indextargets", *targets]).decode().split()[0]
        run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", self.folder / "root", mirror])
        packed = self.folder / "debian.tar"
        run(["tar", "--directory", self.folder / "root", "--create", "--file", packed, "."])
        self("import", str(packed), "stand-in/debian")
        for name in ("python", "postgres", "caddy", "seaweedfs"):
            words = ["--quiet", "--network=host", "--target", name, "--tag", f"stand-in/{name}"]
            self("build", *words, str(context))
        self.build("stand-in/python", IMAGE)

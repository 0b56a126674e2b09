"""Write the locks: each package with its version and the hashes of its files, on every platform.

    python deploy/lock/compile.py              the requirements of pyproject.toml; versions are kept
    python deploy/lock/compile.py --upgrade    the newest versions that it allows

uv resolves; this file divides the packages among the locks, so that a machine installs only the necessary ones:

- `base.txt` runs the service in one process, and builds its package;
- `cluster.txt`, `server.txt`, `gpu.txt`, `integrations.txt` and `dev.txt` have the further packages of these extras;
- `torch.txt` is PyPI's torch, with the CUDA libraries that its builds for Linux need;
- `torch-cpu.txt` is written by hand: torch's CPU builds, which PyPI doesn't have.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXTRAS = ("cluster", "server", "gpu", "integrations", "dev")
LOCKS = ("base", "torch", *EXTRAS)
_TORCH = re.compile(r"torch$|nvidia-|cuda-|triton$")
_OPTIONS = (
    *("--quiet", "--universal", "--python-version=3.11", "--fork-strategy=fewest"),
    *("--generate-hashes", "--no-header", "--no-annotate"),
)
Lock = dict[str, str]
"""The lines that pin each package, by its name."""


def resolve(wanted: str, *options: str) -> Lock:
    """Resolve requirements, one a line, to all packages that they need.

    Args:
        wanted: the requirements.
        options: further options of `uv pip compile`.

    Raises:
        FileNotFoundError: if uv isn't installed.
        subprocess.CalledProcessError: if uv fails.
    """
    command = ["uv", "pip", "compile", *_OPTIONS, *options, "-"]
    done = subprocess.run(command, input=wanted, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return parse(done.stdout)


def parse(text: str) -> Lock:
    """Parse the text of a lock into the lines of each package, by its name; other lines are ignored."""
    pins = re.findall(r"(?m)^([\w.-]+)(==.*(?:\n +.*)*)", text)
    return {name: name + details for name, details in pins}


def main() -> None:
    """Write all locks.

    Raises:
        SystemExit: if torch-cpu.txt pins another version of torch than the resolved one; nothing is written then.
        ValueError: if torch-cpu.txt doesn't pin exactly one package; nothing is written then.
        FileNotFoundError: if uv isn't installed, torch-cpu.txt doesn't exist or, without ``--upgrade``, a lock doesn't.
        subprocess.CalledProcessError: if uv fails.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # editables: required by hatchling to build an editable package.
    own = "\n".join([*project["project"]["dependencies"], *project["build-system"]["requires"], "editables"])
    extras = {name: "\n".join(project["project"]["optional-dependencies"][name]) for name in EXTRAS}
    versions, excluded = HERE / "versions.tmp", HERE / "excluded.tmp"
    pins = {} if "--upgrade" in sys.argv else _merged(*(parse((HERE / f"{name}.txt").read_text()) for name in LOCKS))
    try:
        excluded.write_text("torch\nnvidia-nccl-cu12\n")  # xgboost requires NCCL, but loads it on GPUs only
        versions.write_text(_without_hashes(pins))
        everything = resolve("\n".join([own, *extras.values()]), f"--constraint={versions}")
        versions.write_text(_without_hashes(everything))
        locked, no_torch = f"--constraint={versions}", f"--excludes={excluded}"
        base = resolve(own, locked)
        torch = {name: pin for name, pin in resolve("torch", locked).items() if _TORCH.match(name)}
        alone = resolve(own, locked, no_torch)
        locks = {name: _less(resolve(f"{own}\n{extras[name]}", locked, no_torch), alone) for name in EXTRAS}
    finally:
        versions.unlink(missing_ok=True)
        excluded.unlink(missing_ok=True)
    _check_cpu_build(torch["torch"])
    for name, lock in (locks | {"base": _less(base, torch), "torch": torch}).items():
        header = "# Written by `make lock`.\n"
        (HERE / f"{name}.txt").write_text(header + "".join(f"{pin}\n" for pin in lock.values()))


def _check_cpu_build(pin: str) -> None:
    [build] = parse((HERE / "torch-cpu.txt").read_text()).values()
    version = pin.partition(" ")[0]
    if not build.startswith(f"{version}+cpu "):
        raise SystemExit(f"torch-cpu.txt must pin {version}+cpu, by hand, but has: {build}")


def _without_hashes(lock: Lock) -> str:
    return "".join(f"{pin.partition(' ')[0]}\n" for pin in lock.values())


def _less(lock: Lock, other: Lock) -> Lock:
    return {name: pin for name, pin in lock.items() if name not in other}


def _merged(*locks: Lock) -> Lock:
    return {name: pin for lock in locks for name, pin in lock.items()}


if __name__ == "__main__":
    main()

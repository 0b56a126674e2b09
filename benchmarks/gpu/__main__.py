"""Checks and speed measurements of the fused GPU engine on a GPU.

    python -m benchmarks.gpu --out benchmarks/results/gpu
    python -m benchmarks.tables --write

The first command takes less than ten minutes, mostly for compiling and the part `models`. Each part is a process of its
own. It writes a CSV file, and a JSON file with the provenance, into the folder of `--out`. If a part fails, its error
is printed, the other parts run, and the exit code is 1. Without a GPU the exit code is 2. `--emulated` runs a minimum
of every part in one process on the CPU, as a smoke test.

checks     weights, moments and errors have the same bits as in the emulation; success rates agree with the fused CPU
           engine's; a trial has the same bits alone and among a thousand others
models     trial-iterations a second of each model, and the share of evaluations; also of torch and of one core
packs      trial-iterations a second by trials in a pack
groups     trial-iterations a second of four cells a seed, by the number of trials that share a block and its rows
floor      lower bounds of an iteration's cost (see floor.py)
registers  trial-iterations a second by registers of a thread; device.py's number of threads follows from it
figure     only with `--only figure`, about an hour: the published hidden-size study, compared cell by cell, in the
           folder of `--results`; after an interruption the same command continues
"""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from argparse import BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import checks, figure, floor, machine, sizes, speed
from benchmarks.gpu.machine import Machine
from benchmarks.gpu.sizes import Sizes
from benchmarks.measure import cores, finish, parser, published_cell, tell
from study.environment import provenance

FIGURE = "figure"
PARTS = ("checks", "models", "packs", "groups", "floor", "registers")
_MOST_WORKERS = 12
# Limit of a part: after it, the other parts are measured even if a kernel hangs.
_LIMIT_S = 900.0
_NOTED = ("rounds", "seconds", "models_s", "workers", "emulated")


class CheckError(Exception):
    """A failed check."""


def _words(words: Sequence[str] | None) -> Namespace:
    known = parser(__doc__, rounds=3, seconds=0.2)
    known.add_argument("--only", nargs="+", choices=[*PARTS, FIGURE], default=list(PARTS), metavar="PART")
    known.add_argument("--emulated", action="store_true", help="smoke test on the CPU, with minimal sizes")
    known.add_argument("--workers", type=int, help="processes that compile; default: by cores")
    known.add_argument("--models-s", type=float, default=270.0, help="after so long, models are left out")
    known.add_argument("--results", type=Path, default=figure.RESULTS, help="folder for the figure's files")
    known.add_argument("--study", default="hidden-size", help="of the figure: a preset or a file")
    known.add_argument(
        "--run-option", action="append", default=[], metavar="WORD", help="of `study run`: --run-option=--local"
    )
    known.add_argument("--apart", action=BooleanOptionalAction, help="parts in processes of their own")
    found = known.parse_args(words)
    if found.out is None:
        known.error("--out must name a folder")
    if found.workers is None:
        found.workers = 1 if found.emulated else min(cores(), _MOST_WORKERS)
    if found.apart is None:
        found.apart = not found.emulated
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Measure and check; return 0, 1 if a part failed, or 2 without a suitable GPU.

    Raises:
        SystemExit: for wrong options, such as without ``--out``.
        OSError: if the folder can't be made.
    """
    arguments = _words(words)
    reason = None if arguments.emulated else machine.without_gpu()
    if reason is not None:
        tell(f"benchmarks.gpu: nothing was measured: {reason}; --emulated runs a smoke test on the CPU")
        return 2
    here, much = (machine.EMULATION, sizes.tiny()) if arguments.emulated else (machine.gpu(), sizes.full())
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.apart:
        return _all_apart(here, much, arguments)
    provenance(here.device)  # read now: after a fault the device can't be asked for its name
    about = here.about()
    failed = [name for name in arguments.only if not _done(name, here, much, arguments, about)]
    return 1 if failed else 0


# --- parts in processes of their own ----------------------------------------------------------------------------


def _all_apart(here: Machine, much: Sizes, arguments: Namespace) -> int:
    """Compile, and run each part in a process; return 1 if a part failed, else 0.

    A fault or a hang doesn't stop the other parts.
    """
    began = time.perf_counter()
    tell(f"{here.name}: {here.about()}")
    for line in speed.estimates(here):
        tell(f"estimate, not measured: {line}")
    _compile(here, much, arguments)
    failed = [name for name in arguments.only if not _apart(name, arguments)]
    tell(f"{time.perf_counter() - began:.0f} s in all; failed: {', '.join(failed) or 'nothing'}")
    return 1 if failed else 0


def _apart(name: str, arguments: Namespace) -> bool:
    """Run a part in a process, and return True if it succeeded within the time limit; the figure has no limit."""
    words = ["--no-apart", "--only", name, *(["--emulated"] if arguments.emulated else [])]
    for option in ("out", "rounds", "seconds", "workers", "models_s", "results", "study"):
        words += [f"--{option.replace('_', '-')}={getattr(arguments, option)}"]
    words += [f"--run-option={word}" for word in arguments.run_option]
    limit_s = None if name == FIGURE else _LIMIT_S
    try:
        done = subprocess.run([sys.executable, "-m", "benchmarks.gpu", *words], timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        tell(f"{name} FAILED: it was not done after {limit_s:.0f} s")
        return False
    if done.returncode not in (0, 1):
        tell(f"{name} FAILED: its process ended with {done.returncode}")
    return done.returncode == 0


def _compile(here: Machine, much: Sizes, arguments: Namespace) -> None:
    """Compile the selected parts' kernels in parallel, into the cache; an error ends this step, and is printed."""
    only, tasks = set(arguments.only), {}
    if "checks" in only:
        cells = [*(much.checked(shape) for shape in (*much.bits, *much.alone)), much.distribution]
        tasks |= dict.fromkeys((here, cell, None) for cell in cells)
    for name, shapes in (("models", much.speed), ("packs", much.packs), ("groups", much.packs), ("floor", much.floor)):
        if name in only:
            tasks |= dict.fromkeys((here, published_cell(*shape), None) for shape in shapes)
    if "registers" in only:
        cells = [published_cell(*shape) for shape in much.registers]
        tasks |= dict.fromkeys((here, cell, limit) for cell in cells for limit in much.limits)
    if not tasks:
        return
    began = time.perf_counter()
    tell(f"compiling {len(tasks)} times two kernels at most, in {arguments.workers} processes:")
    try:
        for number, _ in enumerate(machine.spread(machine.compile_blocks, tasks, arguments.workers), 1):
            if number % 10 == 0:
                tell(f"  {number} after {time.perf_counter() - began:.0f} s")
    except Exception:
        tell(traceback.format_exc())
        tell("  remaining kernels are compiled on first use")
    tell(f"  done after {time.perf_counter() - began:.0f} s")


# --- a part -----------------------------------------------------------------------------------------------------


def _done(name: str, here: Machine, much: Sizes, arguments: Namespace, about: dict[str, Any]) -> bool:
    """Run a part, and return True if it succeeded; its error is printed, and rows from before it are kept."""
    began = time.perf_counter()
    tell(f"{name}:")
    try:
        if name == FIGURE:
            _figure(here, arguments, about)
        else:
            _table(name, here, much, arguments, about)
    except Exception:
        tell(traceback.format_exc())
        tell(f"{name} FAILED after {time.perf_counter() - began:.0f} s")
        return False
    tell(f"{name} took {time.perf_counter() - began:.0f} s")
    return True


def _table(name: str, here: Machine, much: Sizes, arguments: Namespace, about: dict[str, Any]) -> None:
    rows: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
        "checks": lambda: checks.rows(here, much, arguments.workers),
        "models": lambda: speed.model_rows(here, much, arguments),
        "packs": lambda: speed.pack_rows(here, much, arguments),
        "groups": lambda: speed.group_rows(here, much, arguments),
        "floor": lambda: floor.rows(here, much, arguments),
        "registers": lambda: speed.register_rows(here, much, arguments),
    }
    found: list[dict[str, Any]] = []
    try:
        found.extend(rows[name]())  # one by one, so that the rows before an error are kept
    finally:
        if found:
            settings = {key: getattr(arguments, key) for key in _NOTED}
            told = Namespace(**settings, device=here.device, out=arguments.out / f"{name}.csv")
            finish(found, told, **about, **_more(name, here, much, found))
    if not found:
        raise CheckError("nothing was measured")
    wrong = [row for row in found if row.get("passed") == "no"]
    if wrong:
        raise CheckError(f"{len(wrong)} of {len(found)} checks failed: {wrong}")


def _more(name: str, here: Machine, much: Sizes, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return and print a part's further notes: the goals for ``models``, the clock under load for ``floor``."""
    if name == "models":
        reached = speed.wanted(found)
        tell(f"  wanted of NMU 100 2: {reached or 'it was not measured'}")
        return {"wanted": reached}
    if name == "floor":
        clock_mhz = floor.clock_under_load_mhz(here, much.floor[0])
        tell(f"  clock under load: {clock_mhz or 'not known'} MHz")
        return {"clock_under_load_mhz": clock_mhz}
    return {}


def _figure(here: Machine, arguments: Namespace, about: dict[str, Any]) -> None:
    engine = "fused" if here.emulated else here.engine.name
    store = (arguments.out / "studies").resolve()
    report, took_s = figure.run(arguments.study, engine, here.device, store, arguments.run_option)
    rows = figure.keep(report, arguments.results, here.device, took_s, **about)
    if rows:
        print(figure.markdown(rows))
    tell(f"  {took_s:.0f} s; files are in {arguments.results}")


if __name__ == "__main__":
    sys.exit(main())

"""Shared tools of the benchmarks: one core, rounds, medians, and results with their provenance."""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import torch

from study.engine import Engine
from study.environment import provenance
from study.records import Cell, Pack, Trial
from study.spec.cells import canonical_cell
from tasks.arithmetic import MODELS

Measure = Callable[[float], float]
"""Works for about the given seconds and returns microseconds a unit of work."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

BATCH = 128
PACK = 64
_THREADS = Path("/proc/self/task")
_LAUNCH = """
import resource, subprocess, sys, time
began = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
wall_s, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall_s, used.ru_utime, used.ru_maxrss)
"""
"""Runs a command and prints its resource usage. It runs in a process of its own, because the peak memory of a process
includes that of its parent at its start, and the benchmark holds more."""


def published_cell(model: str, input_size: int, hidden_size: int) -> Cell:
    """Return the published cell, with changes so that only the start is evaluated.

    The sparsity regulariser starts at iteration 0 instead of its published start. It is on in most of a published run,
    so it must be on in the measurement.

    Raises:
        KeyError: if there is no such model.
        ValueError: if the input size is too small for the task's subsets. The hidden size isn't checked.
    """
    values = {
        "input_size": input_size,
        "hidden_size": hidden_size,
        "sparsity_start": 0,
        "iterations": 5_000_000,
        "evaluate_every": 5_000_000,
        "evaluation_rows": 100,
    }
    return canonical_cell(task_name(input_size), model, values)


def task_name(input_size: int) -> str:
    """Return the task with that many inputs: ``simple`` for four, else ``arithmetic``."""
    return "simple" if input_size == 4 else "arithmetic"


def new_pack(cell: Cell, trials: int, cells: int = 1) -> Pack:
    """Return a pack of at least `trials` trials: whole seeds, each of `cells` cells that differ in their step size."""
    alike = [cell.replace(learning_rate=cell.value("learning_rate") * (1 + k / 1000)) for k in range(cells)]
    return Pack(tuple(Trial(member, seed) for seed in range(-(-trials // cells)) for member in alike))


def training(
    engine: Engine,
    pack: Pack,
    device: str = "cpu",
    *,
    warm_s: float = 0.2,
    clock: Callable[[], float] = time.perf_counter,
) -> Measure:
    """Start a pack, warm it up, and return a function that measures microseconds per trial-iteration.

    Args:
        engine: the engine.
        pack: the pack to train. It must have iterations left, else the function raises ZeroDivisionError.
        device: ``cpu`` or ``cuda``.
        warm_s: seconds of training before the measurement.
        clock: clock that returns seconds.

    Raises:
        InputError: if the device isn't available or has no room for the pack, or the user's code can't train it.
        KeyError: if an arithmetic engine lacks a unit of the pack.
        ValueError: if a unit's weights can't have a cell's `init_variance`.
    """
    running = engine.start(pack, device=device)
    running.advance(0.0)  # the evaluation at the start, and compilation
    running.advance(warm_s)

    def measure(for_s: float) -> float:
        before, began = running.checkpoint().iteration, clock()
        running.advance(for_s)
        after = running.checkpoint().iteration  # copies weights out, and so waits for the device
        return (clock() - began) / (after - before) / len(pack.trials) * 1e6

    return measure


def repeated(work: Callable[[int], object], at_once: int) -> Measure:
    """Do one unit of `work`, and return a function that measures a unit in microseconds of this process's CPU time.

    Args:
        work: does the given number of units.
        at_once: units of each call.
    """
    work(1)  # compiles, if there is anything to compile

    def measure(for_s: float) -> float:
        done, began, until = 0, time.process_time(), time.perf_counter() + for_s
        while not done or time.perf_counter() < until:
            work(at_once)
            done += at_once
        return (time.process_time() - began) / done * 1e6

    return measure


@contextmanager
def one_core() -> Iterator[None]:
    """Restrict this process to one core: torch to one thread, and all threads to the core.

    Afterwards the former threads and cores are restored. A system without affinities gets one thread of torch only, and
    a warning is printed.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    allowed = os.sched_getaffinity(0) if _THREADS.is_dir() else set()
    if allowed:
        _put_on({max(allowed)})
    else:
        tell("this system can't keep a process on one core: results are those of one thread")
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if allowed:
            _put_on(allowed)


def _put_on(these: set[int]) -> None:
    """Put each thread of this process on these cores; threads started later inherit them."""
    for thread in _THREADS.iterdir():
        with suppress(ProcessLookupError):  # it has ended in the meantime
            os.sched_setaffinity(int(thread.name), these)


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_turns(
    measures: Mapping[Key, Callable[[float], Value]], *, rounds: int, seconds: float
) -> dict[Key, list[Value]]:
    """Measure everything once a round, so that a drift of the machine's speed affects all alike.

    Returns:
        The measurements by key, one for each round.
    """
    measured: dict[Key, list[Value]] = {key: [] for key in measures}
    for _ in range(rounds):
        for key, measure in measures.items():
            measured[key].append(measure(seconds))
    return measured


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Return the median of the rounds' ratios, `over` divided by `under`.

    Raises:
        ValueError: if the numbers of rounds differ, or there is none.
        ZeroDivisionError: if a number of `under` is 0.
    """
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def spread(name: str, values: Sequence[float]) -> dict[str, str]:
    """Return the median, least and greatest of `values`, not empty, as columns NAME, NAME_least and NAME_most."""
    found = {"": statistics.median(values), "_least": min(values), "_most": max(values)}
    return {name + end: f"{value:.3f}" for end, value in found.items()}


def command(module: Sequence[str], **environment: str) -> tuple[float, float, float]:
    """Run ``python -m`` as a process; return its seconds, its CPU seconds in user mode, and its peak memory in MiB.

    Its standard output is discarded.

    Args:
        module: the module and its arguments.
        environment: variables to add to the environment.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    words = [sys.executable, "-c", _LAUNCH, sys.executable, "-m", *module]
    launched = subprocess.run(words, stdout=subprocess.PIPE, check=True, env=os.environ | environment)
    wall_s, user_s, peak = map(float, launched.stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB on Linux
    return wall_s, user_s, peak * unit / 2**20


def at_least(minimum: int) -> Callable[[str], int]:
    """Return a converter for `argparse`: of text to a whole number that is at least `minimum`.

    It raises ArgumentTypeError for another text.

    Example:
        >>> at_least(2)("20")
        20
    """

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < minimum:
            raise ArgumentTypeError(f"{text!r} isn't a whole number of at least {minimum}")
        return int(text)

    return number


def plain_parser(doc: str | None) -> ArgumentParser:
    """Make a parser of the option that all benchmarks have: the output file."""
    options = ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, help="CSV file to write; a JSON file beside it says where it comes from")
    return options


def parser(doc: str | None, *, rounds: int, seconds: float, models: Sequence[str] | None = None) -> ArgumentParser:
    """Make a parser of the options of benchmarks that measure time, with defaults.

    Args:
        doc: the benchmark's description.
        rounds: default number of rounds; each measures everything once.
        seconds: default seconds of each measurement.
        models: default models to measure; None if they can't be chosen.
    """
    options = plain_parser(doc)
    options.add_argument("--rounds", type=at_least(1), default=rounds, help="times that each measurement is repeated")
    options.add_argument("--seconds", type=float, default=seconds, help="seconds of each measurement")
    if models is not None:
        default = list(models)
        options.add_argument("--models", nargs="+", choices=list(MODELS), default=default, metavar="MODEL")
    return options


def studies_parser(doc: str | None) -> ArgumentParser:
    """Make a parser of the options of benchmarks that draw synthetic studies."""
    options = plain_parser(doc)
    options.add_argument("--studies", type=at_least(1), default=10_000, help="synthetic studies of each kind and size")
    options.add_argument("--seed", type=at_least(0), default=0, help="seed of the random numbers")
    return options


def tell(words: str) -> None:
    """Print a line of progress on stderr."""
    print(words, file=sys.stderr, flush=True)


def finish(rows: Sequence[Mapping[str, Any]], arguments: Namespace, **more: Any) -> None:
    """Print the table; if there is an output file, write it as CSV, and its provenance into a JSON file beside it.

    Args:
        rows: at least one row; all have the same columns.
        arguments: settings to note, with the CSV file as ``out``, or None to write nothing.
        more: further notes for the JSON file.

    Raises:
        OSError: if a file can't be written, such as in a missing folder.
    """
    lines = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    if arguments.out is None:
        return
    with arguments.out.open("w", newline="") as out:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    settings = {name: value for name, value in vars(arguments).items() if name != "out"}
    source = provenance(getattr(arguments, "device", "cpu")) | {
        "processor": llvmlite.binding.get_host_cpu_name(),
        "cores": cores(),
    }
    arguments.out.with_suffix(".json").write_text(json.dumps(source | {"settings": settings} | more, indent=2) + "\n")

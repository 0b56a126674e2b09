"""Microseconds of CPU per trial-iteration of the fused engine in a process that compiled it, and in one that loaded it.

    python -m benchmarks.compiling [--models NMU NALU] [--out benchmarks/results/compiling.csv]

Nothing is on disk when the first process begins. Both are on one core, and measured in turn, one at a time.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.measure import PACK, finish, in_turns, new_pack, one_core, parser, published_cell, ratio, tell, training
from study.engine import engine_named

_MODELS = ("NMU", "NAU", "NALU", "NAC-mul", "gated-NAU-NMU", "linear")
_SHAPE = (100, 2)
_CACHE = "NUMBA_CACHE_DIR"


class Trainer:
    """A process that trains packs when asked to.

    Args:
        pipe: to it.
        begin_s: seconds of CPU until its first update, with compiling or loading.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.begin_s: float = pipe.recv()

    def measure(self, model: str, for_s: float) -> float:
        """Train one model for about so many seconds, and give the microseconds of a trial-iteration."""
        self._pipe.send((model, for_s))
        us: float = self._pipe.recv()
        return us


@contextmanager
def trainer(models: Sequence[str], cache: Path) -> Iterator[Trainer]:
    """Start a process that keeps compiled code in a folder, and wait until it can train."""
    before = os.environ.get(_CACHE)
    os.environ[_CACHE] = str(cache)  # read where numba is imported, which is there
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_train, args=(there, tuple(models)), daemon=True)
    process.start()
    os.environ.pop(_CACHE) if before is None else os.environ.update({_CACHE: before})
    there.close()
    try:
        yield Trainer(here)
    finally:
        here.close()
        process.join()


def _train(pipe: Connection, models: Sequence[str]) -> None:
    engine = engine_named("fused")
    with one_core():
        began = time.process_time()
        engine.prepare(published_cell(models[0], *_SHAPE))
        pipe.send(time.process_time() - began)
        measures = {
            model: training(engine, new_pack(published_cell(model, *_SHAPE), PACK), clock=time.process_time)
            for model in models
        }
        while True:
            try:
                model, for_s = pipe.recv()
            except EOFError:  # nobody asks any more
                return
            pipe.send(measures[model](for_s))


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    arguments = parser(__doc__, rounds=5, seconds=0.4, models=_MODELS).parse_args(words)
    models = arguments.models
    with (
        tempfile.TemporaryDirectory() as folder,
        trainer(models, Path(folder)) as compiled,
        trainer(models, Path(folder)) as loaded,
    ):
        tell(f"compiled in {compiled.begin_s:.1f} s of CPU, loaded in {loaded.begin_s:.1f}")
        measures = {(model, one): partial(one.measure, model) for model in models for one in (compiled, loaded)}
        measured = in_turns(measures, rounds=arguments.rounds, seconds=arguments.seconds)
    rows = [
        {
            "model": model,
            "input_size": _SHAPE[0],
            "hidden_size": _SHAPE[1],
            "us_compiled": f"{statistics.median(measured[model, compiled]):.2f}",
            "us_loaded": f"{statistics.median(measured[model, loaded]):.2f}",
            "compiled_over_loaded": f"{ratio(measured[model, compiled], measured[model, loaded]):.2f}",
        }
        for model in models
    ]
    finish(rows, arguments, compiled_in_s=compiled.begin_s, loaded_in_s=loaded.begin_s)


if __name__ == "__main__":
    main()

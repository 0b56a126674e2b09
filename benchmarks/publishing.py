"""CPU time of publishing a trial to MLflow, beside the minimum that MLflow's client needs for the same runs.

    python -m benchmarks.publishing [--trials N] [--rounds N] [--out benchmarks/results/publishing.csv]

The minimum is `create_run`, `log_batch` and `set_terminated` of each trial, with the tags, parameters and metrics that
the publisher writes. The publisher of `study run` reads the same trials from the store: in packs of one and of fifty,
all queued at once, and in packs of one, ten of them queued a second. After each pack the counts are queued, as in a
run. Both publish in turn, each time into a new experiment: in a new database in a file, and on MLflow's server with
such a database. Prints a row for each kind of MLflow, curve length and pack size, and writes it with `--out`:
milliseconds of CPU time per trial of the publishing process and of the server's processes, and their ratio to the
minimum.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import numpy as np
from mlflow.entities import Metric, Param

from benchmarks.measure import finish, in_turns, parser, ratio, tell
from benchmarks.tracking import dashboard
from study.records import Cell, Curve, Outcome, Result, Trial
from study.results.stored_packs import StoredPacks
from study.store import Store, StudyStore
from study.tracking import Publisher, default_uri
from study.tracking.address import connect, database, place_of_files, user
from study.tracking.cell_runs import PARENT
from study.tracking.rows import KIND, PACK, plain_name, trial_run
from tests.processes import below

POINTS = (0, 10, 100)
_CELL_SEEDS = 50
_CLOSE_S = 600.0
_TICKS = os.sysconf("SC_CLK_TCK")
_MINIMUM = (0, 0.0)
_PROCESSES = ("client", "server")
_COLUMNS = [f"{process}_{figure}" for process in _PROCESSES for figure in ("minimum_ms", "ms", "ratio")]

Cpu = tuple[float, float]
"""Milliseconds of CPU time a trial: of this process, and of the server's."""


def made_up(trials: int, points: int) -> list[tuple[Result, Curve]]:
    """Make up trials of a training function with two hyperparameters, two metrics and curves of `points` points.

    Each cell has 50 seeds. Without points, the curves are empty.
    """
    return [_trial(*divmod(number, _CELL_SEEDS), points) for number in range(trials)]


def _trial(cell: int, seed: int, points: int) -> tuple[Result, Curve]:
    code = f"parsed:{0:064x}"
    values = {"lr": 0.1 / (cell + 1), "optimizer": "adam", "code": code, "metrics": "loss lower, accuracy higher"}
    loss, steps = 1 / (seed + 1), np.arange(max(points, 1))
    result = Result(
        trial=Trial(Cell("function", "benchmark:train", values), seed),
        outcome=Outcome.SOLVED,
        criterion="loss < 2",
        best_iteration=int(steps[-1]),
        solved_at_iteration=0,
        metrics={"loss": loss, "accuracy": 0.5},
        iterations=int(steps[-1]),
        training_s=0.5,
        engine="function",
        device="cpu",
    )
    series = {"loss": loss * (1 + steps[::-1]), "accuracy": 0.5 - 0.001 * steps[::-1]}
    return result, Curve(result.trial.id, steps[:points], {name: values[:points] for name, values in series.items()})


@dataclass
class Publishing:
    """Measurements of publishing trials with learning curves to one kind of MLflow.

    Args:
        folder: a folder for stores and databases.
        trials: how many trials to publish.
        points: points of a learning curve.
        server: the address of MLflow's server; None for a new database each time.
        empty: an empty database; it is copied for each new one, since making one takes seconds.
    """

    folder: Path
    trials: int
    points: int
    server: str | None
    empty: Path
    _number: Iterator[int] = field(default_factory=count)

    def minimum(self, _: float) -> Cpu:
        """Write the trials by MLflow's client alone, into a new experiment.

        Returns:
            Milliseconds of CPU time per trial, of this process and of the server's processes; 0 without a server.

        Raises:
            mlflow.exceptions.MlflowException: if MLflow can't be reached.
        """
        uri, study = self._address()
        client = connect(uri)
        experiment = client.create_experiment(study, artifact_location=place_of_files(uri, study))
        above = client.create_run(experiment, run_name=study).info.run_id
        runs = [trial_run(*item) for item in made_up(self.trials, self.points)]
        began = self._cpu_s()
        for run in runs:
            tags = {**run.tags, KIND: "trial", PACK: "pack-000000", PARENT: above, **user()}
            at_ms, name = time.time_ns() // 1_000_000, f"{plain_name(run.trial.cell)} seed {run.trial.seed}"
            run_id = client.create_run(experiment, start_time=at_ms, tags=tags, run_name=name).info.run_id
            metrics = [Metric(key, value, at_ms + step, step) for key, step, value in run.curve]
            metrics += [Metric(key, value, at_ms, 0) for key, value in run.metrics.items()]
            client.log_batch(run_id, metrics, [Param(key, value) for key, value in run.params.items()])
            client.set_terminated(run_id, end_time=at_ms)
        return self._spent(began)

    def publisher(self, pack: int, packs_a_second: float) -> Callable[[float], Cpu]:
        """Store the trials in packs, and return a function that publishes them into a new experiment.

        The function returns CPU time as `minimum` does. It raises SystemExit if not everything was published.

        Args:
            pack: trials in a pack.
            packs_a_second: packs queued a second; 0 to queue all at once.

        Raises:
            StoreError: if the trials can't be stored.
        """
        stored = self._stored(pack)

        def measure(_: float) -> Cpu:
            packs, (uri, study) = StoredPacks(stored), self._address()
            names = packs.names()
            with Publisher(uri, study, packs) as publisher:
                publisher.wait_for_study(_CLOSE_S)
                began, began_s = self._cpu_s(), time.monotonic()
                for number, name in enumerate(names):
                    if packs_a_second:
                        time.sleep(max(0.0, began_s + number / packs_a_second - time.monotonic()))
                    publisher.queue_pack(name, pack)
                    publisher.queue_counts({"trials_done": number * pack, "trials_planned": self.trials})
                if publisher.close(_CLOSE_S):
                    raise SystemExit(publisher.trouble)
                return self._spent(began)

        return measure

    def _stored(self, pack: int) -> StudyStore:
        folder = Store(self.folder).study(f"{next(self._number)}-{self.points}")
        folder.write_spec("study: made-up\n")
        made = made_up(self.trials, self.points)
        for start in range(0, self.trials, pack):
            results, curves = zip(*made[start : start + pack], strict=True)
            folder.write_pack(f"pack-{start:06}", results, curves if self.points else (), (), {"created_at": "never"})
        return folder

    def _address(self) -> tuple[str, str]:
        study = f"study-{self.points}-{next(self._number)}"
        if self.server:
            return self.server, study
        (self.folder / study).mkdir(parents=True)
        copy = database(uri := default_uri(self.folder / study))
        assert copy is not None
        copy.write_bytes(self.empty.read_bytes())
        return uri, study

    def _cpu_s(self) -> Cpu:
        """Return the CPU seconds of this process, and those of its descendants; the latter are 0 without a server."""
        below_s = 0
        for child in below(os.getpid()) if self.server else ():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            below_s += int(fields[11]) + int(fields[12])
        return time.process_time(), below_s / _TICKS

    def _spent(self, began: Cpu) -> Cpu:
        client_s, server_s = (1000 * (now - then) / self.trials for now, then in zip(self._cpu_s(), began, strict=True))
        return client_s, server_s


def rows(kind: str, publishing: Publishing, ways: Sequence[tuple[int, float]], rounds: int) -> Iterator[dict[str, str]]:
    """Measure the minimum and each way to publish, in turn; print and yield a row for each way.

    The first round warms up and doesn't count.

    Args:
        kind: name of the kind of MLflow.
        publishing: the measurements.
        ways: trials in a pack, and packs a second, of each way.
        rounds: number of rounds that count, at least 1.

    Raises:
        SystemExit: if not everything was published.
        mlflow.exceptions.MlflowException: as for `Publishing.minimum`.
        StoreError: as for `Publishing.publisher`.
    """
    measures = {_MINIMUM: publishing.minimum} | {way: publishing.publisher(*way) for way in ways}
    spent = in_turns(measures, rounds=rounds + 1, seconds=0)
    client_and_server = {way: list(zip(*turns[1:], strict=True)) for way, turns in spent.items()}
    for pack, packs_a_second in ways:
        row = {"kind": kind, "points": str(publishing.points), "pack": str(pack)}
        row |= {"packs_per_s": f"{packs_a_second:g}" if packs_a_second else ""} | dict.fromkeys(_COLUMNS, "")
        for place, process in enumerate(_PROCESSES if publishing.server else _PROCESSES[:1]):
            under, over = (client_and_server[way][place] for way in (_MINIMUM, (pack, packs_a_second)))
            row[f"{process}_minimum_ms"] = f"{statistics.median(under):.2f}"
            row[f"{process}_ms"] = f"{statistics.median(over):.2f}"
            row[f"{process}_ratio"] = f"{ratio(over, under):.2f}"
        tell(str(row))
        yield row


def main(words: Sequence[str] | None = None) -> None:
    """Measure each way to publish; print the table, and write it with `--out`.

    Raises:
        SystemExit: if not everything was published.
        RuntimeError: if MLflow's server ends.
        TimeoutError: if it doesn't answer in time.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=2, seconds=0)
    options.add_argument("--trials", type=int, default=200, help="up to 50, or a multiple of it (default: %(default)s)")
    arguments = options.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        empty = database(behind := default_uri(root))
        assert empty is not None
        connect(behind)
        lines = _rows_of("sqlite", Publishing(root / "sqlite", arguments.trials, 0, None, empty), arguments.rounds)
        with dashboard(behind, root) as served:
            lines += _rows_of("http", Publishing(root / "http", arguments.trials, 0, served, empty), arguments.rounds)
    finish(lines, arguments)


def _rows_of(kind: str, publishing: Publishing, rounds: int) -> list[dict[str, str]]:
    lines = []
    pack = min(_CELL_SEEDS, publishing.trials)
    for points in POINTS:
        ways = [(1, 0.0), (pack, 0.0), *([(1, 10.0)] if points == POINTS[1] else [])]
        lines += rows(kind, replace(publishing, points=points), ways, rounds)
    return lines


if __name__ == "__main__":
    main()

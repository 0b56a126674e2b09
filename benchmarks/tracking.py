"""Cost of publishing to MLflow during training, and response times of the dashboard.

    python -m benchmarks.tracking [--runs N] [--sqlite N] [--http N] [--there N] [--out FILE.csv]

There are three kinds of MLflow: a database in a file; PostgreSQL without MLflow's server; and MLflow's server with
passwords on the same PostgreSQL, with S3 for files (`tests/servers.py`). All run on this machine, so servers take their
share of its cores.

The runs are made up as in `benchmarks.report` and stored. The publisher of `study run` publishes them, a few packs at a
time, while the fused engine trains in another process; before each batch of packs it trains alone. Then a rerun and
`study sync` are timed with everything published. The last of the runs on PostgreSQL are published over HTTP.

The dashboard's response times are measured with 20,000 runs (`--there`): those published, and copies of them in the
database without curves, which no list shows. Prints a row for each kind, and writes it with `--out`: runs a second, CPU
time per run, the slow-down of training, and the seconds of a rerun, of `study sync`, of queries and of pages.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import create_engine, inspect, text

from benchmarks.measure import Measure, finish, new_pack, parser, published_cell, tell, training
from benchmarks.report import made_up_plan, store
from docs.pictures import browser_path, opened
from study.engine import engine_named
from study.results.stored_packs import StoredPacks
from study.store import Store, StudyStore
from study.tracking import Publisher, default_uri, sync
from study.tracking.address import connect, count_rows
from study.tracking.serve import ui_command
from tests.processes import Server, answers, free_port
from tests.servers import Service, tracking_service

SEEDS = 50  # a pack of made-up trials is a cell
_CHUNK = 10  # packs published at a time
_PAGE = 100  # runs that the dashboard asks for
_training: Measure
_ASKED = {
    "list_s": ("", []),
    "by_cell_s": ("tags.`study.cell_id` = '{cell}'", []),
    "by_outcome_s": ("tags.`study.outcome` = 'unsolved'", []),
    "by_metric_s": ("tags.`study.kind` = 'trial'", ["metrics.`sparsity_error` ASC"]),
}
"""Queries of MLflow's API: a filter and an order."""
_TABLES = ("runs", "tags", "params", "latest_metrics")


def published(
    uri: str, folder: StudyStore, names: Sequence[str], train: Measure, for_s: float
) -> tuple[float, float, float]:
    """Publish packs during training.

    Args:
        uri: MLflow's address.
        folder: the study's store.
        names: names of the packs, at least one.
        train: trains for some seconds, and returns the time of a trial-iteration.
        for_s: seconds of each measurement of training.

    Returns:
        Runs a second, the median slow-down of training meanwhile, and milliseconds of this process's CPU time a run.

    Raises:
        SystemExit: if the publisher fails, or not everything is published.
        statistics.StatisticsError: if a batch of packs is published before training could be measured beside it.
    """
    busy_s, cpu_s, ratios = 0.0, 0.0, []
    with Publisher(uri, folder.path.name, StoredPacks(folder)) as publisher:
        publisher.wait_for_study(300)
        for start in range(0, len(names), _CHUNK):
            alone = train(for_s)
            began, cpu_began, rates = time.perf_counter(), time.process_time(), []
            for name in names[start : start + _CHUNK]:
                publisher.queue_pack(name, SEEDS)
            while publisher.waiting:
                rates.append(train(for_s))
                if publisher.trouble is not None:
                    raise SystemExit(publisher.trouble)
            # the last look came up to `for_s` too late: half of it on average
            busy_s += time.perf_counter() - began - for_s / 2
            cpu_s += time.process_time() - cpu_began
            ratios.append(statistics.fmean(rates) / alone)
            if start // _CHUNK % 4 == 0:
                done = min(start + _CHUNK, len(names)) * SEEDS
                slower = statistics.median(ratios)
                tell(f"{done} runs, {done / busy_s:.1f} a second, training {slower:.2f} times slower")
        if publisher.close(60):
            raise SystemExit("some runs weren't published within 60 s")
    runs = len(names) * SEEDS
    return runs / busy_s, statistics.median(ratios), 1000 * cpu_s / runs


def _start_training() -> None:
    global _training
    more_than_needed = new_pack(published_cell("NMU", 100, 2), 256)
    _training = training(engine_named("fused"), more_than_needed)


def _train(for_s: float) -> float:
    return _training(for_s)


def found_again(uri: str, folder: StudyStore) -> tuple[float, float]:
    """Return the seconds of a rerun, and of `sync`, with everything published.

    Raises:
        SystemExit: if something hadn't been published.
        TrackingError: if MLflow can't be reached.
        StoreError: if the store can't be read.
    """
    packs, began = StoredPacks(folder), time.perf_counter()
    with Publisher(uri, folder.path.name, packs, close_timeout_s=600) as publisher:
        publisher.catch_up()
    again_s, began = time.perf_counter() - began, time.perf_counter()
    if publisher.trouble is not None or sync(uri, folder.path.name, StoredPacks(folder, folder.read_results())):
        raise SystemExit("not all had been published")
    return again_s, time.perf_counter() - began


def copied(uri: str, there: int) -> int:
    """Copy all runs of trials in a database, with new ids, repeatedly up to `there` runs; return their number.

    Raises:
        ZeroDivisionError: if the database has no run of a trial.
        sqlalchemy.exc.SQLAlchemyError: if the database can't be reached or written.
    """
    engine = create_engine(uri)
    tables = {name: [c["name"] for c in inspect(engine).get_columns(name)] for name in _TABLES}
    trials = "run_uuid IN (SELECT run_uuid FROM tags WHERE key = 'study.kind' AND value = 'trial')"
    with engine.begin() as database:
        counted = text(f"SELECT count(*) FROM runs WHERE {trials}")
        count = database.execute(counted).scalar_one()
        # Runs before their dependent rows; each round copies only the first runs.
        for copy in range(1, there // count):
            for table, columns in tables.items():
                taken = [_copy_of(table, column, copy) for column in columns]
                database.execute(
                    text(
                        f"INSERT INTO {table} ({', '.join(columns)}) "
                        f"SELECT {', '.join(taken)} FROM {table} WHERE {trials} AND substr(run_uuid, 29, 1) <> '-'"
                    )
                )
        count = database.execute(counted).scalar_one()
    engine.dispose()
    return int(count)


def _copy_of(table: str, column: str, copy: int) -> str:
    if column == "run_uuid":
        return f"substr(run_uuid, 1, 28) || '-{copy:03d}'"
    if (table, column) == ("tags", "value"):
        return f"CASE WHEN key IN ('study.trial_id', 'study.pack') THEN '{copy:03d}-' || value ELSE value END"
    return column


def asked(uri: str, study: str, cell_id: str, rounds: int) -> dict[str, float]:
    """Return the median seconds of each query's first page over rounds, at least one, by the query's name.

    Raises:
        AssertionError: if a query has no result, or the experiment doesn't exist.
        mlflow.exceptions.MlflowException: if MLflow can't be reached.
    """
    client = connect(uri)
    experiment = client.get_experiment_by_name(study)
    assert experiment is not None
    seconds: dict[str, list[float]] = {name: [] for name in _ASKED}
    for _ in range(rounds):
        for name, (which, order) in _ASKED.items():
            began = time.perf_counter()
            page = client.search_runs(
                [experiment.experiment_id], which.format(cell=cell_id), max_results=_PAGE, order_by=order
            )
            seconds[name].append(time.perf_counter() - began)
            assert len(page)
    return {name: statistics.median(values) for name, values in seconds.items()}


def opened_pages(address: str, experiment_id: str, user: dict[str, str] | None, rounds: int) -> tuple[float, float]:
    """Return a browser's median seconds to show runs: the study's page, and its unsolved trials, by name.

    Without a browser both are NaN. There is at least one round.

    Raises:
        playwright.sync_api.Error: if the page can't be opened, or shows no run within three minutes.
    """
    executable = browser_path()
    if executable is None:
        tell("no browser here: pages are not measured")
        return float("nan"), float("nan")
    runs = f"{address}/#/experiments/{experiment_id}/runs?workflowType=machine_learning"
    which = quote("tags.`study.outcome` = 'unsolved'", safe="")
    filtered = f"{runs}&orderByKey=tags.%60mlflow.runName%60&orderByAsc=true&searchFilter={which}"
    seconds: dict[str, list[float]] = {runs: [], filtered: []}
    with opened(executable) as browser:
        for _ in range(rounds):
            for page, values in seconds.items():
                context = browser.new_context(http_credentials=user)  # type: ignore[arg-type]
                tab = context.new_page()
                began = time.perf_counter()
                tab.goto(page)
                tab.locator("a[href*='/runs/']").first.wait_for(timeout=180_000)
                values.append(time.perf_counter() - began)
                context.close()
    return statistics.median(seconds[runs]), statistics.median(seconds[filtered])


@contextmanager
def dashboard(uri: str, folder: Path) -> Iterator[str]:
    """Serve a database as `study ui` does within the context, and yield the address.

    Raises:
        RuntimeError: if the server ends.
        TimeoutError: if it doesn't answer in time.
    """
    port = free_port()
    command, environment = ui_command(uri, port=port)
    address = f"http://127.0.0.1:{port}"
    server = Server("MLflow", command, partial(answers, f"{address}/health"), folder / "ui.log", environment)
    try:
        server.start()
        yield address
    finally:
        server.stop()


def measured(
    kind: str, folder: StudyStore, names: Sequence[str], service: Service | None, arguments: Namespace
) -> dict[str, Any]:
    """Publish packs to one kind of MLflow, and return the row of all measurements; NaN for those that don't apply.

    Raises:
        SystemExit: if not everything is published.
        statistics.StatisticsError: if a batch of packs is published before training could be measured beside it.
        TrackingError: if MLflow can't be reached.
        playwright.sync_api.Error: if a page can't be opened, or shows no run within three minutes.
        AssertionError: if a query of the dashboard has no result.
        RuntimeError: if the dashboard's server ends.
        TimeoutError: if it doesn't answer in time.
    """
    root = folder.path.parent
    uri, user = default_uri(root), None
    if service is not None:
        mlflow = service.mlflow
        uri = service.direct if kind == "postgresql" else mlflow.address
        user = {"username": mlflow.username, "password": mlflow.password}
    # As in a study, training has a process of its own.
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_start_training) as trainer:
        runs_a_second, slower, cpu_ms = published(
            uri, folder, names, lambda for_s: trainer.submit(_train, for_s).result(), arguments.seconds
        )
    tell(f"{kind}: {runs_a_second:.1f} runs a second")
    there = copied(service.direct if service else uri, arguments.there)
    count_rows(uri)  # as at the end of a run; PostgreSQL does so by itself
    all_there = kind == "http" or len(names) == len(list(StoredPacks(folder).names()))
    rerun_s, sync_s = found_again(uri, folder) if all_there else (float("nan"), float("nan"))
    cell_id = StoredPacks(folder).results(names[0])[0].trial.cell.id
    row: dict[str, Any] = {
        "kind": kind,
        "published": len(names) * SEEDS,
        "there": there,
        "runs_per_s": runs_a_second,
        "publisher_cpu_ms": cpu_ms,
        "training_slower": slower,
        "rerun_s": rerun_s,
        "sync_s": sync_s,
        **asked(uri, folder.path.name, cell_id, arguments.rounds),
    }
    experiment = connect(uri).get_experiment_by_name(folder.path.name)
    assert experiment is not None
    pages: Callable[[str], tuple[float, float]] = lambda address: opened_pages(  # noqa: E731
        address, experiment.experiment_id, user, arguments.rounds
    )
    if kind == "postgresql":  # its dashboard is that of the next kind
        row |= {"page_s": float("nan"), "page_filtered_s": float("nan")}
    elif service is None:
        with dashboard(uri, root) as address:
            row["page_s"], row["page_filtered_s"] = pages(address)
    else:
        row["page_s"], row["page_filtered_s"] = pages(uri)
    tell(str(_written(row)))
    return row


def _written(row: dict[str, Any]) -> dict[str, str]:
    """Format floats with three significant digits, NaN as an empty text, and other values as they are."""
    return {
        name: "" if value != value else f"{value:.3g}" if isinstance(value, float) else str(value)
        for name, value in row.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each kind of MLflow; print the table, and write it with `--out`.

    Raises:
        SystemExit: if not everything is published.
        TrackingError: if MLflow can't be reached.
        InputError: if `--runs` is 344,450 or more.
        RuntimeError: if a server ends.
        TimeoutError: if a server doesn't answer in time.
        OSError: if a server's program isn't installed, or the table can't be written.
    """
    made = parser(__doc__, rounds=3, seconds=0.25)
    made.add_argument("--runs", type=int, default=20_000, help="made-up runs")
    made.add_argument("--sqlite", type=int, default=2_000, help="runs to publish to a database in a file")
    made.add_argument("--there", type=int, default=20_000, help="runs in a database when response times are measured")
    made.add_argument("--http", type=int, default=500, help="runs to publish over HTTP, the others to PostgreSQL")
    options = made.parse_args(arguments)
    with tempfile.TemporaryDirectory() as root:
        planned = made_up_plan(max(4, options.runs // SEEDS), SEEDS)
        store(Path(root), planned)
        folder = Store(Path(root)).study(planned.spec.study)
        names = list(StoredPacks(folder).names())
        tell(f"{len(planned.trials)} runs")
        first = max(1, options.sqlite // SEEDS)
        rows = [measured("sqlite", folder, names[:first], None, options)]
        with tracking_service() as service:
            os.environ.update(service.mlflow.client_environment)
            os.environ["PGPASSFILE"] = str(service.postgres.password_file)
            last = max(1, options.http // SEEDS)
            rows.append(measured("postgresql", folder, names[:-last], service, options))
            rows.append(measured("http", folder, names[-last:], service, options))
    finish([_written(row) for row in rows], options)


if __name__ == "__main__":
    main()

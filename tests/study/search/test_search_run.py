"""Searches through the command line: equal results despite interruptions, and readable output."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import optuna_dashboard
import pytest

from study.results.load import load_results
from study.search.record import NAME as RECORD
from study.spec import parse_spec
from study.store import Store
from tests.commands import DEADLINE_S, PACK_HEARD, Process, Start, blow, invoke, starting
from tests.servers import Postgres, postgres_programs

# Warnings of MLflow and of Optuna's dashboard can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

NAME = "search"
SPEC = f"""
study: {NAME}
question: Does the search work?
task: {{name: simple}}
models: [NMU]
fixed: {{batch_size: 16, sparsity_strength: 0}}
ranges:
  learning_rate: {{low: 1.0e-4, high: 0.3, scale: log}}
  hidden_size: {{low: 1, high: 3}}
seeds: 6
protocol: {{iterations: 100, evaluate_every: 20, evaluation_rows: 50}}
success: {{threshold: 1000.0}}
search: {{objective: success_rate, trials: 60, candidates: 4, first_seeds: 2, confirm_seeds: 5}}
"""


@pytest.fixture
def search(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts `study search` of a file with its own store."""
    with starting(tmp_path) as start:

        def start_search(*more: str, store: str = "studies", **set_: str) -> Process:
            (tmp_path / "search.yaml").write_text(SPEC)
            return start("search", "search.yaml", "--store", store, "--tracking-uri", "off", *more, **set_)

        yield start_search


def ended(process: Process) -> None:
    output, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, output


@pytest.fixture
def run_search(tmp_path: Path) -> Callable[..., str]:
    """Return a function that searches in this process, and returns its output."""

    def search_here(*more: str, text: str = SPEC) -> str:
        (tmp_path / "search.yaml").write_text(text)
        words = ("--store", str(tmp_path / "studies"), "--tracking-uri", "off", "--local")
        result = invoke("search", str(tmp_path / "search.yaml"), *words, *more)
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    return search_here


@contextmanager
def opened(uri: str) -> Iterator[optuna.storages.RDBStorage]:
    """Open an Optuna storage, and close it."""
    storage = optuna.storages.RDBStorage(uri)
    try:
        yield storage
    finally:
        storage.engine.dispose()


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / NAME / RECORD).read_bytes())
    return record


def report_of(root: Path) -> list[Any]:
    results = load_results(NAME, root)
    return [*results.summaries, results.headline]


@pytest.mark.slow
def test_a_killed_or_distributed_search_has_the_same_results(search, tmp_path):
    """A search on Ray whose driver is killed and run again has the results of a single process."""
    ended(search("--local", "--optuna-storage", "off", store="whole"))
    undisturbed = record_of(tmp_path / "whole")

    driver = search("--cpus", "2", **blow(tmp_path / "struck", PACK_HEARD, signal.SIGKILL))
    output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == -signal.SIGKILL, output
    interrupted = record_of(tmp_path / "studies")
    assert interrupted["candidates"] == undisturbed["candidates"][: len(interrupted["candidates"])] or not all(
        candidate["values"] for candidate in interrupted["candidates"]
    )

    ended(search("--cpus", "2"))
    record = record_of(tmp_path / "studies")
    assert [candidate["params"] for candidate in record["candidates"]] == [
        candidate["params"] for candidate in undisturbed["candidates"]
    ]
    assert record["winners"] == undisturbed["winners"]
    table = Store(tmp_path / "studies").study(NAME).read_results()
    assert len(set(table["trial_id"].to_pylist())) == table.num_rows


def test_a_finished_search_trains_nothing_again(run_search, tmp_path):
    """A finished search, run again or renamed, trains nothing and gives the same report from stored trials."""
    assert "confirmed with fresh seeds" in run_search()
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "studies" / NAME / "results").iterdir()}
    first = report_of(tmp_path / "studies")
    run_search()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "studies" / NAME / "results").iterdir()} == files
    assert report_of(tmp_path / "studies") == first

    output = run_search(text=SPEC.replace(f"study: {NAME}", "study: other"))
    assert "trials are done already in other studies of this store" in output
    other = Store(tmp_path / "studies").study("other")
    assert not [pack_id for pack_id in other.pack_ids() if not pack_id.startswith("adopted-")]
    page = (tmp_path / "studies" / "other" / "report" / "report.html").read_text()
    assert "with fresh seeds" in page


@pytest.mark.slow
def test_optuna_and_its_dashboard_open_the_storage(run_search, tmp_path):
    """The database in the study's folder is an Optuna study with every suggestion, and its dashboard serves it."""
    run_search()
    record = record_of(tmp_path / "studies")["candidates"]
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/studies", "wsgi.url_scheme": "http"}
    environ |= {"SERVER_NAME": "x", "SERVER_PORT": "0", "QUERY_STRING": ""}
    served: list[str] = []
    with opened(f"sqlite:///{tmp_path / 'studies' / NAME / 'optuna.db'}") as storage:
        study = optuna.load_study(study_name=NAME, storage=storage)
        assert [trial.params for trial in study.trials] == [candidate["params"] for candidate in record]
        assert [trial.values for trial in study.trials] == [candidate["values"] for candidate in record]
        assert study.best_trial.user_attrs["cell"] in {candidate["cell_id"] for candidate in record}
        app = optuna_dashboard.wsgi(storage)
        body = b"".join(app(environ, lambda status, headers, *more: served.append(status)))
    assert served == ["200 OK"]
    assert NAME in body.decode()


@pytest.mark.slow
def test_a_storage_that_is_away_costs_the_search_nothing(run_search, tmp_path):
    """A search whose database is unavailable has the same results and a warning; a later run writes all suggestions."""
    output = run_search("--optuna-storage", f"sqlite:///{tmp_path}/missing/optuna.db")
    assert "nothing was written for Optuna's dashboard, and the search goes on" in output
    (tmp_path / "missing").mkdir()
    run_search("--optuna-storage", f"sqlite:///{tmp_path}/missing/optuna.db")
    with opened(f"sqlite:///{tmp_path}/missing/optuna.db") as storage:
        study = optuna.load_study(study_name=NAME, storage=storage)
        assert len(study.trials) == len(record_of(tmp_path / "studies")["candidates"])


@pytest.mark.slow
def test_a_search_is_written_to_postgresql(run_search, monkeypatch):
    """On PostgreSQL the storage equals that on SQLite, with the password in its own file."""
    if postgres_programs() is None:
        pytest.skip("PostgreSQL isn't installed: Debian's package postgresql is enough")
    # PostgreSQL's user can't read pytest's folder.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = Postgres(Path(folder))
        server.start()
        try:
            monkeypatch.setenv("PGPASSFILE", str(server.password_file))
            database = server.database("optuna")
            output = run_search("--optuna-storage", database.replace("+psycopg", ""))
            with opened(database) as storage:
                study = optuna.load_study(study_name=NAME, storage=storage)
                assert study.best_trial.number in range(len(study.trials)), output
        finally:
            server.stop()


def test_a_file_without_ranges_is_refused(tmp_path):
    """`study search` of a file without ranges names the missing key."""
    file = tmp_path / "search.yaml"
    file.write_text(SPEC[: SPEC.index("ranges:")] + "seeds: 3\n")
    refused = invoke("search", str(file), "--local")
    assert refused.exit_code == 2
    assert "nothing to search for" in refused.output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("low: 1.0e-4", "low: 0", "ranges.learning_rate.low: must be > 0, but got 0"),
        (
            "  hidden_size: {low: 1, high: 3}",
            "  momentum: {low: 0, high: 0.5, scale: log}",
            "ranges.momentum.low: 0 < low must hold on a log scale, but got 0",
        ),
        ("low: 1.0e-4", "low: 1", "ranges.learning_rate.low: low < high must hold, but got 1 and 0.3"),
        ("low: 1.0e-4, ", "", "ranges.learning_rate: must have low and high, or choices"),
        ("high: 0.3", "high: 0.3, step: 0.1", "ranges.learning_rate.step: a log scale has no steps"),
        ("low: 1, high: 3", "low: 1, high: 3, step: 5", "step <= high - low must hold, but got 5 and 2"),
        ("{low: 1, high: 3}", "{choices: [2]}", "must be at least 2 different values"),
        ("{low: 1, high: 3}", "{choices: [2, 3], low: 1}", "must have choices, or low and high, but has both"),
        ("{low: 1, high: 3}", "{low: 1.5, high: 3}", "hidden_size.low: must be a whole number, but got 1.5"),
        ("hidden_size: {", "hiden_size: {", "unknown key; did you mean 'hidden_size'?"),
        ("trials: 60", "trials: 6", "candidates x first_seeds <= trials must hold, but got 4 x 2 = 8 and trials 6"),
        ("first_seeds: 2", "first_seeds: 7", "first_seeds <= seeds must hold, but got 7 and 6 seeds"),
        ("objective: success_rate", "objective: sucess_rate", "did you mean 'success_rate'?"),
        ("trials: 60", "trials: 60, sampler: tpe", "did you mean 'TPE'?"),
        ("seeds: 6", "seeds: {until: {half_width: 0.1, max: 50}}", "a search can't be combined with until"),
        ("ranges:", "grid: {init_variance: [0.05]}\nranges:", "a search can't sweep hyperparameters"),
        ("search: {", "serach: {", "ranges need a search"),
        (
            "  hidden_size: {low: 1, high: 3}",
            "  optimizer: {low: adam, high: sgd}",
            "only numbers have a range; give choices: [...] instead of 'adam'",
        ),
        (
            "{low: 1, high: 3}",
            "{choices: [1, 2]}\nseeds: 6\nsearch: {objective: success_rate, trials: 60, sampler: CMA-ES}\n#",
            "ranges.hidden_size: CMA-ES can't choose between names or listed values; use sampler: TPE",
        ),
    ],
)
def test_impossible_ranges_are_refused(old, new, message):
    """An impossible range or search is refused with its place, its value and the rule."""
    assert old in SPEC
    with pytest.raises(Exception, match="mistake") as caught:
        parse_spec(SPEC.replace(old, new), source="search.yaml")
    assert message in str(caught.value)
    assert "line " in str(caught.value)


def test_ranges_without_a_possible_schedule_are_refused():
    """Ranges without any possible schedule are a mistake; ranges with some impossible ones aren't."""
    text = SPEC.replace("sparsity_strength: 0", "sparsity_strength: 1")
    never = "ranges:\n  sparsity_start: {low: 50, high: 60}\n  sparsity_end: {low: 10, high: 50}"
    with pytest.raises(Exception, match="sparsity_start < sparsity_end must hold"):
        parse_spec(text.replace("ranges:", never), source="search.yaml")
    partly_possible = "ranges:\n  sparsity_start: {low: 0, high: 60}\n  sparsity_end: {low: 10, high: 50}"
    assert parse_spec(text.replace("ranges:", partly_possible), source="search.yaml").search is not None


def test_the_plan_of_a_search_shows_its_cost(tmp_path, monkeypatch):
    """`study plan` prints rounds, rungs, the confirmation and a time; it writes nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "search.yaml").write_text(SPEC)
    output = " ".join(invoke("plan", "search.yaml").output.split())
    assert "rounds of 4 candidates with 2, 6 seeds, 16 trials a round" in output
    assert "then 5 fresh seeds for each candidate of the front" in output
    assert "calibrated for a second per shape" in output
    assert list(tmp_path.iterdir()) == [tmp_path / "search.yaml"]

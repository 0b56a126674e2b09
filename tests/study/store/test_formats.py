"""Stores of earlier versions are readable by all later ones: never moved, never trained again."""

from __future__ import annotations

import io
import json
import shutil
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from study.api import Study, Where
from study.arrow import (
    EMPTY_CURVES,
    EMPTY_RESULTS,
    WEIGHTS_SCHEMA,
    columns,
    hyperparameters_of,
    metrics_of,
    table_cells,
    table_curves,
    table_results,
    table_weights,
)
from study.console import Console
from study.engine import Training
from study.errors import InputError, StoreError
from study.outcomes.files import read_source
from study.plan.plan import Plan, make_plan
from study.records import Checkpoint, Notice, Outcome, Pack, Result
from study.reports import cells_rows
from study.reports.files import to_csv, to_parquet
from study.results.load import load_results
from study.run import Ending
from study.search import read_record, record
from study.spec import parse_spec
from study.store import SCHEMA_VERSION, Store, StudyStore, formats
from study.store.files import parquet, version_of
from study.store.formats import FORMATS, Format, Members
from study.worker.pack_work import PackWork
from tasks.arithmetic.engine.cpu.engine import FusedEngine
from tests.engines import ENGINES, use_engines

STORES = Path(__file__).parents[1] / "stores"
NEXT = SCHEMA_VERSION + 1
HALF_DONE = "461b577acb53dfff"
OUTCOMES = {
    ("NMU", 1e-3, 0): "solved",
    ("NMU", 1e-3, 1): "unsolved",
    ("NMU", 1e30, 0): "failed",
    ("NMU", 1e30, 1): "failed",
    ("linear", 1e-3, 0): "unsolved",
    ("linear", 1e-3, 1): "unsolved",
    ("linear", 1e30, 0): "diverged",
    ("linear", 1e30, 1): "diverged",
}


VERSIONS = (1, 2)
PLACES = [*((version, "folder") for version in VERSIONS), (1, "s3")]


@pytest.fixture(params=PLACES, ids=lambda place: f"version-{place[0]}-{place[1]}")
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a copy of a version's store, of either kind."""
    version, kind = request.param
    store = STORES / f"version-{version}"
    if kind == "folder":
        return str(shutil.copytree(store, tmp_path / "studies"))
    url = f"{request.getfixturevalue('s3').bucket()}/studies"
    for path in store.rglob("*"):
        if path.is_file():
            study, _, key = path.relative_to(store).as_posix().partition("/")
            Store(url).study(study)._folder.write(key, path.read_bytes())
    return url


@pytest.fixture(params=VERSIONS, ids="version-{}".format)
def version(request: pytest.FixtureRequest) -> int:
    """Return each version with a stored sample."""
    return int(request.param)


@pytest.fixture
def local(version: int, tmp_path: Path) -> Path:
    """Return a copy of a version's store in a local folder."""
    return shutil.copytree(STORES / f"version-{version}", tmp_path / "studies")


def test_the_last_format_is_todays() -> None:
    """A changed column requires a new version: written files have the last format, and versions have no gap."""
    today = {"results": EMPTY_RESULTS.schema, "curves": EMPTY_CURVES.schema, "weights": WEIGHTS_SCHEMA}
    assert FORMATS[SCHEMA_VERSION].schemas == today
    assert sorted(FORMATS) == list(range(1, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("kind", ["results", "curves", "weights"])
def test_every_format_leads_to_todays(version: int, kind: str) -> None:
    """From each version there is an upgrade to the last for each kind of file, and a stored sample."""
    empty = FORMATS[version].schemas[kind].empty_table()
    today = formats.upgraded(kind, empty, version, "a file").schema
    assert FORMATS[SCHEMA_VERSION].complaint(kind, today) is None
    assert (STORES / f"version-{version}").is_dir()


def test_each_version_has_a_store() -> None:
    """The tests of this file cover all versions."""
    assert list(FORMATS) == list(VERSIONS)


def test_a_grid_of_any_version_is_read(root: str) -> None:
    """Results, curves and weights are equal to the last bit, and a half-trained pack is read."""
    study = Store(root).study("grid")
    results = table_results(study.read_results())
    result_of = {(r.trial.cell.model, r.trial.cell.value("learning_rate"), r.trial.seed): r for r in results}
    assert {key: str(result.outcome) for key, result in result_of.items()} == OUTCOMES
    assert {r.trial.id for r in results} == set(study.read_results()["trial_id"].to_pylist())
    solved, diverged, failed = (result_of[key] for key in [("NMU", 1e-3, 0), ("linear", 1e30, 0), ("NMU", 1e30, 0)])
    assert (solved.metrics.get("test_mse"), solved.solved_at_iteration) == (float.fromhex("0x1.f626a80000000p+2"), 6000)
    assert diverged.metrics.get("test_mse") is None
    assert failed.error is not None
    assert failed.error.endswith("RuntimeError: this engine crashes where it is told to\n")
    assert study.done() == {r.trial.id for r in results if r.outcome != "failed"}
    (curve,) = table_curves(study.read_curves({solved.trial.id}))
    assert digest(curve.iteration, curve.metrics["test_mse"]) == "b5bf5674dc8cc994"
    (weights,) = table_weights(study.read_weights({solved.trial.id}))
    assert (list(weights.arrays), digest(*weights.arrays.values())) == (
        ["layer_1.weight", "layer_2.weight"],
        "55b1404ccfd11e0b",
    )
    ((pack, trials, iteration),) = study.checkpoints()
    checkpoint = study.load_checkpoint(pack)
    assert checkpoint is not None
    assert (pack, len(trials), iteration, checkpoint.engine) == (HALF_DONE, 1, 12000, "fused")
    assert study.attempt() in {"6766bab60a6e4ea4bea9d96151f54179", "c528eb7253a04c279df6fe77c86ed04d"}
    assert study.provenances()[0]["packages"]["seeded-study"] == "0.1.0"
    assert study.notices == []


def test_a_record_of_a_search_is_read() -> None:
    """Suggestions and results of a search of the first version are read."""
    search = Store(STORES / "version-1", read_only=True).study("search")
    found_record = read_record(planned(search).spec, search)
    assert found_record is not None
    assert found_record.winners == (0,)
    assert len(search.done()) == 5
    assert len(search.read_weights()) == 0
    assert search.notices == []


def test_a_function_of_version_2_is_read() -> None:
    """Hyperparameters of every kind, exact metrics and curves, and the criterion are read."""
    study = Store(STORES / "version-2", read_only=True).study("function")
    table = study.read_results()
    results = table_results(table)
    assert [result.trial.id for result in results] == table["trial_id"].to_pylist()
    assert [result.trial.cell.id for result in results] == table["cell_id"].to_pylist()
    assert hyperparameters_of(table) == ["width", "rate", "schedule", "layers", "is_plain", "λ", "code", "metrics"]
    assert metrics_of(table) == ["accuracy", "loss"]
    result_of = {repr(result.trial.cell.value("width")): result for result in results if result.trial.seed == 0}
    assert sorted(result_of) == ["2", "2.5", "3.0", "4"]
    assert [result_of[width].trial.cell.value("schedule") for width in sorted(result_of)] == [None, "cosine", 3, None]
    assert result_of["2"].trial.cell.value("layers") == (1, 2.0)
    assert [str(result_of[width].outcome) for width in sorted(result_of)] == ["solved", "solved", "failed", "solved"]
    assert {result.criterion for result in results} == {"accuracy >= 0.9"}
    curves = {curve.trial_id: curve for curve in table_curves(study.read_curves())}
    assert sorted(curves) == sorted(study.done())
    curve = curves[result_of["2"].trial.id]
    best = curve.iteration.tolist().index(result_of["2"].best_iteration)
    assert {name: float(values[best]) for name, values in curve.metrics.items()} == result_of["2"].metrics
    assert study.notices == []


def digest(*arrays: np.ndarray[Any, Any]) -> str:
    return sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def planned(study: StudyStore) -> Plan:
    return make_plan(parse_spec(study.read_spec(), source="test"))


def run_again(root: Path, name: str) -> str:
    """Run a stored study from its last study file in this process, and return its output."""
    console = Console(file=io.StringIO(), width=1000)
    study = Study(name, Where(str(root), "off"), planned(Store(root).study(name)).spec)
    assert study.train(console, local=True) is Ending.FINISHED
    return console.file.getvalue()


@pytest.fixture
def resumed_from(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the iteration of each checkpoint passed to training."""
    iterations: list[int] = []

    class Seen(FusedEngine):
        def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
            iterations.extend([] if checkpoint is None else [checkpoint.iteration])
            return super().start(pack, device=device, checkpoint=checkpoint)

    use_engines(monkeypatch, {**ENGINES, "fused": Seen()})
    return iterations


def bytes_of(root: Path) -> dict[Path, bytes]:
    kinds = ("results", "curves", "weights", "quarantine")
    return {path: path.read_bytes() for kind in kinds for path in sorted(root.glob(f"*/{kind}/*"))}


def check_continues(local: Path, resumed_from: list[int]) -> None:
    """Run the study: only missing trials are trained, and no stored file changes.

    Half-done packs restart: the fused engine summed in another order when these stores were made.
    """
    before, grid = bytes_of(local), Store(local).study("grid")
    trials, done = {trial.id for trial in planned(grid).trials}, grid.done()
    run_again(local, "grid")
    new = [path for path in bytes_of(local) if path not in before and path.parent.name == "results"]
    assert sorted(trial for path in new for trial in grid.trials_of(path.stem)) == sorted(trials - done)
    assert resumed_from == []
    assert before.items() <= bytes_of(local).items()
    assert not list(local.glob("*/quarantine"))


@pytest.mark.slow
def test_a_study_of_any_version_continues(local: Path, resumed_from: list[int]) -> None:
    """A new run trains only the missing trials, and changes no earlier file."""
    check_continues(local, resumed_from)
    before = bytes_of(local)
    if (local / "search").is_dir():
        run_again(local, "search")
    assert bytes_of(local) == before


@pytest.mark.parametrize("other", VERSIONS)
def test_studies_of_two_versions_adopt_from_each_other(local: Path, version: int, other: int) -> None:
    """Trials, results, curves and weights are adopted in both directions, whatever the formats."""
    shutil.copytree(STORES / f"version-{other}" / "grid", local / "other")
    shutil.rmtree(local / "grid" / "results")
    grid, source = (Store(local).study(name) for name in ("grid", "other"))
    assert Store(local).adopt("grid", source.done()) == 6
    done = pa.array(sorted(source.done()))
    source_results = source.read_results()
    assert table_results(grid.read_results()) == table_results(
        source_results.filter(pc.is_in(source_results["trial_id"], done))
    )
    for read in (StudyStore.read_curves, StudyStore.read_weights):
        assert repr(read(grid).to_pylist()) == repr(read(source).to_pylist())  # has NaN
    assert list(grid.read_results()["cell_id"]) == [pa.scalar(c.id) for c in table_cells(grid.read_results())]
    assert not list(local.glob("*/quarantine"))


def test_a_report_does_not_depend_on_the_version_that_stored_its_results(tmp_path: Path) -> None:
    """Equal results stored in the first format and in today's give equal tables, byte by byte."""
    reports = []
    for store in ("before", "today"):
        local = shutil.copytree(STORES / "version-1", tmp_path / store / "studies")
        if store == "today":
            rewrite(Store(local).study("grid"))
        results = load_results("grid", local)
        data = cells_rows(results.summaries, results.plan.labels)
        reports.append((to_csv(data), to_parquet(data), results.headline))
    assert reports[0] == reports[1]


def rewrite(study: StudyStore) -> None:
    """Store a study's packs again in today's format."""
    for pack in sorted(study.pack_ids()):
        results, curves = study.read_pack(pack)
        weights = study.read_weights(results["trial_id"].to_pylist())
        study.write_pack(pack, table_results(results), table_curves(curves), table_weights(weights), {})
        assert version_of_file(Path(study.file_address(f"results/{pack}.parquet"))) == SCHEMA_VERSION


WRONG = {
    "no role": lambda field: field.remove_metadata(),
    "an unknown role": lambda field: field.with_metadata({"study.role": "guess", "study.kind": "whole"}),
    "an unknown kind": lambda field: field.with_metadata({"study.role": "hyperparameter", "study.kind": "guess"}),
    "another type than its kind": lambda field: field.with_metadata({"study.role": "metric", "study.kind": "number"}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_file_with_undeclared_columns_is_set_aside(tmp_path: Path, wrong: str) -> None:
    """A file whose additional column lacks a role, or has a kind that doesn't fit its type, is set aside."""
    local = shutil.copytree(STORES / "version-2", tmp_path / "studies")
    study = Store(local).study("function")
    file = next(path for path in sorted((local / "function" / "results").iterdir()) if "failed" not in path.name)
    table = pq.read_table(file)
    place = table.column_names.index("width")
    field = WRONG[wrong](pa.field("width", pa.int64(), metadata=table.field(place).metadata))
    changed = table.set_column(place, field, pc.cast(table["width"], pa.int64(), safe=False))
    file.write_bytes(parquet(changed, {}, "snappy"))
    before = len(study.pack_ids())
    assert len(study.read_results()) == 5
    assert len(study.pack_ids()) == before - 1
    (notice,) = study.notices
    assert "it has other columns than schema version 2, differing in width" in notice


# a version that doesn't exist yet


def with_note(results: pa.Table) -> pa.Table:
    return results.add_column(0, "note", pa.repeat("of version 1", len(results)))


def with_short_iterations(curves: pa.Table) -> pa.Table:
    return curves.cast(_short(curves.schema))


def _short(curves: pa.Schema) -> pa.Schema:
    return curves.set(1, pa.field("iteration", pa.list_(pa.int32())))


def with_more_time(members: Members) -> Members:
    header, arrays = members
    return header | {"training_s": header["training_s"] + 1000.0}, arrays


UPGRADES = {"results": with_note, "curves": with_short_iterations}
LAST = replace(FORMATS[SCHEMA_VERSION], upgrades=UPGRADES, upgrade_checkpoint=with_more_time)


def raise_version(monkeypatch: pytest.MonkeyPatch, last: Format = LAST) -> None:
    """Introduce a next version: results get a column, iterations a shorter type, and checkpoints another time."""
    note = pa.field("note", pa.string())
    now = FORMATS[SCHEMA_VERSION]
    schemas = {
        "results": EMPTY_RESULTS.schema.insert(0, note),
        "curves": _short(EMPTY_CURVES.schema),
        "weights": WEIGHTS_SCHEMA,
    }
    monkeypatch.setattr(formats, "FORMATS", {**FORMATS, SCHEMA_VERSION: last, NEXT: Format(schemas, more=now.more)})
    monkeypatch.setattr(formats, "SCHEMA_VERSION", NEXT)
    monkeypatch.setattr(columns, "_ID_FIELDS", columns._ID_FIELDS.insert(0, note))
    empty = {"EMPTY_RESULTS": schemas["results"].empty_table(), "EMPTY_CURVES": schemas["curves"].empty_table()}
    for name, table in empty.items():
        before = getattr(columns, name)
        for module in [m for m in sys.modules.values() if m.__name__.startswith("study.")]:
            if getattr(module, name, None) is before:
                monkeypatch.setattr(module, name, table)


def version_of_file(path: Path) -> int:
    return version_of(path, pq.read_metadata(path).metadata)


def test_the_next_version_reads_all_of_this_one(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old files get the new columns in every read, and stay where they are."""
    raise_version(monkeypatch)
    study = Store(root).study("grid")
    assert set(study.read_results()["note"].to_pylist()) == {"of version 1"}
    assert len(study.done()) == len(study.read_curves()) == len(study.read_weights()) == 6
    assert study.read_curves().schema.field("iteration").type == pa.list_(pa.int32())
    assert sum(study.has_pack(pack) for pack in study.pack_ids()) == 3
    assert {source["packages"]["seeded-study"] for source in study.provenances()} == {"0.1.0"}
    checkpoint = study.load_checkpoint(HALF_DONE)
    assert checkpoint is not None
    assert checkpoint.training_s > 1000.0
    assert study.notices == []
    assert study._folder.names("quarantine", "") == []


def test_the_next_version_trains_nothing_again(
    local: Path, version: int, resumed_from: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of both versions are one study: only missing trials are trained, and once."""
    raise_version(monkeypatch)
    check_continues(local, resumed_from)
    study = Store(local).study("grid")
    versions = {version_of_file(path) for path in (local / "grid" / "results").iterdir()}
    assert versions == {version, NEXT}
    rows = study.read_results()
    assert rows["note"].to_pylist().count("of version 1") == 6
    assert rows.num_rows == len(study.read_curves()) == 12


def test_the_next_version_adopts_from_this_one(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another study of the store adopts trials of both versions' files, and writes the new format."""
    raise_version(monkeypatch)
    grid, adopter = (Store(local).study(name) for name in ("grid", "again"))
    new = next(trial for trial in planned(grid).trials if trial.seed == 2)
    grid.write_pack("new", [Result(trial=new, outcome=Outcome.DIVERGED)], [], [], {"created_at": "never"})
    assert Store(local).adopt("again", grid.done()) == 7
    assert {version_of_file(path) for path in (local / "again" / "results").iterdir()} == {NEXT}
    adopted = grid.read_results().filter(pc.is_in(grid.read_results()["trial_id"], pa.array(sorted(grid.done()))))
    assert adopter.read_results().equals(adopted)
    for read in (StudyStore.read_curves, StudyStore.read_weights):
        assert repr(read(adopter).to_pylist()) == repr(read(grid).to_pylist())  # has NaN


def test_a_checkpoint_without_an_upgrade_restarts_its_pack(
    local: Path, version: int, resumed_from: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If training can't resume from an earlier version's checkpoint, its pack restarts, and a message says so."""
    raise_version(monkeypatch, replace(LAST, upgrade_checkpoint=None))
    grid = Store(local).study("grid")
    (pack,) = [
        pack_of_trials
        for pack_of_trials in map(Pack, zip(planned(grid).trials, strict=True))
        if pack_of_trials.id == HALF_DONE
    ]
    work = PackWork(str(local), "grid", grid.begin_attempt(), "fused", "cpu")
    notices = [event.text for event in work(pack) if isinstance(event, Notice)]
    assert len(notices) == 1
    assert f"{HALF_DONE}.npz was written by an earlier package (schema version {version})" in notices[0]
    assert "trained from the beginning" in notices[0]
    assert resumed_from == []
    assert grid.has_pack(HALF_DONE)
    assert not (local / "grid" / "quarantine").exists()


def broken(results: pa.Table) -> pa.Table:
    raise KeyError("no such column")


def unchanged(results: pa.Table) -> pa.Table:
    return results


@pytest.mark.parametrize("upgrade", [broken, unchanged])
def test_an_upgrade_that_fails_moves_nothing(root: str, monkeypatch: pytest.MonkeyPatch, upgrade: Any) -> None:
    """Earlier results aren't set aside and trained again because a later version has a bug."""
    raise_version(monkeypatch, replace(LAST, upgrades=UPGRADES | {"results": upgrade}))
    study = Store(root).study("grid")
    with pytest.raises(StoreError, match=r"results.*schema version [12].*The file is untouched"):
        study.done()
    assert len(study.pack_ids()) == 4
    assert study._folder.names("quarantine", "") == []


def test_an_earlier_file_with_other_columns_is_left_alone(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier file with unexpected columns is named and not moved, since the package itself wrote it."""
    file = next((local / "grid" / "results").iterdir())
    metadata = {key: text for key, text in pq.read_metadata(file).metadata.items() if key.startswith(b"study.")}
    pq.write_table(pq.read_table(file).drop_columns(["threshold"]).replace_schema_metadata(metadata), file)
    raise_version(monkeypatch)
    with pytest.raises(StoreError, match=rf"{file.name}.*left where it is.*differing in threshold"):
        Store(local).study("grid").done()
    assert file.exists()


def test_results_given_as_a_file_are_upgraded_too(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`study report FILE.parquet` upgrades a results file of an earlier version."""
    raise_version(monkeypatch)
    file = next(iter(sorted((local / "grid" / "results").iterdir())))
    assert set(read_source(file).table["note"].to_pylist()) == {"of version 1"}


def test_a_search_of_version_1_is_read() -> None:
    """A record of the first version is upgraded to today's; one of a newer version asks to upgrade the package."""
    study = Store(STORES / "version-1", read_only=True).study("search")
    before = json.loads((STORES / "version-1" / "search" / record.NAME).read_text())
    restored = read_record(planned(study).spec, study)
    assert restored is not None
    assert before["version"] == 1 < restored.version == record.VERSION
    assert list(restored.winners or ()) == before["winners"]
    assert [candidate.params for candidate in restored.candidates] == [
        candidate["params"] for candidate in before["candidates"]
    ]
    newer = json.dumps(before | {"version": record.VERSION + 1}).encode()
    with pytest.raises(InputError, match="upgrade the package"):
        record.from_json(newer, record.NAME)

"""Export and import of a study as one file: all of it is restored, and existing data aren't lost."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import study as api
from study.errors import BusyError, ConflictError, InputError
from study.results.import_export import import_export
from study.results.load import load_results
from study.store import Store, StudyStore, write_export
from study.store.files import parquet
from tests.study.lab import STUDY
from tests.study.source.builders import deactivate

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

STORES = Path(__file__).parents[1] / "stores"
LITTLE = {
    "study": "little",
    "question": "Does it learn?",
    "task": {"name": "simple"},
    "models": ["NMU"],
    "grid": {"hidden_size": [2, 3]},
    "fixed": {"batch_size": 16},
    "protocol": {"iterations": 40, "evaluate_every": 10, "evaluation_rows": 50},
}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., StudyStore]:
    """Return a function that trains a study with a list of seeds into a store."""

    def train(store: str, seeds: object, **changes: object) -> StudyStore:
        spec = LITTLE | {"seeds": seeds} | changes
        api.load(spec, store=tmp_path / store, tracking_uri="off").run(local=True, engine="torch")
        return Store(tmp_path / store).study("little")

    return train


def files(folder: StudyStore) -> dict[str, bytes | None]:
    return {key: folder.read_file(key) for key in folder.sizes() if key not in ("lock", "attempt")}


def export(folder: StudyStore, file: Path) -> Path:
    return write_export(Store(folder.where.rpartition("/")[0], read_only=True).study(folder.name), file).file


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_study_that_the_store_lacks_becomes_one(finished_study: Path, tmp_path: Path, request, kind: str) -> None:
    """All files are equal byte by byte; show and report work there, and a run has nothing to do."""
    source = Store(finished_study / "studies", read_only=True).study("little")
    file = write_export(source, tmp_path / "little.zip").file
    root = str(tmp_path / "there") if kind == "folder" else f"{request.getfixturevalue('s3').bucket()}/studies"
    done = import_export(file, root)
    assert (done.study, done.is_new, done.new, done.there) == ("little", True, 12, 0)
    assert [note for note in done.notices if "aren't imported" not in note] == []
    imported = Store(root).study("little")
    left_out = ("judged.parquet", "report/", "report.json", "verified.json")
    assert files(imported) == {key: data for key, data in files(source).items() if not key.startswith(left_out)}
    results = load_results("little", root)
    assert results.headline == load_results("little", finished_study / "studies").headline
    before = imported.pack_ids()
    api.load(finished_study / "little.yaml", store=root, tracking_uri="off").run(local=True)
    assert imported.pack_ids() == before


def test_a_repeated_import_changes_nothing(finished_study: Path, tmp_path: Path) -> None:
    """A repeated import says that all trials are there, and changes no byte."""
    file = export(Store(finished_study / "studies").study("little"), tmp_path / "little.zip")
    import_export(file, tmp_path / "there")
    before = files(Store(tmp_path / "there").study("little"))
    repeated = import_export(file, tmp_path / "there")
    assert (repeated.is_new, repeated.new, repeated.there, repeated.notices) == (False, 0, 12, ())
    assert files(Store(tmp_path / "there").study("little")) == before


def test_seeds_of_two_machines_are_merged(make, tmp_path: Path) -> None:
    """Missing trials are added, the store's study file stays, and a file that plans them all trains nothing."""
    target, source = make("here", [0, 1, 2]), make("there", [2, 3])
    before = files(target)
    done = import_export(export(source, tmp_path / "little.zip"), tmp_path / "here")
    assert (done.is_new, done.new, done.there) == (False, 2, 2)
    assert [("spec.yaml stays as it is" in note, "2 trials" in note) for note in done.notices] == [
        (True, False),
        (False, True),
    ]
    after = files(target)
    assert {key: after[key] for key in before} == before
    assert load_results("little", tmp_path / "here").counts["trials"] == 6
    count = len(target.pack_ids())
    make("here", [0, 1, 2, 3])
    assert len(target.pack_ids()) == count
    assert load_results("little", tmp_path / "here").counts["done"] == 8
    alone = make("alone", [0, 1, 2, 3])
    same = ["trial_id", "outcome", "validation_mse", "test_mse", "best_iteration"]
    assert target.read_results().select(same).equals(alone.read_results().select(same))


def test_another_study_of_the_name_is_refused(make, tmp_path: Path) -> None:
    """A study without a cell in common with the store's is a different one: nothing is copied."""
    target, source = make("here", 2), make("there", 2, fixed={"batch_size": 17})
    before = files(target)
    with pytest.raises(InputError, match="another study 'little', which asks for none of the 2 cells"):
        import_export(export(source, tmp_path / "little.zip"), tmp_path / "here")
    assert files(target) == before


def test_contradicting_results_are_refused(make, tmp_path: Path) -> None:
    """If both stores have a trial with different results of one engine, nothing is copied."""
    target, source = make("here", 2), make("there", 3)
    (pack, *_) = sorted(source.pack_ids())
    table, provenance = source.read_results(), {"made": "up"}
    wrong = table.set_column(
        table.column_names.index("test_mse"), table.schema.field("test_mse"), [[0.125] * len(table)]
    )
    source._write_tables(pack, wrong, source.read_curves(), source.read_weights(), provenance)
    before = files(target)
    with pytest.raises(ConflictError, match="two results that differ in test_mse"):
        import_export(export(source, tmp_path / "little.zip"), tmp_path / "here")
    assert files(target) == before


def test_a_running_study_is_left_alone(make, tmp_path: Path) -> None:
    """Nothing is merged into a running study, but it can be exported."""
    study = make("here", 2)
    with study.lock():
        file = export(study, tmp_path / "little.zip")
        with pytest.raises(BusyError):
            import_export(file, tmp_path / "here")


def test_an_interrupted_import_is_completed(
    finished_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An incomplete import isn't a study; importing again completes it."""
    source = Store(finished_study / "studies").study("little")
    file = export(source, tmp_path / "little.zip")

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(StudyStore, "write_spec", interrupt)
        with pytest.raises(KeyboardInterrupt):
            import_export(file, tmp_path / "there")
    assert Store(tmp_path / "there").studies() == []
    done = import_export(file, tmp_path / "there")
    assert (done.is_new, done.new, done.there) == (True, 0, 12)
    assert Store(tmp_path / "there").studies() == ["little"]


@pytest.mark.parametrize(("version", "name"), [(1, "grid"), (1, "search"), (2, "grid")])
def test_a_study_of_any_version_is_moved(tmp_path: Path, version: int, name: str) -> None:
    """An earlier version's data stay equal byte by byte, merge with today's, and are readable."""
    root = shutil.copytree(STORES / f"version-{version}", tmp_path / "old")
    old = Store(root).study(name)
    file = export(old, tmp_path / "old.zip")
    assert import_export(file, tmp_path / "new").new == len(old.done())
    new = Store(tmp_path / "new").study(name)
    came = files(new)
    assert came == {key: data for key, data in files(old).items() if key in came}
    assert set(came) >= {key for key in old.sizes() if key.startswith(("results/", "curves/", "spec.yaml"))}
    assert load_results(name, tmp_path / "new").table.equals(load_results(name, root).table)
    assert (import_export(file, root).new, old.notices) == (0, [])


@pytest.mark.parametrize(("mine", "other"), [(1, 2), (2, 1)])
def test_versions_are_merged(tmp_path: Path, mine: int, other: int) -> None:
    """Missing trials of another version are added with their curves and weights."""
    roots = {version: shutil.copytree(STORES / f"version-{version}", tmp_path / str(version)) for version in (1, 2)}
    target, source = (Store(roots[version]).study("grid") for version in (mine, other))
    all_trials = target.done()
    lost = next(pack for pack in sorted(target.pack_ids()) if target.trials_of(pack))
    for kind in ("results", "curves", "weights"):
        target._folder.remove(f"{kind}/{lost}.parquet")
    count = len(all_trials - target.done())
    assert count > 0
    assert import_export(export(source, tmp_path / "grid.zip"), roots[mine]).new == count
    assert target.done() == all_trials
    assert len(target.read_curves()) == len(target.read_weights()) == len(all_trials)


def test_own_code_comes_along_and_trains_on(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-done study of a user's code continues elsewhere: its stored code is unpacked beside its file."""
    (lab / "mine.yaml").write_text(yaml.safe_dump(STUDY))
    half = api.load(lab / "mine.yaml", ["seeds=2"], store=tmp_path / "here", tracking_uri="off")
    file = half.run(local=True).export(tmp_path / "mine.zip").file
    shutil.rmtree(lab)
    deactivate()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another-cache"))
    elsewhere = tmp_path / "elsewhere"
    done = api.import_study(file, store=elsewhere / "studies")
    assert done.new == 4
    imported = Store(elsewhere / "studies").study("mine")
    (code,) = [key for key in imported.sizes() if key.endswith(".zip")]
    assert str(elsewhere / "studies" / "mine" / code) in done.notices[0]
    shutil.unpack_archive(elsewhere / "studies" / "mine" / code, elsewhere)
    (elsewhere / "mine.yaml").write_text(imported.read_spec())
    before = imported.done()
    study = api.load(elsewhere / "mine.yaml", ["seeds=3"], store=elsewhere / "studies", tracking_uri="off")
    study.run(local=True)
    assert before < imported.done()
    assert len(imported.done()) == len(imported.read_results()) == 6


def changed(file: Path, to: Path, key: str, data: bytes) -> Path:
    """Rewrite an export with other content of one file, and with its digest."""
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content[f"little/{key}"] = data
    listed = json.loads(content["little/export.json"])
    listed["files"][key] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    content["little/export.json"] = json.dumps(listed).encode()
    with zipfile.ZipFile(to, "w") as archive:
        for name, of_name in content.items():
            archive.writestr(name, of_name)
    return to


def test_imports_are_checked_before_any_write(finished_study: Path, tmp_path: Path) -> None:
    """Unusable study files or results are refused, whatever their digests, and no store is made."""
    source = Store(finished_study / "studies").study("little")
    file = export(source, tmp_path / "little.zip")
    pack = sorted(source.pack_ids())[0]
    torn = (source.read_file(f"results/{pack}.parquet") or b"")[:-20]
    for key, data, message in (
        ("spec.yaml", b"study: little\ntask: [", "its study file can't be used; nothing was imported"),
        (
            "spec.yaml",
            source.read_spec().replace("little", "large").encode(),
            "is for 'large', but must be for 'little'",
        ),
        (f"results/{pack}.parquet", torn, "has files that can't be used; nothing was imported"),
        (f"weights/{pack}.parquet", b"PAR1", "has files that can't be used; nothing was imported"),
    ):
        with pytest.raises(InputError, match=message):
            import_export(changed(file, tmp_path / "changed.zip", key, data), tmp_path / "there")
        assert not (tmp_path / "there").exists()


def test_reports_and_certificates_are_made_again(finished_study: Path, tmp_path: Path) -> None:
    """An exported page and certificate are dropped, and the import names the commands that make them again."""
    file = export(Store(finished_study / "studies").study("little"), tmp_path / "little.zip")
    for key in ("report/report.html", "report/.report.json", "report.json", "verified.json"):
        file = changed(file, tmp_path / f"with-{key.replace('/', '-')}.zip", key, b"<script>alert(1)</script>")
    done = import_export(file, tmp_path / "there")
    assert done.notices == (
        "reports and certificates aren't imported: `study report little` and `study verify little` make them again",
    )
    imported = Store(tmp_path / "there").study("little")
    assert not [key for key in imported.sizes() if key.startswith(("report", "verified"))]
    load_results("little", tmp_path / "there")


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        ("engine", 'fused"""\nimport os\nos.abort()\n"""', "engine must be the name of an engine"),
        ("device", "cpu\x1b]0;title\x07", "device must be the name of a device"),
        ("outcome", "won", "outcome must be one of"),
        ("criterion", "\x1b[2J", "criterion must have"),
        ("model", "NAU", "doesn't match its task, model and hyperparameters"),
        ("task", "arithmetic", "doesn't match its task, model and hyperparameters"),
        ("seed", 100, "doesn't match its cell and seed 100"),
        ("cell_id", "0123456789abcdef", "doesn't match its task, model and hyperparameters"),
        ("trial_id", "0123456789abcdef", "doesn't match its cell and seed"),
    ],
)
def test_forged_rows_are_refused(finished_study: Path, tmp_path: Path, column: str, text: Any, reason: str) -> None:
    """Results with a text that no engine writes, or whose content contradicts their ids, are refused."""
    source = Store(finished_study / "studies").study("little")
    pack = sorted(source.pack_ids())[0]
    table, _ = source.read_pack(pack)
    field = table.field(column)
    forged = table.set_column(
        table.column_names.index(column), field, pa.array([text, *table[column].to_pylist()[1:]], field.type)
    )
    data = parquet(forged, source.provenances()[0], compression="snappy")
    file = changed(export(source, tmp_path / "little.zip"), tmp_path / "forged.zip", f"results/{pack}.parquet", data)
    with pytest.raises(InputError, match="nothing was imported") as caught:
        import_export(file, tmp_path / "there")
    assert reason in str(caught.value)
    assert not (tmp_path / "there").exists()


def test_a_study_file_without_limits_is_refused_at_once(finished_study: Path, tmp_path: Path) -> None:
    """A study file with 10^9 seeds has the same limits as any other."""
    source = Store(finished_study / "studies").study("little")
    spec = yaml.safe_load(source.read_spec()) | {"seeds": 10**9}
    file = changed(
        export(source, tmp_path / "little.zip"), tmp_path / "h.zip", "spec.yaml", yaml.safe_dump(spec).encode()
    )
    with pytest.raises(InputError, match="10,000,000 is the most that can be planned"):
        import_export(file, tmp_path / "there")
    assert not (tmp_path / "there").exists()

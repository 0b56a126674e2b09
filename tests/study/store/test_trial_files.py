"""Files of trials in a store of either kind: keeping, uploading, fetching, copying and removal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from study.errors import BusyError, InputError
from study.records import Keep
from study.store import Store, StudyStore
from study.store.export import unpack_export, write_export
from study.store.trial_files import MOST_FILES, TrialFiles

TRIAL, OTHER = "0c0917e1597f2da3", "41e16e8bff6fe854"


@pytest.fixture(params=["folder", "s3"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> StudyStore:
    """Return a study in a store of either kind: a folder, or S3."""
    address = str(tmp_path / "root") if request.param == "folder" else request.getfixturevalue("s3").bucket()
    study = Store(address).study("demo")
    study.write_spec("name: demo\n")
    return study


def folders(study: StudyStore, tmp_path: Path, keep: Keep | None = None) -> TrialFiles:
    return study.trial_files(tmp_path / "scratch", keep or Keep())


def write(files: TrialFiles, sizes: dict[str, int], trial_id: str = TRIAL) -> None:
    for name, size in sizes.items():
        path = files.folder(trial_id) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)


def end_trial(files: TrialFiles, study: StudyStore, error: str = "") -> tuple[set[str], tuple[str, ...]]:
    """End the trial, and return the files in the store and the messages."""
    notices = tuple(files.end(TRIAL, error))
    files.upload([TRIAL])
    return set(study.file_sizes(TRIAL)), notices


def test_files_of_a_trial_are_stored(study, tmp_path):
    files = folders(study, tmp_path)
    write(files, {"log.txt": 3, "plots/loss.png": 5, "plots/ö (1).txt": 1})
    assert end_trial(files, study) == ({"log.txt", "plots/loss.png", "plots/ö (1).txt"}, ())
    assert study.trials_with_files() == [TRIAL]
    assert study.read_file(study.trial_file(TRIAL, "plots/loss.png")) == b"xxxxx"


def test_a_failure_has_its_traceback(study, tmp_path):
    """The traceback is kept with the log, whatever else is kept."""
    files = folders(study, tmp_path, Keep(()))
    write(files, {"log.txt": 3, "a.txt": 3})
    assert end_trial(files, study, "Traceback\n\ud800oops") == ({"log.txt", "error.txt"}, ())
    assert study.read_file(study.trial_file(TRIAL, "error.txt")) == b"Traceback\n\\ud800oops"


def test_a_trial_without_files_has_no_folder(study, tmp_path):
    files = folders(study, tmp_path)
    files.begin(TRIAL)
    assert end_trial(files, study) == (set(), ())
    assert study.trials_with_files() == []


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (("*.png",), {"log.txt", "a.png", "plots/b.png"}),
        (("plots/*",), {"log.txt", "plots/b.png", "plots/c.txt"}),
        (("c.txt", "a.*"), {"log.txt", "a.png", "plots/c.txt"}),
    ],
)
def test_patterns_choose_files(study, tmp_path, patterns, expected):
    """Unmatched files are dropped silently; a pattern without a slash matches in any folder."""
    files = folders(study, tmp_path, Keep(patterns))
    write(files, {"log.txt": 1, "a.png": 1, "w.bin": 1, "plots/b.png": 1, "plots/c.txt": 1})
    assert end_trial(files, study) == (expected, ())


def test_too_large_files_are_left_out_with_a_notice(study, tmp_path):
    """Small files come first, so that a large checkpoint doesn't displace pictures."""
    files = folders(study, tmp_path, Keep(size_mb=0.01))
    write(files, {"log.txt": 20_000, "model.pt": 9_000, "a.txt": 900, "b.txt": 9_200})
    names, (notice,) = end_trial(files, study)
    assert names == {"log.txt", "a.txt", "model.pt"}
    assert notice.startswith(
        f"trial {TRIAL}: not kept: 1 file (9.2 kB in all), such as b.txt; a trial keeps at most 0.01 MB"
    )


def test_only_part_of_very_many_files_is_kept_with_a_notice(tmp_path):
    study = Store(tmp_path / "root").study("demo")
    files = folders(study, tmp_path)
    write(files, {f"{number}.txt": 1 for number in range(MOST_FILES + 5)})
    (notice,) = files.end(TRIAL)
    assert len(study.file_sizes(TRIAL)) == MOST_FILES
    assert "5 files" in notice


def test_a_restarted_trial_has_an_empty_folder(study, tmp_path):
    """Files of a killed attempt are removed."""
    before = folders(study, tmp_path / "killed")
    write(before, {"results.json": 3, "log.txt": 1})
    before.upload([TRIAL])
    files = folders(study, tmp_path / "again")
    files.begin(TRIAL)
    assert not files.folder(TRIAL).exists()
    write(files, {"log.txt": 2})
    assert end_trial(files, study) == ({"log.txt"}, ())


def test_a_resumed_trial_keeps_its_folder(study, tmp_path):
    before = folders(study, tmp_path / "killed")
    write(before, {"plots/a.txt": 3, "log.txt": 1})
    before.upload([TRIAL])
    files = folders(study, tmp_path / "again")
    files.fetch([TRIAL])
    assert (files.folder(TRIAL) / "plots" / "a.txt").read_bytes() == b"xxx"
    (files.folder(TRIAL) / "log.txt").write_bytes(b"xmore")
    assert end_trial(files, study) == ({"plots/a.txt", "log.txt"}, ())
    assert study.read_file(study.trial_file(TRIAL, "log.txt")) == b"xmore"


def test_only_changed_files_are_uploaded(s3, tmp_path, monkeypatch):
    study = Store(s3.bucket()).study("demo")
    files = folders(study, tmp_path)
    write(files, {"a.txt": 3, "b.txt": 3})
    files.upload([TRIAL])
    written: list[str] = []
    store = files.store
    put = store.write
    monkeypatch.setattr(type(store), "write", lambda self, key, data: (written.append(key), put(key, data))[1])
    write(files, {"b.txt": 4})
    files.upload([TRIAL])
    assert written == [f"files/{TRIAL}/b.txt"]


def test_links_lead_nowhere(tmp_path):
    """A link in a trial's folder is never listed, copied or exported, whatever its target."""
    study = Store(tmp_path / "root").study("demo")
    study.write_spec("name: demo\n")
    files = folders(study, tmp_path)
    (tmp_path / "secret").write_text("secret")
    write(files, {"empty.txt": 0, "a.txt": 1})
    (files.folder(TRIAL) / "link.txt").symlink_to(tmp_path / "secret")
    (files.folder(TRIAL) / "up").symlink_to(tmp_path)
    os.mkfifo(files.folder(TRIAL) / "pipe")
    assert set(study.file_sizes(TRIAL)) == {"empty.txt", "a.txt"}
    export = write_export(study, tmp_path / "demo.zip")
    assert {key for key in export.files if key.startswith("files/")} == {
        f"files/{TRIAL}/a.txt", f"files/{TRIAL}/empty.txt"
    }  # fmt: skip


@pytest.mark.parametrize("name", ["../spec.yaml", "/etc/passwd", "a/../../b", "", "a\nb", "a\\b"])
def test_no_name_leads_out_of_a_trials_folder(study, name):
    with pytest.raises(InputError, match="a path below the trial's folder"):
        study.trial_file(TRIAL, name)


def test_files_go_with_an_export(study, tmp_path):
    """An import has equal bytes; a ZIP file without trial files is readable by earlier versions."""
    files = folders(study, tmp_path)
    assert b'"format": 1' in _list_of(write_export(study, tmp_path / "before.zip").file)
    write(files, {"plots/ü.txt": 3, "log.txt": 1})
    files.upload([TRIAL])
    exported = write_export(study, tmp_path / "demo.zip")
    assert b'"format": 2' in _list_of(exported.file)
    unpack_export(exported.file, tmp_path / "copy")
    copy = Store(tmp_path / "copy", read_only=True).study("demo")
    assert copy.file_sizes(TRIAL) == {"log.txt": 1, "plots/ü.txt": 3}
    target = Store(tmp_path / "target").study("demo")
    target.copy_files(copy, [TRIAL, OTHER])
    assert target.read_file(target.trial_file(TRIAL, "plots/ü.txt")) == b"xxx"


def test_a_trials_own_files_arent_replaced_by_a_copy(study, tmp_path):
    write(folders(study, tmp_path), {"log.txt": 1})
    folders(study, tmp_path).upload([TRIAL])
    target = Store(tmp_path / "target").study("demo")
    write(target.trial_files(tmp_path, Keep()), {"log.txt": 2})
    target.copy_files(study, [TRIAL])
    assert target.file_sizes(TRIAL) == {"log.txt": 2}


def test_a_driver_that_was_replaced_copies_no_files(study, tmp_path):
    write(folders(study, tmp_path), {"log.txt": 1})
    folders(study, tmp_path).upload([TRIAL])
    target = Store(tmp_path / "target").study("demo")
    replaced = target.of_attempt(target.begin_attempt())
    target.begin_attempt()
    with pytest.raises(BusyError, match="taken over"):
        replaced.copy_files(study, [TRIAL])
    assert not target.trials_with_files()


def test_trial_files_are_deleted_with_the_study(study, tmp_path):
    files = folders(study, tmp_path)
    write(files, {"plots/a.txt": 3})
    files.upload([TRIAL])
    study.delete()
    assert not study.sizes()


def _list_of(file: Path) -> bytes:
    import zipfile

    with zipfile.ZipFile(file) as archive:
        return archive.read("demo/export.json")

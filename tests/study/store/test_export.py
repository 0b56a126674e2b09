"""A study in a ZIP file: complete, deterministic, and refused if any content was changed."""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from study.errors import InputError, StoreError
from study.store import Export, Store, StudyStore, unpack_export, write_export
from tests.study.store.test_store import OTHER_PACK, PACK, checkpoint, fill, put, solved

LIST = "demo/export.json"
Members = dict[str, bytes]


@pytest.fixture(params=["folder", "s3"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> StudyStore:
    """Return a study of two packs, with files of all kinds, in a store of either kind."""
    root = str(tmp_path / "root") if request.param == "folder" else f"{request.getfixturevalue('s3').bucket()}/prefix"
    return filled(root)


@pytest.fixture
def local(tmp_path: Path) -> StudyStore:
    """Return a study of two packs, with files of all kinds, in a local folder."""
    return filled(str(tmp_path / "root"))


def filled(root: str) -> StudyStore:
    study = Store(root).study("demo")
    study.write_spec("study: demo\n")
    fill(study, PACK, [solved(1), solved(2)])
    fill(study, OTHER_PACK, [solved(3)])
    study.save_checkpoint(checkpoint("00cc"))
    study.begin_attempt()
    for key in ("verified.json", "search.json", "report/report.html", "report/.report.json", "code/00ff.zip"):
        put(study, key, key.encode())
    for key in ("quarantine/results-x.parquet", "optuna.db", "mine.txt", "judged.parquet", "report/a/b.txt"):
        put(study, key, b"no part of the study")
    return study


@pytest.fixture
def exported(local: StudyStore, tmp_path: Path) -> Path:
    """Return the file of an exported study."""
    return export(local, tmp_path / "demo.zip").file


def export(study: StudyStore, file: Path) -> Export:
    return write_export(Store(study.where.rpartition("/")[0], read_only=True).study("demo"), file)


def members(file: Path) -> Members:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(file: Path, content: Members) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return file


def test_a_study_comes_back_byte_for_byte(study: StudyStore, tmp_path: Path) -> None:
    """The file has exactly the study's relevant files, each as stored."""
    written = export(study, tmp_path / "demo.zip")
    read = unpack_export(tmp_path / "demo.zip", tmp_path / "there")
    packs = [f"{kind}/{pack}.parquet" for kind in ("curves", "results", "weights") for pack in (PACK, OTHER_PACK)]
    files = ["code/00ff.zip", "report/.report.json", "report/report.html", "search.json", "spec.yaml", "verified.json"]
    assert sorted(read.files) == sorted([*packs, *files])
    assert (read.study, read.trials, read.files) == ("demo", 3, written.files) == (written.study, 3, read.files)
    for key in read.files:
        assert (tmp_path / "there" / "demo" / key).read_bytes() == study.read_file(key)
    imported = Store(tmp_path / "there", read_only=True).study("demo")
    assert imported.read_results().equals(study.read_results())


def test_the_same_study_makes_the_same_bytes(local: StudyStore, tmp_path: Path) -> None:
    """Two exports of a study are equal byte by byte."""
    first, second = (export(local, tmp_path / name).file.read_bytes() for name in ("1.zip", "2.zip"))
    assert first == second


def test_nothing_is_overwritten(local: StudyStore, tmp_path: Path) -> None:
    """Existing files and links stay; a missing folder isn't created."""
    (tmp_path / "demo.zip").write_text("mine")
    (tmp_path / "link.zip").symlink_to(tmp_path / "nothing")
    for name in ("demo.zip", "link.zip"):
        with pytest.raises(InputError, match="nothing is overwritten"):
            export(local, tmp_path / name)
    with pytest.raises(InputError, match="no folder"):
        export(local, tmp_path / "no" / "demo.zip")
    assert (tmp_path / "demo.zip").read_text() == "mine"


def test_a_failed_export_leaves_no_file(local: StudyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed export leaves no file, not even a partial one."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreError, match="free some space"):
        export(local, tmp_path / "demo.zip")
    assert sorted(tmp_path.iterdir()) == before


def test_a_pack_that_is_being_stored_is_left_out(local: StudyStore, tmp_path: Path) -> None:
    """While a study runs, a pack without results is skipped, and the others are exported."""
    local._folder.remove(f"results/{PACK}.parquet")
    files = export(local, tmp_path / "demo.zip").files
    assert not [key for key in files if PACK in key]
    assert f"results/{OTHER_PACK}.parquet" in files


def test_a_torn_file_is_left_out_with_a_notice(local: StudyStore, tmp_path: Path) -> None:
    """A pack with torn results is skipped, and so is a torn weights file alone; both are named."""
    for key in (f"results/{PACK}.parquet", f"weights/{OTHER_PACK}.parquet"):
        put(local, key, (local.read_file(key) or b"")[:-9])
    written = export(local, tmp_path / "demo.zip")
    packs = [key for key in written.files if key.startswith(("results/", "weights/", "curves/"))]
    assert (packs, written.trials) == ([f"curves/{OTHER_PACK}.parquet", f"results/{OTHER_PACK}.parquet"], 1)
    assert [PACK in notice or OTHER_PACK in notice for notice in written.notices] == [True, True]
    assert unpack_export(tmp_path / "demo.zip", tmp_path / "there").files == written.files


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_refused(exported: Path, tmp_path: Path, share: float) -> None:
    """A file truncated anywhere isn't unpacked."""
    data = exported.read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError, match="truncated, damaged or of another type"):
        unpack_export(tmp_path / "cut.zip", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_changed_byte_is_noticed(exported: Path, tmp_path: Path) -> None:
    """A changed byte anywhere in the content is an error."""
    data = exported.read_bytes()
    for key in ("spec.yaml", f"results/{PACK}.parquet", "export.json"):
        place = data.index(members(exported)[f"demo/{key}"]) + 3
        changed = tmp_path / "changed.zip"
        changed.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(InputError):
            unpack_export(changed, tmp_path / f"there-{key.replace('/', '-')}")


def listing(content: Members, **changes: object) -> Members:
    return content | {LIST: json.dumps(json.loads(content[LIST]) | changes).encode()}


HOSTILE: dict[str, tuple[Callable[[Members], Members], str]] = {
    "a file outside": (lambda m: m | {"../outside.txt": b"!"}, "it contains '../outside.txt'"),
    "an absolute path": (lambda m: m | {"/tmp/outside.txt": b"!"}, "it contains '/tmp/outside.txt'"),
    "a way up": (lambda m: m | {"demo/report/../../outside.txt": b"!"}, "it contains 'demo/report/../../outside.txt'"),
    "a backslash": (lambda m: m | {"demo/report/..\\outside.txt": b"!"}, "isn't an unchanged export of a study"),
    "another folder": (lambda m: m | {"other/spec.yaml": b"!"}, "it contains 'other/spec.yaml'"),
    "another file": (lambda m: m | {"demo/attempt": b"!"}, "it contains 'demo/attempt'"),
    "more than is listed": (lambda m: m | {"demo/report/more.html": b"!"}, "report/more.html is missing, or"),
    "less than is listed": (lambda m: {k: v for k, v in m.items() if k != "demo/verified.json"}, "verified.json"),
    "another content": (lambda m: m | {"demo/spec.yaml": b"study: DEMO\n"}, "spec.yaml has another digest"),
    "no list": (lambda m: {k: v for k, v in m.items() if k != LIST}, "must have one file export.json"),
    "something else": (lambda m: {"a.txt": b"!", "b/c.txt": b"!"}, "must have one file export.json"),
    "a newer format": (lambda m: listing(m, format=99), "upgrade the package"),
    "a newer schema": (lambda m: listing(m, schema_version=99), "upgrade the package"),
    "another study's list": (lambda m: listing(m, study="other"), "names another study"),
    "a list of nothing": (lambda m: m | {LIST: b"[]"}, "can't be read"),
    "a list that is none": (lambda m: m | {LIST: b"\xff"}, "can't be read"),
}


@pytest.mark.parametrize("change", HOSTILE)
def test_modified_exports_are_refused(exported: Path, tmp_path: Path, change: str) -> None:
    """Additional, missing or other content is an error, and nothing is written outside."""
    make, message = HOSTILE[change]
    file = zipped(tmp_path / "hostile.zip", make(members(exported)))
    before = {path for path in tmp_path.rglob("*") if "there" not in path.parts}
    with pytest.raises(InputError) as caught:
        unpack_export(file, tmp_path / "there")
    assert message in str(caught.value)
    assert {path for path in tmp_path.rglob("*") if "there" not in path.parts} == before
    assert not Path("/tmp/outside.txt").exists()


def test_links_and_compressed_members_are_refused(exported: Path, tmp_path: Path) -> None:
    """A link, a compressed member, and two members of one name are refused."""
    content = members(exported)
    link = zipfile.ZipInfo("demo/report/link.html")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    zeros = zipfile.ZipInfo("demo/report/zeros.html")
    zeros.compress_type = zipfile.ZIP_DEFLATED
    for name, info, data in (("link", link, b"/etc/passwd"), ("zeros", zeros, bytes(10**7))):
        zipped(tmp_path / f"{name}.zip", content)
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "a") as archive:
            archive.writestr(info, data)
        with pytest.raises(InputError, match="is compressed, or isn't a plain file"):
            unpack_export(tmp_path / f"{name}.zip", tmp_path / "there")
    zipped(tmp_path / "twice.zip", content)
    with zipfile.ZipFile(tmp_path / "twice.zip", "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("demo/spec.yaml", b"study: demo\n")
    with pytest.raises(InputError, match="overlap"):
        unpack_export(tmp_path / "twice.zip", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_sizes_beyond_the_file_are_refused(exported: Path, tmp_path: Path) -> None:
    """Sizes that exceed the ZIP file are refused before reading."""
    data = bytearray(exported.read_bytes())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        start = archive.start_dir
    data[start + 20 : start + 28] = (2**31).to_bytes(4, "little") * 2  # both sizes of the first member
    (tmp_path / "large.zip").write_bytes(bytes(data))
    with pytest.raises(InputError, match="overlap"):
        unpack_export(tmp_path / "large.zip", tmp_path / "there")

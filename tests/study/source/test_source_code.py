"""The files of an import string's code, and their digest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from study.errors import InputError
from study.source import ImportString, parse_import_string, read_source_code
from study.source.archive import SIZE_LIMIT_BYTES
from tests.study.source.builders import installed, marked, source_files, write

TRAIN = ImportString("mylab.spirals", "train")


def read(folder: Path, *include: str):
    return read_source_code([TRAIN], folder, include)


def test_a_package_is_copied_whole(tmp_path):
    """All Python files of a package are copied, but no caches, hidden folders, environments and other files."""
    write(
        tmp_path, mylab__="", mylab__spirals=marked("1"), mylab__deep__er__a="",
        mylab__cache__b="", mylab__hidden="", mylab__env__lib__c="", other=""
    )  # fmt: skip
    (tmp_path / "mylab/hidden.py").rename(tmp_path / "mylab/.hidden.py")
    (tmp_path / "mylab/cache").rename(tmp_path / "mylab/__pycache__")
    (tmp_path / "mylab/env/pyvenv.cfg").touch()
    (tmp_path / "mylab/.git").mkdir()
    (tmp_path / "mylab/.git/d.py").touch()
    (tmp_path / "mylab/data.csv").touch()
    assert sorted(read(tmp_path).files) == ["mylab/__init__.py", "mylab/deep/er/a.py", "mylab/spirals.py"]


def test_a_module_is_copied_alone(tmp_path):
    """A module outside packages is one file, whatever lies beside it."""
    write(tmp_path, spirals=marked("1"), other="")
    assert source_files(tmp_path, "spirals:train") == ["spirals.py"]


def test_a_folder_needs_no_init(tmp_path):
    """A folder without an `__init__.py` is a package, as in Python."""
    write(tmp_path, mylab__spirals=marked("1"))
    assert source_files(tmp_path, "mylab.spirals:train") == ["mylab/spirals.py"]


def test_imports_from_the_same_folder_are_copied(tmp_path):
    """Imports are followed through the folder's modules: in functions, by name in calls, under conditions."""
    imports = "import first\nif False:\n    from second.a import b\n"
    inside = "def f():\n    import third, os.path\n    __import__('importlib').import_module('fourth.a')\n"
    write(
        tmp_path, mylab__spirals=marked("1", imports), first=inside, second__a="", third="import fifth", fourth__a="",
        fifth="import first", sixth="", seventh="import mylab"
    )  # fmt: skip
    names = ["fifth.py", "first.py", "fourth/a.py", "mylab/spirals.py", "second/a.py", "third.py"]
    assert source_files(tmp_path, "mylab.spirals:train") == names
    assert source_files(tmp_path, "sixth:train", "first:train") == sorted({*names, "sixth.py"} - {*names[3:5]})


def test_relative_imports_stay_in_their_package(tmp_path):
    """A relative import ignores a module of the same name beside the package."""
    write(tmp_path, mylab__spirals=marked("1", "from .first import a\nfrom . import second\n"), first="", second="")
    assert source_files(tmp_path, "mylab.spirals:train") == ["mylab/spirals.py"]


def test_an_editable_package_elsewhere_is_copied(tmp_path, monkeypatch):
    """Code outside the study's folder is the user's if it wasn't installed there."""
    write(tmp_path / "src", mylab__spirals=marked("1", "import theirs"))
    installed(write(tmp_path / "target", theirs="", others__a=""), name="theirs")
    monkeypatch.syspath_prepend(tmp_path / "src")
    monkeypatch.syspath_prepend(tmp_path / "target")
    assert source_files(tmp_path / "study", "mylab.spirals:train") == ["mylab/spirals.py"]


def test_the_study_folder_comes_first(tmp_path, monkeypatch):
    """Of two packages of the user's code, the one beside the study file is used."""
    write(tmp_path / "src", mylab__spirals=marked("1"))
    write(tmp_path / "study", mylab__spirals=marked("2"))
    monkeypatch.syspath_prepend(tmp_path / "src")
    assert read(tmp_path / "study").files["mylab/spirals.py"] == marked("2").encode()


def test_nothing_but_names_and_contents_is_in_the_digest(tmp_path):
    """The digest changes with each name and byte, even of line ends, but not with place, times and order."""
    texts = {"mylab__": "", "mylab__spirals": marked("1"), "mylab__a": "A = 1\n"}
    first = read(write(tmp_path / "first", **texts))
    second = write(tmp_path / "second", **dict(reversed(texts.items())))
    os.utime(second / "mylab/a.py", (1, 1))
    assert (read(second).digest, read(second).archive) == (first.digest, first.archive)
    (second / "mylab/a.py").write_bytes(b"A = 1\r\n")
    changed = read(second).digest
    (second / "mylab/a.py").rename(second / "mylab/b.py")
    assert len({first.digest, changed, read(second).digest}) == 3


def test_the_digest_never_changes(tmp_path):
    """The digest of a file equals the one in the first stored results."""
    (tmp_path / "spirals.py").write_bytes(b"A = 1\n")
    code = read_source_code([ImportString("spirals", "A")], tmp_path)
    assert code.digest == "b8a90068671dbb314338d754cbca3217d797ce0bf48e7f7243de27d769d7a646"


def test_another_process_reads_the_same(tmp_path):
    """A process's earlier imports and its working folder don't matter."""
    write(tmp_path, mylab__spirals=marked("1", "import helpers"), helpers="")
    script = (
        "import sys, helpers, json\nfrom pathlib import Path\nfrom study.source import ImportString, read_source_code\n"
        "print(read_source_code([ImportString('mylab.spirals', 'train')], Path(sys.argv[1])).digest)"
    )
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join([str(tmp_path), root])
    words = [sys.executable, "-c", script, "."]
    environment = os.environ | {"PYTHONPATH": paths}
    completed = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == read(tmp_path).digest


def test_a_version_replaces_the_digest(tmp_path):
    """An edit changes the digest, and the identity too unless the study gives a version."""
    before = read(write(tmp_path, mylab__spirals=marked("1")))
    after = read(write(tmp_path, mylab__spirals=marked("2")))
    assert before.identity(version=3) == after.identity(version=3)
    assert before.identity(version=3) != before.identity(version=4)
    assert before.identity() == f"parsed:{before.parsed}"
    assert before.identity() != after.identity()


def test_links_are_followed_once(tmp_path):
    """A link's content counts, as in Python; a link to a parent folder isn't followed."""
    write(tmp_path / "elsewhere", a="A = 1", more__b="B = 1")
    write(tmp_path, mylab__spirals=marked("1"))
    (tmp_path / "mylab/a.py").symlink_to(tmp_path / "elsewhere/a.py")
    (tmp_path / "mylab/more").symlink_to(tmp_path / "elsewhere/more")
    (tmp_path / "mylab/up").symlink_to(tmp_path / "mylab")
    assert sorted(read(tmp_path).files) == ["mylab/a.py", "mylab/more/b.py", "mylab/spirals.py"]
    assert read(tmp_path).files["mylab/a.py"] == b"A = 1"


@pytest.mark.parametrize(
    ("link", "target", "include"),
    [
        ("mylab/x.py", "private/secret.py", []),
        ("mylab/more", "private", []),
        ("mylab/all", "/", []),
        ("helpers", "private", []),
        ("mylab/key.txt", "private/key.txt", ["mylab/*.txt"]),
        ("data", "private", ["data"]),
        ("data", "private", ["data/*.txt"]),
    ],
)
def test_links_that_leave_the_folder_of_the_code_are_refused(tmp_path, link, target, include):
    """A link to a file outside the study file's folder is refused, in code and in included patterns."""
    write(tmp_path / "private", secret="KEY = 1")
    (tmp_path / "private/key.txt").write_text("1")
    folder = tmp_path / "lab"
    write(folder, mylab__spirals=marked("1", before="import helpers.secret\n"))
    (folder / link).symlink_to(tmp_path / target)
    with pytest.raises(InputError, match=f"{link}.* leads by a link to .*links must stay in the folder of the code"):
        read(folder, *include)


def test_links_to_the_folder_itself_are_followed(tmp_path):
    """A link to the study file's folder itself is accepted; only links inside the code can leave the folder."""
    write(tmp_path / "lab", mylab__spirals=marked("1"))
    (tmp_path / "link").symlink_to(tmp_path / "lab")
    assert read(tmp_path / "link").files == read(tmp_path / "lab").files


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    """A dangling link and a pipe are named with the reason, so that code isn't silently left out."""
    write(tmp_path, mylab__spirals=marked("1"))
    (tmp_path / "mylab/b.py").symlink_to(tmp_path / "nowhere.py")
    with pytest.raises(
        InputError, match=r"mylab/b\.py is part of the study's code and can't be read: it must be a file"
    ):
        read(tmp_path)
    (tmp_path / "mylab/b.py").unlink()
    os.mkfifo(tmp_path / "mylab/b.py")
    with pytest.raises(InputError, match="can't be read: it must be a file"):
        read(tmp_path)


def test_the_size_has_a_limit(tmp_path):
    """Oversized code is refused before it is read, and the message names the largest files."""
    write(tmp_path, mylab__spirals=marked("1"), mylab__large="")
    with (tmp_path / "mylab/large.py").open("wb") as file:
        file.truncate(SIZE_LIMIT_BYTES)
    with pytest.raises(InputError, match=r"at most 16 MiB.*mylab/large\.py \(16\.0 MiB\)"):
        read(tmp_path)


def test_data_are_included_by_pattern(tmp_path):
    """Non-Python files are part of the code if the study includes them; a folder includes all its files."""
    write(tmp_path, mylab__spirals=marked("1"), lazy="import further", further="")
    for name in ("mylab/a.csv", "mylab/b.csv", "data/deep/c.bin", "data/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    names = sorted(read(tmp_path, "mylab/*.csv", "data", "lazy.py").files)
    expected = ["data/deep/c.bin", "further.py", "lazy.py", "mylab/a.csv", "mylab/b.csv", "mylab/spirals.py"]
    assert names == expected
    with pytest.raises(InputError, match=r"'mylab/\*\.txt' matches no file in"):
        read(tmp_path, "mylab/*.txt")
    for pattern in ("/etc/passwd", "../secret", "."):
        with pytest.raises(InputError, match="must name files in the folder of the study file"):
            read(tmp_path, pattern)
    with pytest.raises(InputError, match=r"'a\*\*b'"):  # newer versions of Python take it as a*b
        read(tmp_path, "a**b")


@pytest.mark.parametrize(
    ("import_string", "reason"),
    [
        ("mylap.spirals:train", "no module is called mylap, neither in .* did you mean 'mylab'"),
        ("mylab.spiral:train", r"neither mylab/spiral\.py nor .* did you mean 'mylab\.spirals'"),
        ("os:system", "os is a module of Python itself"),
        (
            "tasks.arithmetic.models:MODELS",
            "tasks is a package of this program, whose tasks and models have short names",
        ),
    ],
)
def test_a_missing_module_is_refused(tmp_path, import_string, reason):
    """A missing or foreign module is refused with the nearest name, without an import."""
    write(tmp_path, mylab__="", mylab__spirals="raise AssertionError")
    with pytest.raises(InputError, match=reason):
        read_source_code([parse_import_string(import_string)], tmp_path)


@pytest.mark.parametrize(
    ("name", "other"),
    [("tasks", "this program has one"), ("units", "this program has one"), ("study", "this program has one"),
     ("random", "Python itself has one"), ("numpy", "the installed .*numpy"), ("ours", "the installed .*ours")],
)  # fmt: skip
def test_two_modules_of_one_name(tmp_path, monkeypatch, name, other):
    """A user's module with an existing name is refused, as the study's own and as an import of its code."""
    site = installed(write(tmp_path / "site-packages", ours__=""), name="ours")
    monkeypatch.syspath_prepend(site)
    folder = write(tmp_path / "study", **{f"{name}__": marked("1")}, spirals=marked("1", f"import {name}\n"))
    for import_string in (ImportString(name, "train"), ImportString("spirals", "train")):
        with pytest.raises(InputError, match=rf"two modules are called {name}: .*, and {other}.*: rename yours"):
            read_source_code([import_string], folder)


def test_an_included_module_needs_a_name_of_its_own(tmp_path):
    """An included module with an installed module's name is refused, since it would hide that module."""
    write(tmp_path, mylab__spirals=marked("1"), numpy="")
    with pytest.raises(InputError, match="two modules are called numpy"):
        read(tmp_path, "numpy.py")


def test_a_module_that_was_written_just_now(tmp_path, monkeypatch):
    """New modules count even if Python's cached listing of their folder is older."""
    monkeypatch.syspath_prepend(tmp_path / "src")
    write(tmp_path / "src", other="")
    times = (tmp_path / "src").stat()
    assert source_files(tmp_path, "other:train") == ["other.py"]
    write(tmp_path / "src", mylab="")
    os.utime(tmp_path / "src", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert source_files(tmp_path, "mylab:train") == ["mylab.py"]


def test_a_folder_that_only_shares_a_name(tmp_path):
    """A folder without `__init__.py` and with an installed package's name isn't the imported package."""
    write(tmp_path, mylab__spirals=marked("1", "import numpy"), numpy__a="")
    assert sorted(read(tmp_path).files) == ["mylab/spirals.py"]

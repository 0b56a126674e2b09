"""The cache of compiled code: compiled and loaded code are the same, whatever the cache contains."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core import config

from study.stream.compile import _CacheFile, cached, is_on_disk


def test_compiling_and_loading_processes_run_the_same_code(tmp_path):
    """A process that compiles a function runs the same machine code as one that loads it."""
    command = [sys.executable, "-m", "tests.tasks.arithmetic.engine.machine_code"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    outputs = [subprocess.check_output(command, env=environment, text=True).split() for _ in range(2)]
    assert [words[:2] for words in outputs] == [["new", "compiled"], ["kept", "loaded"]]
    assert outputs[0][2] == outputs[1][2]


def test_without_a_writable_folder_code_is_cached_in_the_temporary_one(tmp_path):
    """Without a writable folder, code is cached in the temporary folder, and a user's next process loads it."""
    (tmp_path / "module.py").write_text(
        "from study.stream.compile import cached, is_on_disk\n"
        "double = cached('stamp')(lambda number: number + number)\n"
        "print(is_on_disk(double), double(2), sum(double.stats.cache_hits.values()))\n"
    )
    (tmp_path / "__pycache__").touch()  # keeps numba from making the folder
    (tmp_path / "tmp").mkdir()
    elsewhere = {"TMPDIR": str(tmp_path / "tmp"), "XDG_CACHE_HOME": os.devnull, "HOME": os.devnull}

    def output_of(folder: str) -> str:
        environment = os.environ | elsewhere | {"NUMBA_CACHE_DIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        environment["PYTHONPATH"] = str(tmp_path)
        command = [sys.executable, "-c", "import module"]
        return subprocess.check_output(command, env=environment, text=True).strip()

    assert [output_of(os.devnull), output_of(os.devnull)] == ["False 4 0", "True 4 1"]
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == [f"study-numba-{os.getuid()}"]


class Renamed:
    """A class in a signature of an earlier version that this version lacks."""


def test_an_index_of_an_earlier_version_is_replaced(tmp_path, monkeypatch):
    """A function whose cached index names a missing class is compiled and cached again."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    double = cached("of now")(lambda x: x + x)
    index = Path(double._cache._cache_file._index_path)
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(("of before", {Renamed: "file"})))
    monkeypatch.delattr(f"{__name__}.Renamed")
    assert not is_on_disk(double)
    assert double(2) == 4
    assert is_on_disk(double)


def test_functions_of_a_factory_are_cached_separately(tmp_path):
    """If a process has cached only a part of a factory's functions, the next process compiles the others."""

    def output_of(*factors: str) -> list[str]:
        command = [sys.executable, "-m", "tests.study.engine.factory", *factors]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.check_output(command, env=environment, text=True).splitlines()

    assert output_of("2") == ["new", "2.0 2.0"]
    assert output_of("2", "3") == ["kept new", "2.0 3.0"]
    assert output_of("2", "3") == ["kept kept", "2.0 3.0"]


def test_two_processes_that_write_at_once_keep_their_signatures(tmp_path, monkeypatch):
    """Two processes that write to an empty index at the same time each keep the code of their own signature."""
    first, second = (_CacheFile(str(tmp_path), "function", "sources") for _ in range(2))
    save_data = first._save_data

    def save_after_the_other(*arguments: object) -> None:
        second.save("float64", "of float64")
        save_data(*arguments)

    with monkeypatch.context() as writing:
        writing.setattr(_CacheFile, "_load_index", lambda _: {})
        writing.setattr(first, "_save_data", save_after_the_other)
        first.save("float32", "of float32")
    assert first.load("float32") in {None, "of float32"}
    assert first.load("float64") in {None, "of float64"}
    first.save("float32", "of float32")
    second.save("float64", "of float64")
    assert (second.load("float32"), first.load("float64")) == ("of float32", "of float64")


@pytest.mark.parametrize("killed_before", ["_save_data", "_save_index"])
def test_a_process_killed_while_writing_leaves_no_outdated_code(tmp_path, monkeypatch, killed_before):
    """After a kill between writes of the cache's two files, changed sources don't get the old machine code."""
    old, new = (_CacheFile(str(tmp_path), "function", sources) for sources in ("old", "new"))
    old.save("float32", "of old")

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killing:
        killing.setattr(new, killed_before, end)
        with pytest.raises(KeyboardInterrupt):
            new.save("float32", "of new")
    assert new.load("float32") is None
    assert old.load("float32") in {None, "of old"}
    new.save("float32", "of new")
    assert (new.load("float32"), old.load("float32")) == ("of new", None)

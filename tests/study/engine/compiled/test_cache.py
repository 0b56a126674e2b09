"""What is compiled runs as fast where it was compiled as where it is loaded, whatever is on disk."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
from numba.core import config

from tasks.compile import cached, is_on_disk


def test_the_process_that_compiles_runs_the_machine_code_that_others_load(tmp_path):
    """A function is known to be on disk before it is called, and of a part runs the same code compiled and loaded."""
    command = [sys.executable, "-m", "tests.study.engine.machine_code"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = [subprocess.check_output(command, env=environment, text=True).split() for _ in range(2)]
    assert [words[:2] for words in said] == [["new", "compiled"], ["kept", "loaded"]]
    assert said[0][2] == said[1][2]


class Renamed:
    """A class that an earlier version's function took, and that this version has no more."""


def test_machine_code_of_an_earlier_version_is_no_hindrance(tmp_path, monkeypatch):
    """A function is compiled anew where its index on disk names a class that is gone, and then is on disk."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    double = cached("of now")(lambda x: x + x)
    index = Path(double._cache._cache_file._index_path)
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(("of before", {Renamed: "file"})))
    monkeypatch.delattr(f"{__name__}.Renamed")
    assert not is_on_disk(double)
    assert double(2) == 4
    assert is_on_disk(double)

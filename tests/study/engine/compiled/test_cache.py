"""What is compiled runs as fast where it was compiled as where it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys


def test_the_process_that_compiles_runs_the_machine_code_that_others_load(tmp_path):
    """A function is known to be on disk before it is called, and of a part runs the same code compiled and loaded."""
    command = [sys.executable, "-m", "tests.study.engine.machine_code"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = [subprocess.check_output(command, env=environment, text=True).split() for _ in range(2)]
    assert [words[:2] for words in said] == [["new", "compiled"], ["kept", "loaded"]]
    assert said[0][2] == said[1][2]

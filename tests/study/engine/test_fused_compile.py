"""What is compiled runs as fast where it was compiled as where it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys


def test_the_process_that_compiles_runs_the_machine_code_that_others_load(tmp_path):
    """Of a part that it calls, a function runs the same optimised code whether it was just compiled or loaded."""
    command = [sys.executable, "-m", "tests.study.engine.machine_code"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = [subprocess.check_output(command, env=environment, text=True).split() for _ in range(2)]
    assert [how for how, _ in said] == ["compiled", "loaded"]
    assert said[0][1] == said[1][1]

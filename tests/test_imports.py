"""Imports of each command, since unused packages would cost seconds at each start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Warnings of MLflow and its dependencies are theirs to fix.
pytestmark = pytest.mark.filterwarnings("ignore")

MISTAKEN = "{study: wrong, task: {name: simple}, models: [NMUU], seeds: 0}"

TRAINING = {
    "torch", "numba", "ray", "scipy.stats", "scipy.optimize", "pandas", "matplotlib", "mlflow", "sqlalchemy",
    "optuna", "obstore",
}  # fmt: skip
"""Packages for training, statistics, drawing, publishing and searching, the slowest to import."""

FORBIDDEN = {
    "--help": TRAINING | {"scipy", "pyarrow", "numpy", "pydantic", "yaml"},
    "plan wrong.yaml": TRAINING | {"scipy", "pyarrow"},
    "run wrong.yaml": TRAINING | {"scipy", "pyarrow"},
    "submit wrong.yaml --cluster http://127.0.0.1:9": TRAINING | {"scipy", "pyarrow"},
    "schema": TRAINING | {"scipy", "pyarrow"},
    "list": TRAINING | {"scipy"},
    "plan little.yaml --quick": TRAINING | {"scipy"},
    "show little": TRAINING,
    "run little.yaml": TRAINING,
    "report little --format csv --out tables": TRAINING - {"scipy.optimize"},
}
"""Commands, and the packages that they don't use."""

_CHILD = """
import atexit, sys
from pathlib import Path
atexit.register(lambda: Path(sys.argv[1]).write_text("\\n".join(sys.modules)))
from study.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize("command", FORBIDDEN)
def test_a_command_imports_what_it_uses(finished_study: Path, tmp_path: Path, command: str) -> None:
    """No command imports a package that it doesn't use."""
    imported = tmp_path / "imported"
    (finished_study / "wrong.yaml").write_text(MISTAKEN)
    environment = {key: value for key, value in os.environ.items() if key not in ("STUDY_STORE", "MLFLOW_TRACKING_URI")}
    words = [sys.executable, "-c", _CHILD, str(imported), *command.split()]
    completed = subprocess.run(words, cwd=finished_study, env=environment, capture_output=True, text=True)
    assert completed.returncode == (2 if "wrong" in command else 0), completed.stdout + completed.stderr
    assert set(imported.read_text().split()) & FORBIDDEN[command] == set()

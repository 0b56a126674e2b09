"""Notebooks: each runs unchanged in an empty folder, and produces its stored outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = {
    "docs/guides/notebook.ipynb": (2, "notebook", "80/80 trials"),
    "examples/notebook/notebook.ipynb": (1, "valleys", "200/200 trials"),
}


def shown(notebook: Any) -> list[set[str]]:
    """Return the content types of each code cell's output, without streams."""
    return [
        {kind for output in cell.outputs for kind in output.get("data", {}) if output.output_type != "stream"}
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


# Warnings of Jupyter and its dependencies are theirs to fix.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=() if path.startswith("docs") else pytest.mark.long) for path in NOTEBOOKS]
)
def test_a_notebook_runs(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell runs, and its outputs have the content types of the stored ones."""
    pictures, study, progress = NOTEBOOKS[path]
    stored = nbformat.read(path, as_version=4)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]))
    executed = nbformat.read(path, as_version=4)
    for cell in executed.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(executed, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(executed) == shown(stored)
    assert sum("image/png" in kinds for kinds in shown(stored)) == pictures
    assert (tmp_path / "studies" / study / "report" / "report.html").exists()
    texts = [str(output) for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any(progress in text for text in texts)  # the last line of progress

"""A build of the documentation site without warnings: no dead links, and every page in the contents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_site_is_built(tmp_path: Path) -> None:
    """The site has the tutorial, the options of commands and the docstrings of public names."""
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    completed = subprocess.run(
        [*command, "-c", "docs", ".", tmp_path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    site = {path.relative_to(tmp_path).as_posix(): path.read_text("utf-8") for path in tmp_path.rglob("*.html")}
    assert "your script as a study" in site["docs/tutorial.html"]
    assert "--keep-going" in site["docs/reference/cli.html"]
    assert 'id="study.load"' in site["docs/reference/api.html"]

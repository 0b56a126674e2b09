"""A fixture for tests that read stored studies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def workspace(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work beside a copy of the store made by a file's fixture `original`."""
    shutil.copytree(original / "studies", tmp_path / "studies")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STUDY_STORE", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    return tmp_path

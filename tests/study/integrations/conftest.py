"""Training functions of docs/guides/integrations.md, each with the library that it integrates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import files_shown

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "integrations.md"
SHOWN = files_shown(PAGE.read_text(encoding="utf-8"))
LIBRARIES = {"lightning": "lightning", "huggingface": "transformers", "keras": "keras", "xgboost": "xgboost"}
"""The module that each integration needs; scikit-learn is always installed."""


@pytest.fixture(params=[name.removeprefix("digits_").removesuffix(".py") for name in SHOWN])
def integration(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of an integration; the test is skipped if its library isn't installed."""
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    name: str = request.param
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name])
    return name

"""Files of a study's folder that were damaged, or that another program wrote, are named with the way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from study.errors import StoreError
from study.results import adoptions, certificate, claim_looks, order_note, tags
from study.store import Store, StudyStore

READERS: dict[str, Callable[[StudyStore], Any]] = {
    adoptions.LOG: adoptions.read_adoptions,
    certificate.NAME: certificate.read_certificate,
    claim_looks.NAME: claim_looks.read_looks,
    order_note.NAME: order_note.read_order_note,
    tags.FILE: tags.study_tags,
}
GOOD = {"at": "2026-11-28", "trials": ["a"], "differing": [], "of": 4, "engines": ["fused"], "reason": ""}


def written(folder: Path, name: str, content: bytes) -> StudyStore:
    study = Store(folder).study("any")
    study.write_spec("study: any")
    study.write_file(name, content)
    return study


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("content", [b'{"cut off": ', b"[" * 100_000, b"7"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    study = written(tmp_path, name, content)
    with pytest.raises(StoreError, match=rf"{name} can't be read"):
        READERS[name](study)


@pytest.mark.parametrize("changed", [{"at": 5}, {"trials": [1]}, {"of": "4"}, {"engines": None}, {"more": 1}])
def test_a_certificate_with_other_types_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    good = written(tmp_path / "good", certificate.NAME, json.dumps(GOOD).encode())
    assert certificate.read_certificate(good) == certificate.Certificate(**GOOD)
    study = written(tmp_path / "bad", certificate.NAME, json.dumps(GOOD | changed).encode())
    with pytest.raises(StoreError, match="`study verify` writes it anew"):
        certificate.read_certificate(study)

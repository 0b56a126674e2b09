"""Checkpoints in a trial's folder, beside files of the user's own."""

from __future__ import annotations

from pathlib import Path

from study.integrations.checkpoints import latest, write_checkpoint


def test_other_files_are_neither_used_nor_removed(tmp_path: Path) -> None:
    """A user's ``checkpoint-best`` isn't the last checkpoint, and a new checkpoint leaves it."""
    (tmp_path / "checkpoint-best").mkdir()
    assert latest(tmp_path, "checkpoint-*") is None
    for step in (9, 10):
        write_checkpoint(tmp_path, step, lambda folder: (folder / "model").touch())
    assert latest(tmp_path, "checkpoint-*") == tmp_path / "checkpoint-10"
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-best", "checkpoint-10"}

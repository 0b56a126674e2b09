"""A study file names data by path; trials identify them by digest, even if the files are absent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from study.errors import SpecError
from study.plan.plan import study_cells
from study.plugins.families import declared_family
from study.spec import load_spec, parse_spec
from study.spec.packed_tables import PackedSpec
from tests.commands import invoke
from tests.mnist import mnist_folder

__all__ = ["mnist_folder"]

STUDY = """
study: sums
task: {{name: sequential, operation: sum, images: {images}, train_length: 2, test_lengths: [1, 2]}}
models: [NAU, reference]
fixed: {{batch_size: 8}}
seeds: 2
protocol: {{iterations: 2, evaluate_every: 1}}
"""


def study(folder: Path, images: str = "mnist") -> Path:
    path = folder / "sums.yaml"
    path.write_text(STUDY.format(images=images))
    return path


@pytest.fixture
def lab(mnist_folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(mnist_folder, tmp_path / "mnist")
    return tmp_path


def test_ids_have_the_digest_and_not_the_path(lab: Path):
    """Equal data elsewhere give the same trials; other data give others."""
    (first, _) = study_cells(load_spec(study(lab)))
    shutil.copytree(lab / "mnist", lab / "copies" / "of")
    (same, _) = study_cells(load_spec(study(lab, "copies/of")))
    assert first.id == same.id
    assert str(first.value("images")).startswith("sha256:")
    labels = lab / "mnist" / "train-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\0" if labels.read_bytes()[-1] else b"\1")
    (changed, _) = study_cells(load_spec(study(lab)))
    assert changed.id != first.id


def test_a_grid_may_sweep_data(lab: Path):
    """Built-in values may be swept beside paths."""
    text = STUDY.format(images="digits").replace("images: digits, ", "") + "grid: {images: [digits, mnist]}\n"
    images = {str(cell.value("images")) for cell in study_cells(parse_spec(text, source="a.yaml", folder=lab))}
    assert {value.partition(":")[0] for value in images} == {"digits", "sha256"}


def test_missing_data_are_a_mistake_with_its_line(tmp_path: Path):
    with pytest.raises(
        SpecError, match=r"line 3: task.images: must be digits, or a folder with the files train-images"
    ):
        load_spec(study(tmp_path))


def test_damaged_data_are_a_mistake_with_its_line(lab: Path):
    path = lab / "mnist" / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(SpecError, match=r"line 3: .*t10k-images-idx3-ubyte must have 784,000 bytes"):
        load_spec(study(lab))


def test_a_stored_study_is_read_without_its_data(lab: Path):
    """The stored declarations have the digests."""
    path = study(lab)
    spec = load_spec(path)
    assert isinstance(spec, PackedSpec)
    ids = [cell.id for cell in study_cells(spec)]
    shutil.rmtree(lab / "mnist")
    declared = declared_family(spec.declared.to_json())
    assert [cell.id for cell in study_cells(parse_spec(path.read_bytes(), source="a.yaml", declared=declared))] == ids


def test_a_study_of_data_runs_and_is_reported_without_them(lab: Path, monkeypatch: pytest.MonkeyPatch):
    """Trials train from the copy; finished trials stay done wherever the data are."""
    monkeypatch.chdir(lab)
    words = ("--store", str(lab / "studies"))
    first = invoke("run", str(study(lab)), "--local", "--tracking-uri", "off", *words)
    assert first.exit_code == 0, first.output
    shutil.move(lab / "mnist", lab / "moved")
    plan = invoke("plan", "--quick", str(study(lab, "moved")), *words)
    assert "4 done already" in plan.output
    shutil.rmtree(lab / "moved")
    report = invoke("report", "sums", *words)
    assert report.exit_code == 0, report.output
    assert "NAU" in report.output

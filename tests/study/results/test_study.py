"""`study report NAME`: contents, comparison with another study, and refusals."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study.reports import page
from study.results import load
from study.results import study as study_results
from tests.commands import invoke

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = """
study: {name}
question: Does it learn?
task: {{name: simple}}
models: [NMU, NAC-mul]
seeds: 3
fixed: {{batch_size: 16, learning_rate: {rate}}}
grid: {{hidden_size: [2, 3, 4]}}
protocol: {{iterations: 40, evaluate_every: 10, evaluation_rows: 50}}
"""


@pytest.fixture(scope="module", name="original")
def _original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run two small studies that differ in the learning rate."""
    folder = tmp_path_factory.mktemp("made")
    for name, rate in (("little", 0.001), ("faster", 0.01)):
        (folder / f"{name}.yaml").write_text(SPEC.format(name=name, rate=rate))
        words = ("run", str(folder / f"{name}.yaml"), "--store", str(folder / "studies"))
        result = invoke(*words, "--local", "--engine", "torch", "--tracking-uri", "off")
        assert result.exit_code == 0, result.output
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_page_lists_every_trial_of_its_cell(workspace):
    """The page has the store's trials, each with its row."""
    standing = load.load_results("little", workspace / "studies")
    assert invoke("report", "little").exit_code == 0
    text = (workspace / "studies" / "little" / "report" / "report.html").read_text()
    (trials_json,) = re.findall(r'<script type="application/json" id="trials">(.*?)</script>', text)
    data = json.loads(trials_json)
    rows = {s.cell_id: row for row, s in enumerate(standing.summaries)}
    stored = standing.table.to_pylist()
    assert sorted(zip(data["row"], data["seed"], data["trial_id"], strict=True)) == sorted(
        (rows[t["cell_id"]], t["seed"], t["trial_id"]) for t in stored
    )
    codes = {t["trial_id"]: t["outcome"][0] for t in stored}
    assert [codes[trial] for trial in data["trial_id"]] == list(data["outcome"])
    assert data["link"] is None


def test_very_many_trials_are_not_listed(workspace, monkeypatch):
    """Beyond a limit the page has no trials, and no buttons to open them."""
    monkeypatch.setattr(study_results, "MOST_TRIALS", 17)
    text = page.page(study_results.assemble_report(load.load_results("little", workspace / "studies")), [])
    assert 'class="open"' not in text
    assert 'id="trials"' not in text


def test_the_protocol_lists_the_cells_values(workspace):
    """A value shared by all cells is given once, swept values are all listed, and inapplicable ones are omitted."""
    protocol = study_results.assemble_report(load.load_results("little", workspace / "studies")).protocol
    assert protocol["hidden units"] == "2, 3, 4"
    assert protocol["model"] == "NMU, NAC•"
    assert protocol["learning rate"] == "0.001"
    assert "momentum" not in protocol


def test_a_study_is_set_beside_another(workspace):
    """`--compare OTHER` matches cells by their sweeps, and writes the comparison."""
    result = invoke("report", "little", "--compare", "faster", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "Against faster" in result.output
    assert "learning rate: 0.001 here, 0.01 in faster" in result.output
    rows = list(csv.DictReader((workspace / "out" / "comparison.csv").read_text().splitlines()))
    assert len(rows) == 6
    assert {row["source"] for row in rows} == {"faster"}
    text = (workspace / "out" / "report.html").read_text()
    assert "Against faster" in text
    assert "study report little --compare faster" in text


def test_a_study_is_set_beside_itself_and_agrees(workspace):
    """Cells are matched by their ids, and nothing differs."""
    against = load.load_results("little", workspace / "studies", compare="little").against
    assert [c.verdict for c in against.comparisons] == ["agrees"] * 6
    assert all(c.finding.estimate == 0 for c in against.comparisons)


def conflicting(workspace: Path) -> None:
    """Store a result that contradicts another."""
    folder = workspace / "studies" / "little" / "results"
    first = sorted(folder.glob("*.parquet"))[0]
    table = pq.read_table(first)
    place = table.column_names.index("test_mse")
    changed = table.set_column(place, table.field(place), pa.array([0.5] * len(table), pa.float64()))
    pq.write_table(changed.replace_schema_metadata(pq.read_schema(first).metadata), folder / "zz.parquet")


def newer(workspace: Path) -> None:
    """Mark the first results file as written by a newer version."""
    first = sorted((workspace / "studies" / "little" / "results").glob("*.parquet"))[0]
    table = pq.read_table(first)
    metadata = dict(pq.read_schema(first).metadata) | {b"study.schema_version": b"99"}
    pq.write_table(table.replace_schema_metadata(metadata), first)


def emptied(workspace: Path) -> None:
    """Remove every result."""
    shutil.rmtree(workspace / "studies" / "little" / "results")


@pytest.mark.parametrize(
    ("spoil", "words", "message"),
    [
        (None, ("nothing",), ["no study 'nothing'"]),
        (None, ("little", "--compare", "nothing"), ["no study 'nothing'"]),
        (None, ("little", "--compare", "none.csv"), ["none.csv"]),
        (emptied, ("little",), ["no results yet", "study run"]),
        (emptied, ("faster", "--compare", "little"), ["--compare little", "no results yet"]),
        (conflicting, ("little",), ["two results that differ in test_mse", "zz.parquet, row 1"]),
        (newer, ("little",), [".parquet has schema version 99", "upgrade"]),
    ],
)
def test_refused_reports_overwrite_nothing(workspace, spoil, words, message):
    """Each is one error with exit code 2 that names the fault, and the last report stays."""
    assert invoke("report", "little").exit_code == 0
    assert invoke("report", "faster").exit_code == 0
    if spoil is not None:
        spoil(workspace)
    before = contents(workspace)
    result = invoke("report", *words)
    assert result.exit_code == 2, result.output
    assert all(part in " ".join(result.output.split()) for part in message), result.output
    assert "Traceback" not in result.output
    assert contents(workspace) == before

"""Malicious ZIP files: each column of a result has a hostile value in turn.

A file is refused, or everything made from it is harmless: no foreign code runs, no escape sequence reaches the
terminal, and the store's other studies are listed as before.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import study as api
from study.arrow import EMPTY_RESULTS
from study.store import Store, write_export
from tests.commands import invoke

pytestmark = [pytest.mark.faults, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]

LITTLE = {
    "study": "little",
    "task": {"name": "simple"},
    "models": ["NMU"],
    "grid": {"hidden_size": [2, 3]},
    "fixed": {"batch_size": 16},
    "protocol": {"iterations": 40, "evaluate_every": 10, "evaluation_rows": 50},
    "seeds": 2,
}
TEXTS = {
    "docstring": 'x"""\nimport os\nos.system("true")\n"""',
    "newline": "x\nimport os",
    "escape": "x\x1b]0;title\x07\x1b[2J",
    "template": "{{ ''.__class__.__mro__ }}{% raw %}",
    "markup": "<script>alert(1)</script>",
    "huge": "x" * 1_000_000,
    "none": None,
}
NUMBERS = {"negative": -5, "largest": 2**63 - 1, "none": None}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with a study of its own."""
    folder = tmp_path_factory.mktemp("store") / "store"
    api.load(LITTLE | {"study": "other", "seeds": 1}, store=folder, tracking_uri="off").run(local=True, engine="torch")
    return folder


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the ZIP file of a small study that was trained here."""
    folder = tmp_path_factory.mktemp("exported")
    api.load(LITTLE, store=folder / "store", tracking_uri="off").run(local=True, engine="torch")
    return write_export(Store(folder / "store", read_only=True).study("little"), folder / "little.zip").file


def results_in(file: Path) -> tuple[str, pa.Table]:
    with zipfile.ZipFile(file) as archive:
        name = next(name for name in archive.namelist() if "/results/" in name)
        return name, pq.read_table(io.BytesIO(archive.read(name)))


def with_value(file: Path, column: str, value: Any, into: Path) -> Path:
    """Write a copy of a ZIP file with one value in a column, and a matching list of files."""
    member, table = results_in(file)
    field = table.schema.field(column)
    cells = pa.array([value] * len(table), field.type)
    table = table.set_column(table.column_names.index(column), field, cells)
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_checksum=True)
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()} | {member: sink.getvalue()}
    about = json.loads(content["little/export.json"])
    about["files"][member.removeprefix("little/")] = {
        "bytes": len(sink.getvalue()),
        "sha256": hashlib.sha256(sink.getvalue()).hexdigest(),
    }
    content["little/export.json"] = json.dumps(about).encode()
    with zipfile.ZipFile(into, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return into


def hostile_values() -> list[Any]:
    """Return hostile values of each column of every table of results."""
    params = []
    for field in EMPTY_RESULTS.schema:
        if pa.types.is_string(field.type):
            values: dict[str, Any] = TEXTS
        elif pa.types.is_boolean(field.type):
            values = {"none": None}
        elif pa.types.is_integer(field.type):
            values = NUMBERS
        else:
            values = {"nan": float("nan"), "infinite": float("inf"), "none": None}
        params += [pytest.param(field.name, value, id=f"{field.name}-{name}") for name, value in values.items()]
    return params


def shape(script: str) -> list[str]:
    """Return the kinds of a script's nodes, without its literals."""
    finite = script.replace("math.nan", "0.5").replace("math.inf", "0.5")  # the scripts' spelling of non-finite numbers
    return [type(node).__name__ for node in ast.walk(ast.parse(finite)) if not isinstance(node, ast.Constant)]


@pytest.fixture(scope="module")
def honest_script(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the script of the study's first trial."""
    folder = tmp_path_factory.mktemp("honest")
    assert invoke("import", str(exported), "--store", str(folder / "store")).exit_code == 0
    _, script = written_script(exported, folder)
    assert script is not None
    return script


def written_script(file: Path, folder: Path) -> tuple[str, str | None]:
    """Write the script of a ZIP file's first trial; return the command's output, and the script."""
    trial, path = results_in(file)[1]["trial_id"][0].as_py(), folder / "script.py"
    result = invoke("repeat", "little", trial, "--script", str(path), "--store", str(folder / "store"))
    return result.output, path.read_text() if path.exists() else None


@pytest.mark.parametrize(("column", "value"), hostile_values())
def test_a_hostile_column_is_harmless(
    store: Path, exported: Path, honest_script: str, tmp_path: Path, column: str, value: Any
) -> None:
    """The file is refused with a reason, or its display and its scripts are harmless."""
    shutil.copytree(store, tmp_path / "store")
    words = ["--store", str(tmp_path / "store")]
    file = with_value(exported, column, value, tmp_path / "hostile.zip")
    result = invoke("import", str(file), *words)
    listed = invoke("list", *words)
    outputs = [result.output, listed.output]
    assert listed.exit_code == 0, listed.output
    assert "other" in listed.output
    if result.exit_code == 0:
        outputs.append(invoke("show", "little", *words).output)
        if column != "trial_id":
            script_output, script = written_script(exported, tmp_path)
            outputs.append(script_output)
            assert script is None or shape(script) == shape(honest_script)
    else:
        assert "nothing was imported" in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert not any("\x1b" in output or "\x07" in output for output in outputs)
    assert all(len(output) < 100_000 for output in outputs)

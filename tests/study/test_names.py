"""What is general in study/ names no part of the one family of tasks that has engines of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.interface.packed_family import TRAINING
from tasks import MODELS, TASKS, ArithmeticTask
from tasks.arithmetic_family import ARITHMETIC
from units import UNITS

STUDY = Path(__file__).parents[2] / "study"

OF_THE_FAMILY = (
    "engine/__init__.py", "engine/arithmetic/", "engine/compiled/", "engine/cpu/", "engine/gpu/", "engine/torch/",
    "presets/", "reference/", "reports/script/", "summaries/published.py", "statistics/published.py",
    "store/format_1.py",
)  # fmt: skip
"""Engines that are written for the family, scripts of its trials, published studies and figures of it, and files that
held nothing else."""

DECLARED = {*TASKS, *MODELS, *UNITS, *ARITHMETIC.hyperparameters, *ArithmeticTask.metrics} - {
    *TRAINING,
    "batch_size",
    "sparsity_error",
}
NAMES = {name for name in DECLARED if not re.fullmatch("[a-z]+", name)}
"""What the family declares and any training of units hasn't. A plain word, such as linear or stop, means other things,
too."""

SOURCES = sorted(path for path in STUDY.rglob("*.py") if not str(path.relative_to(STUDY)).startswith(OF_THE_FAMILY))


def names_in(text: str) -> Iterator[str]:
    """Yield identifiers, strings and the parts of imported modules' names; documentation may have examples."""
    tree = ast.parse(text)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(value)) if id(node) not in documentation:
                yield value
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.alias(name=name):
                yield name
            case ast.ImportFrom(module=str(module)):
                yield module


def of_the_family(text: str) -> list[str]:
    """Return what a source names of the family: its declared names, and what is called after it."""
    return sorted(
        {name for name in names_in(text) if name in NAMES or re.fullmatch(r"[\w.]*arithmetic[\w.]*", name.lower())}
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(STUDY)))
def test_a_general_part_names_no_part_of_the_family(path: Path) -> None:
    """It asks the study's family what it must know, so that it works for any task, model and training function."""
    assert of_the_family(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from tasks.arithmetic_cell import typed_cell", "tasks.arithmetic_cell"),
        ("cell.hidden_size", "hidden_size"),
        ("f(hidden_size=2)", "hidden_size"),
        ("row['test_mse']", "test_mse"),
        ("if model == 'NMU': pass", "NMU"),
        ("'''NMU'''\nx = 1", None),
        ("scale = 'linear'", None),
    ],
)
def test_a_name_is_seen(line: str, name: str | None) -> None:
    assert of_the_family(line) == ([] if name is None else [name])

"""Checks of the source text itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("study", "units", "tasks") for path in (ROOT / folder).rglob("*.py"))
# Modules that may run code named in the files that they read.
UNPICKLERS = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "shelve"}
CALLS = {
    "torch.load", "yaml.load", "yaml.full_load", "yaml.unsafe_load", "mlflow.pyfunc.load_model", "pandas.read_pickle",
}  # fmt: skip


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def unsafe(tree: ast.AST) -> list[str]:
    """Return the imports and calls in a syntax tree that could run code from read data."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names if alias.name.split(".")[0] in UNPICKLERS]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in UNPICKLERS:
            names.append(node.module)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
            if name in CALLS or any(ast.unparse(value) != "False" for value in allowed):
                names.append(ast.unparse(node))
            if name.endswith(("np.load", "numpy.load")) and not allowed:
                names.append(ast.unparse(node))
    return names


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_nothing_is_unpickled(path: Path) -> None:
    """Sources don't use functions that could run code from read data."""
    assert unsafe(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from cloudpickle import loads",
        "yaml.load(text, Loader=yaml.Loader)",
        "np.load(file)",
        "np.load(file, allow_pickle=True)",
        "torch.load(file)",
    ],
)
def test_unpickling_is_detected(line: str) -> None:
    """The check detects unsafe imports and calls."""
    assert unsafe(ast.parse(line))

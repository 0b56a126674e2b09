"""A notebook function becomes a module with all its dependencies; examples/notebook has a real one."""

from __future__ import annotations

import importlib
import linecache
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from study.errors import InputError
from study.interface.seeded import is_seeded
from study.source import import_string_of

Define = Callable[[str], types.ModuleType]


@pytest.fixture
def define(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Define:
    """Return a function that runs a cell in a main module without a file, like a notebook's kernel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    notebook = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)

    def define(source: str) -> types.ModuleType:
        name = f"<cell {len(linecache.cache)}>"
        monkeypatch.setitem(linecache.cache, name, (len(source), None, source.splitlines(keepends=True), name))
        exec(compile(source, name, "exec"), vars(notebook))  # noqa: S102 (like a kernel)
        return notebook

    return define


def imported(called: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a notebook's function from its module, as another process would import it."""
    name, folder = import_string_of(called, Path())
    assert folder is not None
    monkeypatch.syspath_prepend(folder)
    module, _, function = name.partition(":")
    monkeypatch.delitem(sys.modules, module, raising=False)
    return getattr(importlib.import_module(module), function)


def test_a_function_includes_its_dependencies(define: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports, functions, classes and constants of other cells are included, with their own dependencies."""
    define(
        "import math as m\nimport xml.dom\nfrom collections import Counter as Count\n"
        "SIZES = {'a': (1, 2.5)}\nUNUSED = 3\n"
    )
    define("def helper(x):\n    return m.floor(x) + SIZES['a'][0]\n")
    define("class Base:\n    pass\n\nclass Net(Base):\n    width = 4\n    def out(self):\n        return helper(2.7)\n")
    notebook = define(
        "def train(seed):\n    xml.dom.Node\n    return {'loss': Net().out() + Net.width + Count('aa')['a'] + seed}\n"
    )
    train = imported(notebook.train, monkeypatch)
    assert train(seed=1) == {"loss": 3 + 4 + 2 + 1}
    assert is_seeded(train)
    assert not hasattr(sys.modules[train.__module__], "UNUSED")


def test_other_cells_change_nothing(define: Define) -> None:
    """The module of a function changes only with its dependencies."""
    notebook = define("RATE = 0.5\ndef train(seed):\n    return {'loss': RATE * seed}\n")
    first = import_string_of(notebook.train, Path())
    define("OTHER = 1\n")
    assert import_string_of(notebook.train, Path()) == first
    define("RATE = 0.25\n")
    assert import_string_of(notebook.train, Path()) != first


def test_another_name_of_a_function_is_included(define: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is used by a second name has both names in the module."""
    define("def double(x):\n    return 2 * x\n")
    define("twice = double\n")
    notebook = define("def train(seed):\n    return {'loss': twice(seed)}\n")
    assert imported(notebook.train, monkeypatch)(seed=3) == {"loss": 6}


def test_a_class_of_a_notebook(define: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = define("class Model:\n    def fit(self, seed):\n        return {'loss': seed}\n")
    assert imported(notebook.Model, monkeypatch)().fit(3) == {"loss": 3}


def test_a_module_of_the_users_keeps_its_name(define: Define) -> None:
    """A user's module isn't replaced by the notebook's module of the same name."""
    Path("cells.py").write_text("")
    notebook = define("def train(seed):\n    return {'loss': seed}\n")
    assert import_string_of(notebook.train, Path())[0] == "cells_:train"


def test_a_function_of_a_module_is_named(define: Define) -> None:
    assert import_string_of(linecache.getline, Path()) == ("linecache:getline", None)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ("model = object()", "def train(seed):\n    return model\n"),
            "train uses model of the notebook, an object of",
        ),
        (
            (
                "x = open",
                "lock = __import__('threading').Lock()",
                "def f():\n    return lock\n",
                "def train(seed):\n    f()\n",
            ),
            "f uses lock of the notebook, an object of lock",
        ),
        (("train = lambda seed: {'loss': 1.0}",), "train must be a function or a class at the top of"),
        (
            ("double = dict(\n    of=lambda x: 2 * x\n)['of']", "def train(seed):\n    return double(seed)\n"),
            "the source of double isn't known: define it with def or class",
        ),
        (
            (
                "def doubled(f):\n    def inner(x):\n        return 2 * f(x)\n    return inner\n",
                "@doubled\ndef same(x):\n    return x\n",
                "def train(seed):\n    return same(seed)\n",
            ),
            "the source of same isn't known: .*; decorators must use functools.wraps",
        ),
    ],
)
def test_dependencies_that_cant_be_included_are_named(define: Define, cells: tuple[str, ...], message: str) -> None:
    for cell in cells:
        notebook = define(cell)
    with pytest.raises(InputError, match=message):
        import_string_of(notebook.train, Path())


def test_a_function_without_a_known_source(define: Define) -> None:
    notebook = define("exec('def train(seed): return {}')")
    with pytest.raises(InputError, match="the source of train isn't known"):
        import_string_of(notebook.train, Path())

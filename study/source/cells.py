"""A function of a notebook as a module: its source, and that of what it uses of the notebook."""

from __future__ import annotations
import __future__

import ast
import builtins
import hashlib
import inspect
import linecache
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from study.errors import InputError
from study.source.archive import code_cache, placed

MAIN = "__main__"


def import_string_of(called: Any, folder: Path) -> tuple[str, Path | None]:
    """Return an import string for a function or a class, and the folder of its module if that is made from a notebook.

    Args:
        called: the function or class.
        folder: the folder in which modules of one's own are looked for first.

    Raises:
        InputError: if it has no name of its own, or uses what can't be written into a module.
    """
    name, module = getattr(called, "__qualname__", ""), getattr(called, "__module__", None)
    if not name.isidentifier() or module is None:
        raise InputError(
            f"train must be a function or a class at the top of a module or a notebook, but got {called!r}: such code "
            "can be run elsewhere"
        )
    if module != MAIN:
        return f"{module}:{name}", None
    script = getattr(sys.modules[MAIN], "__file__", None)
    if script is not None and Path(script).suffix == ".py":
        return f"{Path(script).stem}:{name}", None
    # Only what is marked may be called by a study file; who hands over a function itself has decided that.
    text = f"{module_text(called)}\nfrom study import seeded as _mark\n\n_mark({name})\n".encode()
    stem = "cells"
    while (folder / f"{stem}.py").exists() or (folder / stem).exists():
        stem += "_"
    files = {f"{stem}.py": text}
    digest = hashlib.sha256(f"{stem}\0".encode() + text).hexdigest()
    return f"{stem}:{name}", placed(files, digest, code_cache().with_name("cells"))


def module_text(called: Any) -> str:
    """Return the text of a module that has a function or a class of a notebook, and all that it uses.

    Imports, functions and classes of the notebook are taken along, and constants that Python can write: numbers, texts,
    and lists, tuples, dicts and sets of these.

    Raises:
        InputError: if it uses anything else, or its source isn't known.
    """
    module = _Module()
    module.add(getattr(called, "__name__", "train"), called, "train")
    return module.text


class _Module:
    """The parts of a module, each once, what is used before what uses it."""

    def __init__(self) -> None:
        self._imports: dict[str, None] = {}
        self._parts: dict[str, str] = {}
        self._has_future = False

    @property
    def text(self) -> str:
        """The text of the module."""
        future = ["from __future__ import annotations\n"] if self._has_future else []
        return "\n".join([*future, *sorted(self._imports), "", *self._parts.values()])

    def add(self, name: str, value: Any, user: str) -> None:
        """Add what a name stands for in the notebook.

        Args:
            name: the name.
            value: what it stands for.
            user: the name of what uses it, for messages.
        """
        if name in self._parts:
            return
        if isinstance(value, ModuleType):
            self._imports[f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")] = None
        elif (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == MAIN:
            self._add_source(name, value)
        elif _can_import(value):
            alias = "" if value.__qualname__ == name else f" as {name}"
            self._imports[f"from {value.__module__} import {value.__qualname__}{alias}"] = None
        elif _is_literal(value):
            self._parts[name] = f"{name} = {value!r}\n"
        else:
            raise InputError(
                f"{user} uses {name} of the notebook, {_kind(value)}, which can't be written into a module for other "
                f"processes: make it inside of {user}, or pass it as a hyperparameter"
            )

    def _add_source(self, name: str, value: Any) -> None:
        source = _source_of(value)
        if source is None:
            raise InputError(f"the source of {name} isn't known: define it in a cell of the notebook, or in a module")
        self._parts[name] = ""  # it may use itself
        tree = ast.parse(source)
        names = vars(sys.modules[MAIN])
        for chain in _used(tree):
            if chain[0] in names and not (
                hasattr(builtins, chain[0]) and names[chain[0]] is getattr(builtins, chain[0])
            ):
                self.add(chain[0], names[chain[0]], name)
                self._add_submodules(chain, names[chain[0]])
        del self._parts[name]
        self._parts[name] = f"\n{source}"
        code = getattr(value, "__code__", None)
        self._has_future |= code is not None and bool(code.co_flags & __future__.annotations.compiler_flag)

    def _add_submodules(self, chain: tuple[str, ...], value: Any) -> None:
        """Import submodules that are used as attributes of their package, as sklearn.datasets."""
        for part in chain[1:]:
            if not isinstance(value, ModuleType) or f"{value.__name__}.{part}" not in sys.modules:
                return
            value = sys.modules[f"{value.__name__}.{part}"]
            self._imports[f"import {value.__name__}"] = None


def _source_of(value: Any) -> str | None:
    """Return the source of a function or a class of the notebook; None if it isn't known."""
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):  # Python looks for classes in a module's file, which a notebook hasn't
        pass
    for _, _, lines, _ in reversed([entry for entry in linecache.cache.values() if len(entry) == 4]):
        source = "".join(lines)
        if f"class {value.__name__}" in source:
            with suppress(SyntaxError):  # a cell may have commands of the notebook
                for node in ast.walk(ast.parse(source)):
                    if isinstance(node, ast.ClassDef) and node.name == value.__name__:
                        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                        return "".join(lines[first - 1 : node.end_lineno])
    return None


def _used(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield the names that a source uses, each with the attributes that follow it."""
    for node in ast.walk(tree):
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            yield (node.id, *reversed(parts))


def _can_import(value: Any) -> bool:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    return isinstance(module, str) and name.isidentifier() and getattr(sys.modules.get(module), name, None) is value


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except Exception:  # objects may have any repr, and any comparison
        return False


def _kind(value: Any) -> str:
    return f"an object of {type(value).__name__}"

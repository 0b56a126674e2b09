"""Modules made from a notebook's function: its source and that of all names it uses from the notebook."""

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
    """Return an import string for a function or class, and the folder of its module if that is made from a notebook.

    Args:
        called: the function or class.
        folder: the first folder in which the user's modules are searched.

    Returns:
        The import string, and the folder of the generated module; None if the object lies in a module or script.

    Raises:
        InputError: if the object has no top-level name, its source isn't available, or it uses objects that can't be
            written into a module; also if the generated module was changed, or its folder isn't private.
        OSError: if the generated module can't be written.
    """
    name, module = getattr(called, "__qualname__", ""), getattr(called, "__module__", None)
    if not name.isidentifier() or module is None:
        raise InputError(
            f"train must be a function or a class at the top of a module or a notebook, but got {called!r}: "
            "other processes must be able to import it"
        )
    if module != MAIN:
        return f"{module}:{name}", None
    script = getattr(sys.modules[MAIN], "__file__", None)
    if script is not None and Path(script).suffix == ".py":
        return f"{Path(script).stem}:{name}", None
    # Study files may call marked objects only; by passing the function itself the user has agreed to mark it.
    text = f"{module_text(called)}\nfrom study import seeded as _mark\n\n_mark({name})\n".encode()
    stem = "cells"
    while (folder / f"{stem}.py").exists() or (folder / stem).exists():
        stem += "_"
    files = {f"{stem}.py": text}
    digest = hashlib.sha256(f"{stem}\0".encode() + text).hexdigest()
    return f"{stem}:{name}", placed(files, digest, code_cache().with_name("cells"))


def module_text(called: Any) -> str:
    """Return the text of a module with a notebook's function or class and everything that it uses.

    This includes imports, functions, classes and literals of the notebook: finite numbers, strings, bytes, True, False,
    None, and lists, tuples, dicts and sets of these.

    Raises:
        InputError: if the object uses anything else, or its source isn't available.
    """
    module = _Module()
    module.add(getattr(called, "__name__", "train"), called, "train")
    return module.text


class _Module:
    """The parts of a module, each once, dependencies first."""

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
        """Add a notebook's name, its value and its dependencies.

        Raise InputError if the value can't be written into a module; the message names the `user`, which uses it.
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
                f"processes: make it inside {user}, or pass it as a hyperparameter"
            )

    def _add_source(self, name: str, value: Any) -> None:
        """Add the source of a function or class of the notebook, after everything that it uses.

        Raise InputError if it isn't available.
        """
        source = _source_of(value)
        if source is None:
            raise InputError(f"the source of {name} isn't known: define it in a cell of the notebook, or in a module")
        self._parts[name] = ""  # it may use itself
        names = vars(sys.modules[MAIN])
        tree = _tree_of(source)
        bound = set() if tree is None else _bound_names(tree)
        is_alias = value.__name__ in bound and names.get(value.__name__) is value
        if tree is None or not (name in bound or is_alias):  # Python knows only the lines of a lambda
            raise InputError(
                f"the source of {name} isn't known: define it with def or class; decorators must use functools.wraps"
            )
        if name not in bound:
            source += f"\n{name} = {value.__name__}\n"
        for chain in _used_names(tree):
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
        """Import submodules that are used as attributes of their package, such as sklearn.datasets."""
        for part in chain[1:]:
            if not isinstance(value, ModuleType) or f"{value.__name__}.{part}" not in sys.modules:
                return
            value = sys.modules[f"{value.__name__}.{part}"]
            self._imports[f"import {value.__name__}"] = None


def _source_of(value: Any) -> str | None:
    """Return the source of a function or class of the notebook, or None if it isn't available."""
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):  # Python reads a class's source from the module's file, and a notebook has none
        pass
    for _, _, lines, _ in reversed([entry for entry in linecache.cache.values() if len(entry) == 4]):
        source = "".join(lines)
        if f"class {value.__name__}" in source:
            with suppress(SyntaxError):  # a cell may contain notebook commands
                for node in ast.walk(ast.parse(source)):
                    if isinstance(node, ast.ClassDef) and node.name == value.__name__:
                        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                        return "".join(lines[first - 1 : node.end_lineno])
    return None


def _tree_of(source: str) -> ast.Module | None:
    """Parse a source; return None if it isn't whole."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return None


def _bound_names(tree: ast.Module) -> set[str]:
    """Return the names that a module's definitions and assignments to single names bind."""
    targets = [node.targets for node in tree.body if isinstance(node, ast.Assign)]
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, definitions)} | {
        target.id for group in targets for target in group if isinstance(target, ast.Name)
    }


def _used_names(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield each name that a source uses, with the attributes that follow it."""
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
    except Exception:  # an object's repr and comparison may raise anything
        return False


def _kind(value: Any) -> str:
    return f"an object of {type(value).__name__}"

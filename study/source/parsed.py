"""Digest of parsed code, independent of comments, docstrings and formatting.

The syntax tree is written in a form that doesn't depend on Python's version, unlike `ast.dump` and `ast.unparse`.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any, Final

READS_DOCSTRINGS: Final = frozenset({"__doc__", "getdoc"})
"""Names by which code reads docstrings: if one occurs, docstrings are part of the digest."""

READS_SOURCE: Final = frozenset({"getsource", "getsourcelines", "findsource", "f_lineno", "currentframe", "_getframe"})
"""Names by which code reads its own text or line numbers: if one occurs, every byte is part of the digest."""

_LEFT_OUT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_HAVE_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def parsed_digest(files: Mapping[str, bytes]) -> str:
    r"""Return the hexadecimal SHA-256 of files, with Python sources hashed as parsed.

    Comments, docstrings and formatting of sources are ignored. Other files, and sources that can't be parsed, are
    hashed byte by byte. Docstrings count if the code reads docstrings (`READS_DOCSTRINGS`); every byte counts if it
    reads its own text (`READS_SOURCE`).

    Args:
        files: contents by name.

    Example:
        >>> parsed_digest({"a.py": b"x = 1  # one\n"}) == parsed_digest({"a.py": b"x=1"})
        True
        >>> parsed_digest({"a.txt": b"x = 1"}) == parsed_digest({"a.txt": b"x=1"})
        False
    """
    digest = hashlib.sha256()
    for name, content in parsed_files(files).items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def parsed_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return each file's part of `parsed_digest`, sorted by name.

    It is the syntax tree as text; of a file hashed byte by byte, its bytes and a zero byte.
    """
    trees = {name: tree for name in files if name.endswith(".py") and (tree := _parse(files[name])) is not None}
    if any(_uses(tree, files[name], READS_SOURCE) for name, tree in trees.items()):
        trees = {}
    with_docstrings = any(_uses(tree, files[name], READS_DOCSTRINGS) for name, tree in trees.items())
    return {
        name: _as_text(trees[name], with_docstrings).encode() if name in trees else files[name] + b"\0"
        for name in sorted(files)
    }


def _parse(source: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an unknown escape in the user's source
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _uses(tree: ast.Module, source: bytes, names: Collection[str]) -> bool:
    if not any(name.encode() in source for name in names):  # much faster than searching the tree
        return False
    return any(
        getattr(node, field, None) in names for node in ast.walk(tree) for field in ("id", "attr", "name", "value")
    )


def _as_text(tree: ast.Module, with_docstrings: bool) -> str:
    """Write a syntax tree without positions, contexts and empty fields.

    New versions of Python add fields to nodes, which are empty unless new syntax is used.
    """
    written: list[str] = []
    waiting: list[Any] = [tree]  # a stack: a tree may be deeper than Python recurses
    while waiting:
        item = waiting.pop()
        if item is _END:
            written.append(")")
        elif isinstance(item, ast.AST):
            written.append(f"{type(item).__name__}(")
            waiting.append(_END)
            for name in reversed(item._fields):
                value = _field(item, name, with_docstrings)
                if value is not None and value != []:
                    waiting += (value, _FieldName(name))
        elif isinstance(item, _FieldName):
            written.append(f"{item}=")
        elif isinstance(item, list):
            written.append("(")
            waiting.append(_END)
            waiting += reversed(item)
        else:
            written.append(_constant(item))
    return "".join(written)


_END = object()


class _FieldName(str):
    """The name of a node's field, unlike a string in the tree."""

    __slots__ = ()


def _field(node: ast.AST, name: str, with_docstrings: bool) -> Any:
    """Return the hashed part of a node's field; an f-string's texts are joined, since Python versions split them."""
    if name in _LEFT_OUT:
        return None
    value: Any = getattr(node, name, None)
    if name == "body" and not with_docstrings and _has_docstring(node):
        return value[1:]
    if name == "values" and isinstance(node, ast.JoinedStr):
        return _joined(value)
    if name == "format_spec" and isinstance(value, ast.JoinedStr) and not _joined(value.values):
        return None
    return value


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """Join neighbouring texts of an f-string, and drop empty ones."""
    joined: list[ast.expr] = []
    for is_text, group in groupby(values, lambda value: isinstance(value, ast.Constant)):
        if is_text:
            text = "".join(str(value.value) for value in group if isinstance(value, ast.Constant))
            joined += [ast.Constant(text)] if text else []
        else:
            joined += group
    return joined


def _constant(value: object) -> str:
    """Write a constant with its type, in ASCII, since `repr` depends on the Python version's Unicode tables."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"int:{value:x};"
    return f"{type(value).__name__}:{value!a};"


def _has_docstring(node: ast.AST) -> bool:
    first = next(iter(node.body), None) if isinstance(node, _HAVE_DOCSTRING) else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)

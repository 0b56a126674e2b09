"""Imported modules of a source file, read from its text without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

_BY_CALL = ("import_module", "__import__")


def imported_packages(source: bytes) -> set[str]:
    r"""Return the top-level names of all modules that a source imports.

    Imports inside functions and conditions count: the result depends on the text alone, so it is the same on all
    machines. So do calls of `import_module` and `__import__` whose first argument is a literal text. Relative imports
    aren't listed, since they stay in their package.

    Args:
        source: the file's bytes. A file that can't be parsed as Python imports nothing.

    Example:
        >>> sorted(imported_packages(b"import os.path\nfrom helpers import a\nfrom . import b"))
        ['helpers', 'os']
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the user's source warns when it is imported
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return set()
    return {name.partition(".")[0] for node in ast.walk(tree) for name in _names(node)} - {""}


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the full names of the modules that a node of the syntax tree imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        yield node.module
    elif isinstance(node, ast.Call) and node.args:
        function, name = node.func, node.args[0]
        called = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if called in _BY_CALL and isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value

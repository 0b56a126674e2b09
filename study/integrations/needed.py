"""The error for a library that isn't installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from study.errors import MissingPackageError


@contextmanager
def needed(module: str, package: str) -> Iterator[None]:
    """Turn the failed import of a library into an error with the command to install it.

    Args:
        module: the library's top-level module, such as `transformers`.
        package: the argument of `pip install`.

    Raises:
        MissingPackageError: if the module isn't installed, or lacks an imported submodule.
        ModuleNotFoundError: if another module isn't installed, such as one that the library imports.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        message = f"this integration needs {module}, which isn't installed: pip install {package}"
        raise MissingPackageError(message) from None

"""Configuration files of studies: their values are fixed hyperparameters, unless the study file sets them."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from study.spec.document import Document, Path, read, where
from study.spec.settings_form import given_values, has_nested_settings

_OPEN = "???"
"""OmegaConf's mark of a mandatory value that is given elsewhere."""


def with_config_file(document: Document, folder: pathlib.Path) -> str:
    """Add the values of the study file's configuration file to its fixed hyperparameters, in place.

    Names in nested tables are joined by dots. Values that the study file sets take precedence, and Hydra's own table
    `hydra` is ignored. The key `config` is removed. For other studies than those of functions and programs, and if
    `config` isn't a text, this is a no-op. If the file can't be read, isn't a table or has a key `defaults`, problems
    are added to the document's problems, and no values. Each open value (``???``) is added with a problem.

    Args:
        document: the study file, normalized.
        folder: the folder to which the configuration file's path is relative.

    Returns:
        The configuration file's path as given; empty if there is none, or it can't be used.
    """
    data = document.data
    if not isinstance(data, dict) or not has_nested_settings(data) or not isinstance(data.get("config"), str):
        return ""
    name: str = data.pop("config")
    try:
        content = read((folder / name).read_bytes())
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        document.problems.append(document.problem(("config",), f"{name} can't be read: {reason}"))
        return ""
    if content.problems or not isinstance(content.data, dict):
        reasons = [f"line {problem.line}: {problem.message}" for problem in content.problems] or ["must be a table"]
        document.problems += [document.problem(("config",), f"{name}: {reason}") for reason in reasons]
        return ""
    if "defaults" in content.data:
        message = (
            f"{name} has a defaults list, which only Hydra can compose: remove config, and run the program with "
            "command: python train.py lr={lr} seed={seed}"
        )
        document.problems.append(document.problem(("config",), message))
        return ""
    given = given_values(data)
    fixed = data.setdefault("fixed", {})
    for path, value in _leaves({key: item for key, item in content.data.items() if key != "hydra"}, ()):
        key = ".".join(map(str, path))
        if key in given or not isinstance(fixed, dict):
            continue
        fixed[key] = value
        document.places["fixed", key] = f"{name}, line {content.line(path)}"
        if value == _OPEN:
            message = f"{name} leaves {where(path)} open (???): set it under fixed, grid, zip, points or ranges"
            document.problems.append(document.problem(("fixed", key), message))
    return name


def _leaves(table: Mapping[str, Any], at: Path) -> Iterator[tuple[Path, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*at, key))
        else:
            yield (*at, key), value

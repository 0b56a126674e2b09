"""Import of own models for a family's tasks, from a copy of their code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.errors import InputError
from study.interface.family import Family
from study.plugins import offers
from study.plugins.import_string import ImportString, is_import_string, parse_import_string
from study.source import CodeFolder, SourceCode, read_source_code
from study.spec.document import Path as Place
from study.spec.own_code import CodeSpec
from study.spec.tables import TaskSpec


class OwnModelsSpec(CodeSpec, TaskSpec):
    """A study of a family's tasks with own models."""

    @property
    def head(self) -> dict[str, Any]:
        """The task's name, the version and the included files, by the file's keys; without those that it lacks."""
        return super().head | self.written("version", "include")


class OwnModelsError(Exception):
    """Own models that can't be imported.

    Args:
        mistakes: error messages, each with its place in the study file.
    """

    def __init__(self, mistakes: Sequence[tuple[Place, str]]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


def own_models(data: Mapping[str, Any], family: Family) -> dict[Place, str]:
    """Return the names of the own models and plug-in models of a study file, by place."""
    listed = data.get("models")
    models = listed if isinstance(listed, list) else []
    names = {("models", i): item.get("name") if isinstance(item, dict) else item for i, item in enumerate(models)}
    return {place: name for place, name in names.items() if isinstance(name, str) and _is_own(name, family)}


def load_own_models(
    data: Mapping[str, Any], family: Family, folder: Path, identify: Callable[[str, SourceCode], str]
) -> tuple[Family, SourceCode]:
    """Copy the code of own models, import them from the copy, and add them to the family.

    Args:
        data: the content of the study's file.
        family: the family of its task.
        folder: the folder of the file, searched first for modules.
        identify: returns the code's identity from the study's name and the code; unused if the file has `version`.

    Returns:
        The family with the models, and the code.

    Raises:
        OwnModelsError: if a model doesn't exist, isn't derived from `torch.nn.Module` or marked by `study.seeded`,
            fails on import, or doesn't fit the family, or the code can't be read or copied.
        InputError: if this process has imported an installed module with the name of one of the code's.
        OSError: if the cache of code can't be written.
        Exception: as `identify` raises, but an InputError becomes an OwnModelsError.
    """
    names, objects, mistakes = own_models(data, family), dict[Place, ImportString](), list[tuple[Place, str]]()
    for place, name in names.items():
        try:
            objects[place] = parse_import_string(name) if is_import_string(name) else offers.find_plugin("units", name)
            read_source_code([objects[place]], folder)
        except InputError as error:
            mistakes.append((place, str(error)))
    if mistakes:
        raise OwnModelsError(mistakes)
    version, include = data.get("version"), data.get("include")
    patterns = include if isinstance(include, list) else []  # mistakes in these are reported when the file is checked
    try:
        code = read_source_code(list(objects.values()), folder, [item for item in patterns if isinstance(item, str)])
        copy = code.unpacked()
        identity = code.identity(version) if isinstance(version, str | int) else identify(str(data.get("study")), code)
    except InputError as error:
        raise OwnModelsError([(next(iter(objects)), str(error))]) from None
    aliases = {name: str(objects[place]) for place, name in names.items() if not is_import_string(name)}
    classes: dict[str, Any] = {}
    with CodeFolder(copy) as opened:
        from torch import nn

        for place, import_string in objects.items():
            try:
                class_ = opened.load(import_string, (nn.Module,))
                family.with_models({str(import_string): class_}, identity, aliases)
                classes[str(import_string)] = class_
            except (InputError, TypeError) as error:
                mistakes.append((place, str(error)))
        if mistakes:
            raise OwnModelsError(mistakes)
        return family.with_models(classes, identity, aliases), code


def _is_own(name: str, family: Family) -> bool:
    return name not in family.models and (is_import_string(name) or offers.is_offered("units", name))

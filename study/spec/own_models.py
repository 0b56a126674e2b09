"""Models of a user's own beside those of a family: their code is copied, and imported from the copy."""

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
    """A study of a family's tasks with models of a user's own."""

    @property
    def head(self) -> dict[str, Any]:
        """What the file says of the task beside hyperparameters, models and seeds."""
        return super().head | self.written("version", "include")


class OwnModelsError(Exception):
    """Models can't be read.

    Args:
        mistakes: each with its place in the study file.
    """

    def __init__(self, mistakes: Sequence[tuple[Place, str]]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


def own_models(data: Mapping[str, Any], family: Family) -> dict[Place, str]:
    """Return the models of a study file that are a user's own, or a plug-in's, by their places."""
    listed = data.get("models")
    models = listed if isinstance(listed, list) else []
    names = {("models", i): one.get("name") if isinstance(one, dict) else one for i, one in enumerate(models)}
    return {place: name for place, name in names.items() if isinstance(name, str) and _is_own(name, family)}


def load_own_models(
    data: Mapping[str, Any], family: Family, folder: Path, identify: Callable[[str, SourceCode], str]
) -> tuple[Family, SourceCode]:
    """Read the code of models, copy it, import them from the copy, and return the family with them.

    Args:
        data: the content of the study's file.
        family: the family of its task.
        folder: the folder of the file, in which modules are looked for first.
        identify: returns the code's identity for the study's name and the code; a `version` of the file precedes it.

    Raises:
        OwnModelsError: if something isn't there, fails, or isn't a model of the family.
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
    patterns = (
        include if isinstance(include, list) else []
    )  # what is wrong with either is told when the file is checked
    try:
        code = read_source_code(list(objects.values()), folder, [one for one in patterns if isinstance(one, str)])
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

"""From the names of a task and models to what they declare: their code is copied, and imported from the copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from study.errors import InputError
from study.source import (
    CodeFolder,
    ImportString,
    SourceCode,
    code_cache,
    find_plugin,
    is_import_string,
    is_offered,
    parse_import_string,
    read_source_code,
    unpacked,
)
from study.spec.document import Path as Place
from study.spec.own_code import RESERVED, success_mistakes
from study.spec.packed_tables import AnyPackedSpec, PackedSpec
from tasks import MODELS, TASKS
from tasks.declarations import Hyperparameter, Metric
from tasks.packed_family import TRAINING, PackedFamily, task_field
from tasks.signature import SignatureError, hyperparameters_of

_TASK: Place = ("task", "name")
_RESERVED = (*RESERVED, *TRAINING)


class PackedError(Exception):
    """A task and models can't be read.

    Args:
        mistakes: each with its place in the study file.
    """

    def __init__(self, mistakes: list[tuple[Place, str]]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


@dataclass(frozen=True)
class _Declared:
    """What a task and models declare, while it is read."""

    fields: dict[str, Hyperparameter]
    metrics: Mapping[str, Metric]
    arguments: dict[str, dict[str, Hyperparameter]]


def names_own_task(data: Mapping[str, Any]) -> bool:
    """Tell whether a study file names a task of one's own: by an import string, or by the name of a plug-in."""
    task = data.get("task")
    name = task.get("name") if isinstance(task, Mapping) else None
    return isinstance(name, str) and name not in TASKS and (is_import_string(name) or is_offered("tasks", name))


def with_import_strings(data: dict[str, Any], aliases: Mapping[str, str]) -> None:
    """Replace the names of plug-ins in a study file's data by the import strings that they stand for."""

    def replace_in(table: Any, key: str | int) -> None:
        if isinstance(table[key], str):
            table[key] = aliases.get(table[key], table[key])

    replace_in(data["task"], "name")
    for i, model in enumerate(data["models"]):
        replace_in(*((model, "name") if isinstance(model, dict) else (data["models"], i)))
    seeds = data.get("seeds")
    until = seeds.get("until") if isinstance(seeds, dict) else None
    if isinstance(until, dict) and "different_from" in until:
        replace_in(until, "different_from")


def load_packed(spec: AnyPackedSpec, folder: Path) -> tuple[PackedFamily, SourceCode]:
    """Read the code of a task and its models, copy it, import them from the copy, and read what they declare.

    Args:
        spec: the study that names them.
        folder: the folder of the study file, in which modules are looked for first.

    Raises:
        PackedError: if something isn't there, fails, or doesn't fit together; it has every mistake.
    """
    names = {_TASK: spec.task_name} | {("models", i): model.name for i, model in enumerate(spec.model_tables)}
    built_in = {place: name for place, name in names.items() if place != _TASK and name in MODELS}
    names = {place: name for place, name in names.items() if place not in built_in}
    objects, mistakes = {}, list[tuple[Place, str]]()
    for place, name in names.items():
        try:
            objects[place] = _import_string(place, name)
            read_source_code([objects[place]], folder)
        except InputError as error:
            mistakes.append((place, str(error)))
    if mistakes:
        raise PackedError(mistakes)
    try:
        code = read_source_code(list(objects.values()), folder, spec.include)
        copy = unpacked(code.archive, code.digest, code_cache()) if code.files else None
    except InputError as error:
        raise PackedError([(_TASK, str(error))]) from None
    declared = _declared(objects, copy, built_in)
    aliases = {name: str(objects[place]) for place, name in names.items() if not is_import_string(name)}
    family = PackedFamily(
        str(objects[_TASK]), declared.fields, declared.arguments, declared.metrics, code.identity(spec.version), aliases
    )
    return family, code


def _import_string(place: Place, name: str) -> ImportString:
    if is_import_string(name):
        return parse_import_string(name)
    if place != _TASK and is_offered("units", name):
        return find_plugin("units", name)
    kind, known = ("tasks", TASKS) if place == _TASK else ("models", MODELS)
    return find_plugin(kind, name, known)


def _declared(objects: Mapping[Place, ImportString], copy: Path | None, built_in: Mapping[Place, str]) -> _Declared:
    """Import a task and models from a copy of their code, and read what they and built-in models declare."""
    from torch import nn  # only here: a file that names none of one's own is read without torch

    from tasks.networks import GIVEN, network_of_units
    from tasks.task import Task, check_task_class
    from units import Unit

    def arguments_of(builder: Callable[..., nn.Module]) -> dict[str, Hyperparameter]:
        given = GIVEN if builder is network_of_units else ()
        return hyperparameters_of(builder, given=given, optional=(), reserved=_RESERVED)

    mistakes: list[tuple[Place, str]] = []
    fields: dict[str, Hyperparameter] = {}
    metrics: Mapping[str, Metric] = {}
    of_units = arguments_of(network_of_units)
    arguments: dict[str, dict[str, Hyperparameter]] = dict.fromkeys(built_in.values(), of_units)
    with CodeFolder(copy) as opened:
        for place, name in objects.items():
            try:
                if place == _TASK:
                    task = opened.load(name, (Task,))
                    if not (isinstance(task, type) and issubclass(task, Task)):
                        raise InputError(f"{name} must be a class derived from tasks.task.Task, but is {task!r}")
                    check_task_class(task)
                    fields, metrics = _fields(task), task.metrics
                else:
                    model = opened.load(name, (nn.Module,))
                    is_unit = isinstance(model, type) and issubclass(model, Unit)
                    arguments[str(name)] = of_units if is_unit else arguments_of(model)
            except (InputError, SignatureError, TypeError) as error:
                mistakes.append((place, str(error).replace(f"{copy}{os.sep}", "")))  # as the user knows the file
    if not mistakes:
        own = {place: str(name) for place, name in objects.items() if place != _TASK}
        models = {**own, **built_in}
        mistakes += _clashes(str(objects[_TASK]), models, _Declared(fields, metrics, arguments))
    if mistakes:
        raise PackedError(mistakes)
    return _Declared(fields, metrics, arguments)


def _fields(task: type[Any]) -> dict[str, Hyperparameter]:
    declared = hyperparameters_of(task, given=(), optional=(), reserved=_RESERVED)
    return {name: task_field(name, one) for name, one in declared.items()}


def _clashes(task: str, models: Mapping[Place, str], declared: _Declared) -> Iterator[tuple[Place, str]]:
    """Yield the names that mean two things."""
    first: dict[str, tuple[str, Any]] = {}
    for place, model in sorted(models.items()):
        for name, one in declared.arguments[model].items():
            if name in declared.fields:
                yield place, f"{model} has an argument {name}, and {task} a field of that name; give one another name"
            schema = TypeAdapter(one.type).json_schema()
            other, others = first.setdefault(name, (model, schema))
            if schema != others:
                yield place, f"{model} and {other} have an argument {name} of different types; give one another name"
    of_models = {name for arguments in declared.arguments.values() for name in arguments}
    for name in declared.metrics:
        if name in _RESERVED:
            yield _TASK, f"the name of the metric {name} means something else in a study's results; give it another one"
        elif name in declared.fields or name in of_models:
            yield _TASK, f"the metric {name} is called like a hyperparameter; give it another name"


def packed_mistakes(spec: PackedSpec) -> Iterator[tuple[Place, str]]:
    """Yield what must hold between the parts of a study of a task of one's own, and doesn't, each with its place."""
    yield from success_mistakes(spec, spec.declared.metrics)

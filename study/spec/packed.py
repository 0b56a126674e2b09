"""Import of packed tasks and their models, own code from a copy, and of their declarations."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from study.errors import InputError
from study.interface.declarations import MOST_IN_PACK, REQUIRED, UPDATE_US, Hyperparameter, Metric
from study.interface.packed_family import TRAINING, PackedFamily, task_field
from study.interface.signature import SignatureError, arguments_of, canonical, hyperparameters_of
from study.interface.stop_signals import exceptions_only
from study.plugins import offers
from study.plugins.families import is_family_task
from study.plugins.packed_tasks import (
    builder_of,
    is_stable_task,
    model_names,
    model_set_names,
    packed_task,
    revision_of,
)
from study.source import (
    CodeFolder,
    ImportString,
    SourceCode,
    SourceData,
    is_import_string,
    parse_import_string,
    read_source_code,
)
from study.spec.data_files import Digests, named_data
from study.spec.document import Path as Place
from study.spec.own_code import RESERVED, success_mistakes
from study.spec.packed_tables import AnyPackedSpec, PackedSpec
from study.spec.references import reference_mistakes

if TYPE_CHECKING:
    from study.interface.task import Task

_TASK: Place = ("task", "name")
_RESERVED = (*RESERVED, *TRAINING)


class PackedError(Exception):
    """A task and models that can't be imported.

    Args:
        mistakes: error messages, each with its place in the study file.
    """

    def __init__(self, mistakes: list[tuple[Place, str]]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


@dataclass(frozen=True)
class _Declared:
    """Declarations of a task and its models."""

    fields: dict[str, Hyperparameter]
    metrics: Mapping[str, Metric]
    arguments: dict[str, dict[str, Hyperparameter]]
    data: list[tuple[str, SourceData]]
    trials_at_once: int = MOST_IN_PACK
    update_us: float = UPDATE_US
    remarks: Sequence[str] = ()

    @property
    def digests(self) -> dict[str, dict[str, str]]:
        """The digests of the data, by field and path."""
        fields = dict.fromkeys(name for name, _ in self.data)
        return {field: {source.path: source.digest for name, source in self.data if name == field} for field in fields}


def names_packed_task(data: Mapping[str, Any]) -> bool:
    """Return True if a study file names a packed task: a stable task, an import string, or a plug-in."""
    task = data.get("task")
    name = task.get("name") if isinstance(task, Mapping) else None
    if not isinstance(name, str) or is_family_task(name):
        return False
    return is_stable_task(name) or is_import_string(name) or offers.is_offered("tasks", name)


def with_import_strings(data: dict[str, Any], aliases: Mapping[str, str]) -> None:
    """Replace the names of plug-ins in a study file's data by their import strings, in place.

    They are replaced in the task, the models, `references.model` and `seeds.until.different_from`.

    Args:
        data: the file's data, with a valid task and list of models.
        aliases: import strings by name; other names stay.
    """

    def replace_in(table: Any, key: str | int) -> None:
        name = table.get(key) if isinstance(table, dict) else table[key]
        if isinstance(name, str):
            table[key] = aliases.get(name, name)

    replace_in(data["task"], "name")
    for i, model in enumerate(data["models"]):
        replace_in(*((model, "name") if isinstance(model, dict) else (data["models"], i)))
    references = data.get("references")
    if isinstance(references, dict) and "model" in references:
        replace_in(references, "model")
    seeds = data.get("seeds")
    until = seeds.get("until") if isinstance(seeds, dict) else None
    if isinstance(until, dict) and "different_from" in until:
        replace_in(until, "different_from")


def load_packed(
    spec: AnyPackedSpec, data: Mapping[str, Any], folder: Path, identify: Callable[[str, SourceCode], str]
) -> tuple[PackedFamily, SourceCode, tuple[SourceData, ...]]:
    """Copy the code of a task and its models, import them from the copy, and read their declarations.

    Stable tasks and models of the package are imported directly, without a copy. The task's data files are read, copied
    to the data cache, and registered in this process (`study.spec.data_files.named_data`).

    Args:
        spec: the study that names them.
        data: the content of its file.
        folder: the folder of the study file, searched first for modules and data.
        identify: returns the code's identity from the study's name and the code; unused if the file has `version`.

    Returns:
        The family with the declarations, the code, and the data files of the task's fields.

    Raises:
        PackedError: if an object or data file doesn't exist or fails, or doesn't fit the others, an object isn't marked
            by `study.seeded` or derived from `Task` or `torch.nn.Module`, or code or data can't be read or copied.
        InputError: if a stable task or a model set of an installed package can't be imported, or this process has
            imported an installed module with the name of one of the code's.
        OSError: if the cache of code can't be written.
        Exception: as `identify` raises.
    """
    places = {_TASK: spec.task_name} | {("models", i): model.name for i, model in enumerate(spec.model_tables)}
    known = model_names(packed_task(spec.task_name)) if is_stable_task(spec.task_name) else model_set_names()
    stable = {
        place: name for place, name in places.items() if (is_stable_task(name) if place == _TASK else name in known)
    }
    names = {place: name for place, name in places.items() if place not in stable}
    objects, mistakes = {}, list[tuple[Place, str]]()
    for place, name in names.items():
        try:
            objects[place] = _import_string(place, name, known)
            read_source_code([objects[place]], folder)
        except InputError as error:
            mistakes.append((place, str(error)))
    if mistakes:
        raise PackedError(mistakes)
    try:
        code = read_source_code(list(objects.values()), folder, spec.include)
        copy = code.unpacked()
    except InputError as error:
        raise PackedError([(_TASK, str(error))]) from None
    declared = _Declaring(spec, objects, stable, copy).declared(data, folder)
    family = PackedFamily(
        stable.get(_TASK) or str(objects[_TASK]),
        declared.fields,
        declared.arguments,
        declared.metrics,
        identify(spec.study, code) if spec.version is None else code.identity(spec.version),
        aliases={name: str(objects[place]) for place, name in names.items() if not is_import_string(name)},
        revision=revision_of(spec.task_name),
        data=declared.digests,
        trials_at_once=declared.trials_at_once,
        update_us=declared.update_us,
        remarks=declared.remarks,
    )
    return family, code, tuple(source for _, source in declared.data)


def _import_string(place: Place, name: str, known: Collection[str]) -> ImportString:
    if is_import_string(name):
        return parse_import_string(name)
    if place == _TASK:
        return offers.find_plugin("tasks", name, (*offers.names("families"), *offers.names("stable_tasks")))
    if offers.is_offered("units", name):
        return offers.find_plugin("units", name)
    return offers.find_plugin("models", name, known)


class _Declaring:
    """Reader of the declarations of a task and its models.

    Args:
        spec: the study that names them.
        objects: import strings of own objects, by place in the file.
        stable: names of a stable task and its models, by place in the file.
        copy: the folder of the code's copy; None without own code.
    """

    def __init__(
        self, spec: AnyPackedSpec, objects: Mapping[Place, ImportString], stable: Mapping[Place, str], copy: Path | None
    ) -> None:
        self._spec, self._objects, self._stable, self._copy = spec, objects, stable, copy
        self._mistakes: list[tuple[Place, str]] = []

    def declared(self, data: Mapping[str, Any], folder: Path) -> _Declared:
        """Import the task and models, and return their declarations.

        Args:
            data: the content of the study's file.
            folder: the folder of that file.

        Raises:
            PackedError: if an object or data file fails, or doesn't fit the others.
            InputError: if this process has imported an installed module with the name of one of the code's.
        """
        with CodeFolder(self._copy) as opened:
            task = self._read(_TASK, opened, partial(self._task, opened))
            fields = (self._read(_TASK, opened, partial(_fields, task)) if task else None) or {}
            sources = self._sources(data, fields, folder)
            digests = _Declared({}, {}, {}, sources).digests
            made = self._read(_TASK, opened, partial(self._made, task, fields, digests, opened)) if task else None
            metrics = self._read(_TASK, opened, partial(_metrics, made)) or {} if made else getattr(task, "metrics", {})
            arguments = {
                self._name(place): self._read(place, opened, partial(self._arguments, made, place, opened)) or {}
                for place in [*self._objects, *self._stable]
                if place != _TASK
            }
        declared = _Declared(fields, metrics, arguments, sources)
        if made:
            declared = replace(
                declared, trials_at_once=made.most_in_pack, update_us=made.update_us, remarks=tuple(made.remarks)
            )
        if not self._mistakes:
            models = {place: self._name(place) for place in [*self._objects, *self._stable] if place != _TASK}
            self._mistakes += _clashes(self._name(_TASK), models, declared)
        if self._mistakes:
            raise PackedError(self._mistakes)
        return declared

    def _read(self, place: Place, opened: CodeFolder, read: Callable[[], Any]) -> Any:
        """Return the result of `read`; after a mistake, or an error of the user's code, record it and return None."""
        try:
            return read()
        except (InputError, SignatureError, TypeError) as error:
            message = str(error)
        except Exception as error:  # of the user's own `measured`, `draw` or `sizes`
            message = f"{self._name(_TASK)} fails: {opened.reason(error)}"
        message = message.replace(f"{self._copy}{os.sep}", "")  # the path as in the user's folder
        if (place, message) not in self._mistakes:
            self._mistakes.append((place, message))
        return None

    def _sources(
        self, data: Mapping[str, Any], fields: Mapping[str, Hyperparameter], folder: Path
    ) -> list[tuple[str, SourceData]]:
        sources = []
        for place, read in named_data(data, fields, folder):
            if isinstance(read, str):
                self._mistakes.append((place, read))
            else:
                sources.append(read)
        return sources

    def _name(self, place: Place) -> str:
        return self._stable.get(place) or str(self._objects[place])

    def _task(self, opened: CodeFolder) -> type[Task]:
        # imported late: other files are read without torch
        from study.interface.task import Task, check_task_class

        if _TASK in self._stable:
            return packed_task(self._stable[_TASK])
        name = self._objects[_TASK]
        task = opened.load(name, (Task,))
        if not (isinstance(task, type) and issubclass(task, Task)):
            raise InputError(f"{name} must be a class derived from study.Task, but is {task!r}")
        check_task_class(task)
        return task

    def _made(
        self, task: type[Task], fields: Mapping[str, Hyperparameter], digests: Digests, opened: CodeFolder
    ) -> Task | None:
        """Make the task with values of the file; None if a value is missing, or after an earlier mistake.

        If the task can't be made, record a mistake and return None.
        """
        if self._mistakes:  # in code or data that the task may need
            return None
        values = {name: self._value_of(name, field, digests.get(name, {})) for name, field in fields.items()}
        if REQUIRED in values.values():
            return None
        try:
            with exceptions_only():
                return task(**arguments_of(task, values))
        except Exception as error:  # such as inconsistent fields
            reason = opened.reason(error) if self._copy is not None else str(error)
            self._mistakes.append(self._mistake_of(reason, fields))
            return None

    def _mistake_of(self, reason: str, fields: Mapping[str, Hyperparameter]) -> tuple[Place, str]:
        """Return the place and message of a task's failure.

        The place is a field if the reason begins with the field's name or file, otherwise the task.
        """
        set_here = {name: value for name, value in (self._spec.task.model_extra or {}).items() if name in fields}
        for name, value in set_here.items():
            if reason.startswith(f"{name} ") or (fields[name].data is not None and reason.startswith(str(value))):
                return ("task", name), reason.removeprefix(f"{name} ")
        return _TASK, f"{self._name(_TASK)} can't be made: {reason}"

    def _value_of(self, name: str, declared: Hyperparameter, digests: Mapping[str, str]) -> Any:
        """Return a field's first valid value under task, fixed and grid, or else its default, possibly `REQUIRED`."""
        spec = self._spec
        tables: list[Any] = [spec.task.model_extra, spec.fixed, *(model.fixed for model in spec.models)]
        given = [table[name] for table in tables if isinstance(table, Mapping) and name in table]
        grids = [spec.grid, *(model.grid for model in spec.models)]
        given += [table[name][0] for table in grids if isinstance(table, Mapping) and isinstance(table.get(name), list)]
        for value in given:
            try:
                return canonical(declared, digests.get(value, value) if isinstance(value, str) else value)
            except ValueError:  # reported with its line when the file is checked
                continue
        return declared.default

    def _arguments(self, task: Task | None, place: Place, opened: CodeFolder) -> dict[str, Hyperparameter]:
        from torch import nn

        from study.interface.layers import is_pack_layer
        from study.interface.networks import GIVEN, network_of_units

        name = self._stable.get(place)
        builder: Any = None if name else opened.load(self._objects[place], (nn.Module,))
        is_unit = is_pack_layer(builder)
        if task is None and (name or is_unit):
            return hyperparameters_of(network_of_units, given=GIVEN, optional=(), reserved=_RESERVED)
        if task is not None and name:
            builder = builder_of(task, name)
        elif task is not None and is_unit:
            builder = task.network(builder, builder)
        return hyperparameters_of(builder, given=(), optional=(), reserved=_RESERVED)


def _metrics(task: Task) -> Mapping[str, Metric]:
    from study.interface.task import check_metrics

    metrics = task.measured()
    check_metrics(type(task).__name__, metrics)
    return metrics


def _fields(task: type[Task]) -> dict[str, Hyperparameter]:
    declared = hyperparameters_of(task, given=(), optional=(), reserved=_RESERVED)
    return {name: task_field(name, field) for name, field in declared.items()}


def _clashes(task: str, models: Mapping[Place, str], declared: _Declared) -> Iterator[tuple[Place, str]]:
    """Yield a mistake, with its place, for each name with two meanings among fields, arguments, metrics and columns."""
    first: dict[str, tuple[str, Any]] = {}
    for place, model in sorted(models.items()):
        for name, argument in declared.arguments[model].items():
            if name in declared.fields:
                yield place, f"{model} has an argument {name}, and {task} a field of that name: rename one"
            schema = TypeAdapter(argument.type).json_schema()
            other, others = first.setdefault(name, (model, schema))
            if schema != others:
                yield place, f"{model} and {other} have an argument {name} of different types: rename one"
    argument_names = {name for arguments in declared.arguments.values() for name in arguments}
    for name in declared.metrics:
        if name in _RESERVED:
            yield _TASK, f"the name of the metric {name} means something else in a study's results; give it another one"
        elif name in declared.fields or name in argument_names:
            yield _TASK, f"the metric {name} has the name of a hyperparameter: rename one"


def packed_mistakes(spec: PackedSpec) -> Iterator[tuple[Place, str]]:
    """Yield each mistake in success and references of a packed task's study, with its place."""
    yield from success_mistakes(spec, spec.declared.metrics)
    yield from reference_mistakes(spec)

"""Loading of study files to specs, with every mistake and its line in one error."""

from __future__ import annotations

import copy
import pathlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic.json_schema import models_json_schema

from study.errors import InputError, SpecError, nearest
from study.interface.family import Family
from study.interface.values import ChoiceError, quoted
from study.plugins.families import families, family_named, is_family_task
from study.plugins.presets import preset_names, preset_text
from study.source import SourceCode, SourceData
from study.spec.checks import check
from study.spec.config_file import with_config_file
from study.spec.document import Document, Path, read
from study.spec.overrides import Overrides, describe, dump, override
from study.spec.own_models import OwnModelsError, OwnModelsSpec, load_own_models, own_models
from study.spec.settings_form import normalize
from study.spec.tables import Spec, names_at, spec_class

if TYPE_CHECKING:
    from study.spec.packed_tables import AnyPackedSpec

_LIMITS = {"greater_than": (">", "gt"), "greater_than_equal": (">=", "ge"), "less_than": ("<", "lt")}
_LIMITS["less_than_equal"] = ("<=", "le")
_PLACEHOLDERS: dict[str, Any] = {"study": "unnamed", "seeds": 1, "objective": "success_rate", "trials": 10**9}
_MANY_SEEDS = 10**9
_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_NONE: Overrides = {}

Identify = Callable[[str, SourceCode], str]
"""Function that returns the identity of own code, part of trial ids, from the study's name and the code."""


def _own_identity(study: str, code: SourceCode) -> str:
    return code.identity()


def schema() -> dict[str, Any]:
    """Return the JSON schema of a study file, for editors.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.

    Example:
        >>> len(schema()["anyOf"])
        4
    """
    from study.spec.function_tables import AnyFunctionSpec
    from study.spec.packed_tables import AnyPackedSpec
    from study.spec.program_tables import AnyProgramSpec

    shapes: list[type[Spec]] = [
        *(spec_class(family, OwnModelsSpec) for family in families()),
        AnyFunctionSpec,
        AnyPackedSpec,
        AnyProgramSpec,
    ]
    schemas, shared = models_json_schema([(shape, "validation") for shape in shapes])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study",
        "description": "A study of seeded trials: of models that learn a task, of a function, or of a program.",
        "anyOf": [schemas[shape, "validation"] for shape in shapes],
        "$defs": _with_key_descriptions(shared["$defs"]),
    }


def _with_key_descriptions(node: Any) -> Any:
    """Return a JSON schema with descriptions of keys moved from the docstrings of tables to the keys.

    Editors show them there.
    """
    if isinstance(node, list):
        return [_with_key_descriptions(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _with_key_descriptions(value) for key, value in node.items()}
    if isinstance(text := node.get("description"), str):
        about, _, arguments = text.replace("``", "").partition("\n\nArgs:\n")
        node["description"] = " ".join(about.split())
        for name, meaning in _ARGUMENT.findall(arguments):
            if name in node.get("properties", ()):
                node["properties"][name].setdefault("description", " ".join(meaning.split()))
    return node


def load_spec(file: str | pathlib.Path, overrides: Overrides = _NONE, *, identify: Identify = _own_identity) -> Spec:
    """Load a study file or a preset.

    Args:
        file: a path, or a preset's name; a file takes precedence.
        overrides: values that replace those of the file.
        identify: returns the identity of own code; by default `SourceCode.identity`, without looking into a store.
            Unused for a preset.

    Raises:
        SpecError: if the file has mistakes.
        InputError: if the file or preset doesn't exist, the file can't be read, the cache of code can't be written, a
            package of presets can't be imported, or as for `parse_spec`.
        Exception: as `identify` raises, but an OSError becomes an InputError.

    Example:
        >>> load_spec("demo").study
        'demo'
    """
    path = pathlib.Path(file)
    try:
        if path.is_file():
            text = path.read_bytes()
            spec = parse_spec(text, source=str(path), folder=path.parent, overrides=overrides, identify=identify)
            spec._source_file = path
            return spec
    except OSError as error:  # of the study file, its code or the cache of code
        raise InputError(f"{error.filename or path} can't be read or written: {error.strerror}") from error
    names = preset_names()
    if str(file) in names:
        return parse_spec(preset_text(str(file)), source=f"preset {file}", overrides=overrides)
    reason = "a folder isn't a study file" if path.is_dir() else "no such file or preset"
    raise InputError(f"{reason}: {str(file)!r}{nearest(path.stem, names)}; the presets are {', '.join(names)}")


def parse_spec(
    text: str | bytes,
    *,
    source: str,
    folder: pathlib.Path | None = None,
    declared: Family | None = None,
    overrides: Overrides = _NONE,
    identify: Identify = _own_identity,
) -> Spec:
    """Parse a study file.

    Args:
        text: the file's content.
        source: the file's name in errors.
        folder: the folder searched first for own modules; None for the working folder.
        declared: the stored declarations of a study's code, for a study of a store; None to import the code.
        overrides: values that replace those of the file, also in the spec's text.
        identify: returns the identity of own code; by default `SourceCode.identity`, without looking into a store.

    Raises:
        SpecError: if the file has mistakes.
        InputError: if an override is inside a value that isn't a table, a value has no form in YAML, an installed
            family, model set or vocabulary can't be imported, or this process has imported an installed module with
            the name of one of the own code's.
        OSError: if the cache of own code can't be written.
        Exception: as `identify` raises.

    Example:
        >>> parse_spec("{study: a, task: {name: simple}, models: [NMUU], seeds: 0}", source="a.yaml")
        Traceback (most recent call last):
        ...
        study.errors.SpecError: a.yaml: 2 mistakes, nothing was started
          line 1: seeds: must be at least 1 and below 2**63, but got 0
          line 1: models[1]: must be one of NMU, ..., but got 'NMUU'; did you mean 'NMU'?
    """
    document = read(text)
    normalize(document)
    if overrides and isinstance(document.data, dict):
        override(document, overrides)
    config = with_config_file(document, folder or pathlib.Path())
    if (overrides or config) and isinstance(document.data, dict):
        others = " and ".join(filter(None, (config, describe(overrides))))
        text = dump(document.data, f"{pathlib.Path(source).name}, with {others}")
    spec = _spec_of(document, folder or pathlib.Path(), declared, identify)
    if document.problems or spec is None:
        in_order = sorted(document.problems, key=lambda problem: problem.line or 0)
        raise SpecError(source, list(dict.fromkeys(in_order)))
    spec._notices = tuple(document.notices)
    spec._source_folder = folder
    spec._source_text = text if isinstance(text, str) else text.decode("utf-8-sig")
    return spec


def _spec_of(document: Document, folder: pathlib.Path, declared: Family | None, identify: Identify) -> Spec | None:
    """Validate the file's values against the declarations of the family or the user's code, and return the study.

    Mistakes are added to `document.problems`; the study is None if it can't exist without invalid values.
    """
    if not isinstance(document.data, dict):
        if not document.problems:
            message = f"must be a table (`key: value` lines), but is {_kind(document.data)}"
            document.problems.append(document.problem((), message))
        return None
    if "command" in document.data:
        return _program_spec_of(document, folder, declared, identify)
    if "train" in document.data:
        return _function_spec_of(document, folder, declared, identify)
    family = _family_of(document.data)
    if family is None:
        from study.spec.packed import names_packed_task  # imported late: studies of families don't need it

        known = families()
        if declared is not None or names_packed_task(document.data) or not known:
            return _packed_spec_of(document, folder, declared, identify)
        family = known[0]  # its check reports the unknown task
    elif (declared is not None and declared.tasks == family.tasks) or own_models(document.data, family):
        return _own_models_spec_of(document, family, folder, declared, identify)
    spec, unread = _validate(document, spec_class(family))
    if spec is not None:
        document.problems += check(spec, document, unread)
    return spec


def _family_of(data: Mapping[str, Any]) -> Family | None:
    """Return the installed family of the file's task; None without one."""
    task = data.get("task")
    name = task.get("name") if isinstance(task, dict) else None
    return family_named(name) if isinstance(name, str) and is_family_task(name) else None


def _own_models_spec_of(
    document: Document, family: Family, folder: pathlib.Path, declared: Family | None, identify: Identify
) -> Spec | None:
    from study.spec.packed import with_import_strings

    code = None
    if declared is None or declared.tasks != family.tasks:
        try:
            declared, code = load_own_models(document.data, family, folder, identify)
        except OwnModelsError as error:
            _add(document, error.mistakes)
            return None
    with_import_strings(document.data, declared.aliases)
    spec, unread = _validate(document, spec_class(declared, OwnModelsSpec))
    if spec is not None:
        spec._source_code = code
        document.problems += check(spec, document, unread)
    return spec


def _packed_spec_of(
    document: Document, folder: pathlib.Path, declared: Family | None, identify: Identify
) -> Spec | None:
    from study.interface.packed_family import PackedFamily
    from study.spec import data_files, packed, packed_tables

    head, _ = _validate(document, packed_tables.AnyPackedSpec)
    if not isinstance(head, packed_tables.AnyPackedSpec):
        return None
    in_models = any(problem.where.startswith("models") for problem in document.problems)
    code, source_data = None, tuple[SourceData, ...]()
    if not isinstance(declared, PackedFamily):
        try:
            declared, code, source_data = packed.load_packed(head, document.data, folder, identify)
        except packed.PackedError as error:
            _add(document, error.mistakes)
            _check_training(document, head)
            return None
    if in_models:
        _check_training(document, head)
        return None
    packed.with_import_strings(document.data, declared.aliases)
    data_files.with_digests(document.data, declared.data)
    spec, unread = _validate(document, spec_class(declared, packed_tables.PackedSpec))
    if isinstance(spec, packed_tables.PackedSpec):
        spec._source_code, spec._source_data = code, source_data
        document.problems += check(spec, document, unread)
        _add(document, packed.packed_mistakes(spec))
    return spec


def _check_training(document: Document, head: AnyPackedSpec) -> None:
    """Add the mistakes in training settings to the problems of a file whose task or models are unknown.

    All tasks share these settings.
    """
    from study.interface.packed_family import TRAINING, PackedFamily
    from study.spec.packed_tables import PackedSpec

    names = [model.name for model in head.model_tables]
    family = PackedFamily(head.task_name, {}, {name: {} for name in names}, {}, code="")
    scratch = Document(document.data, document.lines, replaced=document.replaced)
    _validate(scratch, spec_class(family, PackedSpec))
    is_known = re.compile(
        rf"protocol\b|(models\[\d+\]\.)?(fixed|grid|ranges|when|points.+|zip\..+)\.({'|'.join(TRAINING)})\b"
    )
    document.problems += [problem for problem in scratch.problems if is_known.match(problem.where)]


def _add(document: Document, mistakes: Iterable[tuple[Path, str]]) -> None:
    """Add mistakes to the document's problems, at places without reported problems."""
    reported = {problem.where for problem in document.problems}
    problems = [document.problem(path, message) for path, message in mistakes]
    document.problems += [problem for problem in problems if problem.where not in reported]


def _function_spec_of(
    document: Document, folder: pathlib.Path, declared: Family | None, identify: Identify
) -> Spec | None:
    # imported late: studies of families don't need it
    from study.interface.function_family import FunctionFamily
    from study.spec import function, function_tables
    from study.spec.calls import call_spec_class
    from study.spec.own_code import success_mistakes

    head, _ = _validate(document, function_tables.AnyFunctionSpec)
    if not isinstance(head, function_tables.FunctionSpec) or "train" in {
        problem.where for problem in document.problems
    }:
        return None
    code = None
    if not isinstance(declared, FunctionFamily):
        try:
            declared, code = function.load_function(head, document.data, folder, identify)
        except InputError as error:
            document.problems.append(document.problem(("train",), str(error)))
            _add(document, success_mistakes(head, head.metrics))
            return None
    spec, unread = _validate(document, call_spec_class(function_tables.FunctionSpec, declared))
    if isinstance(spec, function_tables.FunctionSpec):
        spec._source_code = code
        document.problems += check(spec, document, unread)
        _add(document, function.function_mistakes(spec))
    return spec


def _program_spec_of(
    document: Document, folder: pathlib.Path, declared: Family | None, identify: Identify
) -> Spec | None:
    # imported late: studies of families don't need it
    from study.interface.program_family import ProgramFamily
    from study.spec import program, program_tables
    from study.spec.calls import call_spec_class
    from study.spec.own_code import success_mistakes

    head, _ = _validate(document, program_tables.AnyProgramSpec)
    wrong = {problem.where.partition(".")[0] for problem in document.problems}
    if not isinstance(head, program_tables.ProgramSpec) or {"command", "results", "shell"} & wrong:
        return None
    if mistakes := list(program.command_mistakes(head)):
        _add(document, mistakes)
        return None
    code = None
    if not isinstance(declared, ProgramFamily):
        try:
            declared, code = program.load_program(head, document.data, folder, identify)
        except InputError as error:
            document.problems.append(document.problem(("command",), str(error)))
            _add(document, success_mistakes(head, head.metrics))
            return None
    spec, unread = _validate(document, call_spec_class(program_tables.ProgramSpec, declared))
    if isinstance(spec, program_tables.ProgramSpec):
        spec._source_code = code
        document.problems += check(spec, document, unread)
        _add(document, program.program_mistakes(spec, document.data))
        document.notices += program.program_notices(spec, document.data, code)
    return spec


def _validate(document: Document, class_: type[Spec]) -> tuple[Spec | None, Collection[str]]:
    """Validate the file's values, and add the mistakes to `document.problems`.

    Invalid values are dropped, so that the others are validated too.

    Returns:
        A pair. First, the study without invalid values; None if it can't exist without them. Second, the names of the
        dropped hyperparameters, and `model`, `ranges` and `claims` if these have mistakes.
    """
    data, unread, reported = copy.deepcopy(document.data), set[str](), set[Path]()
    while True:
        try:
            spec = class_.model_validate(data)
        except ValidationError as error:
            errors = error.errors()
        else:
            return spec, unread
        if reported >= {tuple(details["loc"]) for details in errors}:
            return None, unread  # dropping the values didn't help
        for details in errors:
            path = tuple(details["loc"])
            if details["type"] == "too_short" and details["input"]:
                continue  # too short only without its invalid items, which are reported
            if path not in reported:
                document.problems.append(document.problem(_place_of(path), _message(class_, details)))
            reported.add(path)
            unread |= {str(part) for part in path} & _hyperparameters(class_)
            if details["type"] == "extra_forbidden" and len(path) == 1:
                _drop(data, path)  # an unknown key needs no placeholder
                continue
            if path[0] == "models" and len(path) <= 3:
                unread.add("model")
            if "ranges" in path:
                unread.add("ranges")
            if path[0] == "claims":
                unread.add("claims")
            _leave_out(data, path, _placeholders(class_))


def _hyperparameters(class_: type[Spec]) -> set[str]:
    family = getattr(class_, "family", None)  # None before the code is imported
    return set() if family is None else set(family.hyperparameters)


def _place_of(path: Path) -> Path:
    """Return the place of a mistake in the file as written, where a plain value may replace a table.

    Such values are a model's name, a count or list of seeds, a metric's direction, and a word under `success`.
    """
    match path:
        case ("models", _, "name") | ("seeds", "listed") | ("metrics", _, "better") | ("success", _, "word"):
            return path[:-1]
    return path


def _placeholders(class_: type[Spec]) -> Mapping[str, Any]:
    """Return valid placeholders of required keys, by name."""
    # A study has a family only after the import of its code; any installed family serves until then.
    family = getattr(class_, "family", None) or next(iter(families()), None)
    task, model = ("unknown", "unknown") if family is None else (family.tasks[0], family.plainest_model)
    return {**_PLACEHOLDERS, "task": {"name": task}, "models": [model]}


def _leave_out(data: dict[str, Any], path: Path, placeholders: Mapping[str, Any]) -> None:
    """Drop an invalid value, or replace it by a placeholder if the key is required; other values keep their places.

    An invalid claim drops all claims, and an invalid value of a grid its whole list.
    """
    match path:
        case ("seeds", "until", str(key)):
            _leave_out_of_until(data["seeds"]["until"], key)
        case ("claims", *_):
            data.pop("claims", None)
        case (("study" | "models") as name,) | ("seeds" as name, *_):
            data[name] = copy.deepcopy(placeholders[name])
        case ("search", ("objective" | "trials") as name) if isinstance(data.get("search"), dict):
            data["search"][name] = placeholders[name]
        case ("metrics",):
            data["metrics"] = dict.fromkeys(_metrics_named(data) or ["loss"], "lower")
        case ("task", *inside) if not inside or inside == ["name"]:
            task = data.get("task")
            data["task"] = (task if isinstance(task, dict) else {}) | placeholders["task"]
        case ("metrics", str(name)) | ("metrics", str(name), "better"):
            data["metrics"][name] = "lower"
        case ("success", str(name), "word"):
            del data["success"][name]
        case ("models", int(i)) | ("models", int(i), "name"):
            data["models"][i] = placeholders["models"][0]
        case (*before, "zip", axis, int(i)):
            _value_at(data, (*before, "zip", axis))[i] = {}
        case (*before, "points", int(i)):
            _value_at(data, (*before, "points"))[i] = {}
        case (*before, "grid", name, int()):
            _drop(data, (*before, "grid", name))
        case _:
            _drop(data, path)


def _metrics_named(data: Mapping[str, Any]) -> list[str]:
    """Return the metrics named under success, search and until, valid or not."""
    success, search, until = data.get("success"), data.get("search"), _value_at(data, ("seeds", "until"))
    objective = search.get("objective") if isinstance(search, dict) else None
    names = [
        *(success if isinstance(success, dict) else ()),
        *(objective if isinstance(objective, list) else [objective]),
    ]
    names.append(until.get("metric") if isinstance(until, dict) else None)
    return [name for name in names if isinstance(name, str) and name]


def _leave_out_of_until(until: dict[str, Any], key: str) -> None:
    """Remove an invalid value of `until`, with a placeholder so that no required key is missing."""
    until.pop(key, None)
    if key == "max":
        until["max"] = _MANY_SEEDS
    elif key != "batch" and not {"different_from", "claims"} & set(until):
        until.setdefault("half_width", 0.1)


def _drop(data: Any, path: Path) -> None:
    *before, last = path
    table = _value_at(data, before)
    if isinstance(table, dict):
        table.pop(last, None)


def _value_at(data: Any, path: Sequence[str | int]) -> Any:
    """Return the value at a place; None if it was removed."""
    for step in path:
        if not _has(data, step):
            return None
        data = data[step]
    return data


def _has(table: Any, step: str | int) -> bool:
    if isinstance(table, dict):
        return step in table
    return isinstance(table, list) and isinstance(step, int) and step < len(table)


def _hint(error: ChoiceError) -> str:
    if isinstance(error.value, list):
        return "; to sweep it, put the list under grid"
    return nearest(error.value, error.choices)


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a table"
    return quoted(value)


_KEYS_OF_OTHER_STUDIES = ("command", "models", "task", "train")
"""Keys of other kinds of studies, for which a similar key isn't suggested."""


def _message(class_: type[Spec], details: Mapping[str, Any]) -> str:
    value, kind, context = details["input"], details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        *table, key = details["loc"]
        names = names_at(class_, table)
        keys = "" if len(names) > 8 else f"; the keys here are {', '.join(names)}"
        return f"unknown key{'' if key in _KEYS_OF_OTHER_STUDIES else nearest(key, names) or keys}"
    if kind == "missing":
        return "must be given, but is missing"
    if kind == "value_error":
        error = context["error"]
        return str(error) + (_hint(error) if isinstance(error, ChoiceError) else "")
    if kind in _LIMITS:
        sign, name = _LIMITS[kind]
        return f"must be {sign} {context[name]:g}, but got {value:g}"
    if kind == "literal_error":
        return f"must be {context['expected']}, but got {quoted(value)}"
    if kind == "too_short":
        return "must have at least 1 value, but is empty"
    expected = {
        "list_type": "a list",
        "tuple_type": "a list",
        "dict_type": "a table (`key: value` lines)",
        "model_type": "a table (`key: value` lines)",
        "string_type": "text",
    }.get(kind)
    if expected is not None:
        hint = f"; write [{value}]" if expected == "a list" and isinstance(value, str | int | float) else ""
        return f"must be {expected}, but got {_kind(value)}{hint}"
    return f"{details['msg']}, but got {quoted(value)}"

"""Import of training functions, from a copy of their code, and of their declarations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from study.errors import InputError
from study.interface.function.classes import as_function
from study.interface.function_family import FunctionFamily
from study.interface.program_family import hyperparameter_of, kind_of_values
from study.interface.signature import SignatureError, has_open_config, hyperparameters_of
from study.source import CodeFolder, SourceCode, parse_import_string, read_source_code
from study.spec.calls import call_mistakes
from study.spec.document import Path as Place
from study.spec.function_tables import FunctionSpec
from study.spec.own_code import RESERVED
from study.spec.settings_form import given_values


def load_function(
    spec: FunctionSpec, data: Mapping[str, Any], folder: Path, identify: Callable[[str, SourceCode], str]
) -> tuple[FunctionFamily, SourceCode]:
    """Copy a function's code, import the function from the copy, and read its declared hyperparameters.

    Args:
        spec: the study that names the function.
        data: the file's content. An argument `config` without declared fields takes the hyperparameters in it.
        folder: the folder of the study file, searched first for modules.
        identify: returns the code's identity from the study's name and the code; unused if the file has `version`.

    Returns:
        The family of the function's trials, and the code.

    Raises:
        InputError: if `train` isn't an import string, the code or an included file can't be read (see
            `read_source_code`), the code's copy was changed or its cache isn't private, the function doesn't exist or
            isn't marked by `study.seeded`, its module fails, imports code outside of the copy, or has the name of one
            that is already imported, its signature isn't that of a training function, or an argument takes a data file.
        OSError: if the cache of code can't be written.
        Exception: as `identify` raises.
    """
    name = parse_import_string(spec.train)
    code = read_source_code([name], folder, spec.include)
    copy = code.unpacked()
    with CodeFolder(copy) as opened:
        try:
            function = as_function(opened.load(name))
            hyperparameters = hyperparameters_of(function, reserved=RESERVED, takes_configs=True)
            if has_open_config(function):
                given = {key: values for key, values in given_values(data).items() if key not in RESERVED}
                hyperparameters = {
                    key: hyperparameter_of(kind_of_values(values)) for key, values in given.items()
                } | hyperparameters
        except SignatureError as error:
            raise InputError(str(error).replace(f"{copy}{os.sep}", "")) from None  # the path as in the user's folder
    for argument, declared in hyperparameters.items():
        if declared.data is not None:
            raise InputError(
                f"{argument} of {spec.train} can't be a DataFile, which only tasks can have: add the file to include"
            )
    identity = identify(spec.study, code) if spec.version is None else code.identity(spec.version)
    family = FunctionFamily(
        spec.train, hyperparameters, spec.declared_metrics, code=identity, iterations=spec.iterations
    )
    return family, code


def function_mistakes(spec: FunctionSpec) -> Iterator[tuple[Place, str]]:
    """Yield each mistake in a study's metrics, success, pruning, objectives and memory limit, with its place."""
    taken = f"{spec.train} has a hyperparameter of that name; give the metric another one"
    yield from call_mistakes(spec, RESERVED, spec.family.hyperparameters, taken)
    if spec.resources.memory_gb is not None and spec.isolation is None:
        yield ("resources", "memory_gb"), "can be limited only in a separate process: add isolation: process"

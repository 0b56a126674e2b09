"""Study files of presets and stored studies, and new study files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from study.errors import InputError, UnknownStudyError, nearest

_FIRST = """\
# `study plan {name}.yaml` estimates its cost, `study run {name}.yaml` runs it. All keys: docs/reference/study-file.md.
study: {name}
question: How often does each unit learn to multiply?
task: {{name: simple}}
models: [NMU, NAC-mul]
grid: {{hidden_size: [2, 4]}}
seeds: 20
protocol: {{iterations: 40000}}
"""


def new_file(
    name: str,
    preset: str | None = None,
    folder: Path = Path(),
    *,
    train: str | None = None,
    command: str | None = None,
    sweep: tuple[str, str] | None = None,
    optuna_study: str | None = None,
    points: bool = False,
    notify: Callable[[str], None] = lambda note: None,
) -> Path:
    """Write a new study file, NAME.yaml.

    Args:
        name: the study's name.
        preset: the preset to begin with; None for a small study. Unused with a sweep, a function or a command.
        folder: the folder of the new file.
        train: the import string of a training function, which is called once to find its metrics.
        command: the command of a program, which is run once to find its results.
        sweep: a tool (``wandb``, ``optuna``, ``hydra`` or ``tune``), and the path or storage of its sweep.
        optuna_study: the name of Optuna's study, if its storage has several.
        points: True to take points from the finished trials of Optuna's study, instead of its ranges.
        notify: called with a sentence for each part of a sweep that is changed or left out.

    Returns:
        The path of the new file.

    Raises:
        InputError: if the file exists already or can't be written, the preset doesn't exist, the name isn't valid for
            a study, the sweep can't be read or translated, or the function or program fails.
        ValueError: if a sweep's seeds aren't valid, such as negative ones of Optuna's trials (`study_of_sweep`).
        OSError: if the cache of code can't be written, or a log of Hydra's jobs can't be read.
    """
    from study.plugins.presets import preset_names, preset_text
    from study.spec import parse_spec

    names = preset_names()
    if preset is not None and preset not in names:
        raise InputError(f"no preset is called {preset!r}{nearest(preset, names)}; the presets are {', '.join(names)}")
    text = _FIRST.format(name=name)
    parse_spec(text, source=f"{name}.yaml")  # checks the name
    if sweep is not None:
        text = _text_of_sweep(name, sweep, optuna_study, points, folder, train, command, notify)
    elif train is not None:
        from study.driver.new_study import study_of_function  # imported late: engines take seconds to import

        text = study_of_function(name, train, folder)
    elif command is not None:
        from study.driver.new_program import study_of_program

        text = study_of_program(name, command, folder)
    elif preset is not None:
        text = re.sub(r"^study: .*$", f"study: {name}", preset_text(preset), count=1, flags=re.MULTILINE)
    path = folder / f"{name}.yaml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"there is a file {path} already; choose another name, or remove it") from None
    except OSError as error:
        raise InputError(f"{path} can't be written: {error.strerror or error}") from error
    return path


def _text_of_sweep(
    name: str,
    where: tuple[str, str],
    optuna_study: str | None,
    points: bool,
    folder: Path,
    train: str | None,
    command: str | None,
    notify: Callable[[str], None],
) -> str:
    from study.driver import sweeps

    tool, path = where
    if tool == "optuna":
        sweep = sweeps.sweep_of_optuna(path, optuna_study, are_points=points)
    elif tool == "hydra":
        sweep = sweeps.sweep_of_hydra(Path(path), folder)
    else:
        sweep = (sweeps.sweep_of_wandb if tool == "wandb" else sweeps.sweep_of_tune)(Path(path))
    text = sweeps.study_of_sweep(name, sweep, folder, train=train, command=command)
    for note in sweep.notes:
        notify(note)
    return text


def is_stored(name: str, store: str) -> bool:
    """Return True if the store has a study of that name; False also without a store.

    Raises:
        InputError: if the store's address isn't valid, or the name leads out of the store.
        StoreError: if the store can't be read.
    """
    from study.store import Store

    return Store(store, read_only=True).study(name).exists


def is_preset_alone(name: str, store: str) -> bool:
    """Return True if a preset has that name, but no study in the store does.

    Raises:
        InputError: if the presets can't be listed (`preset_names`), the store's address isn't valid, or a link in the
            store's folder has that name and leads out of it.
        StoreError: if the store can't be read.
    """
    from study.plugins.presets import preset_names

    return name in preset_names() and not is_stored(name, store)


def file_of(name: str, store: str) -> str:
    """Return the text of the study file of a stored study, or else of a preset.

    Args:
        name: the name of the study or preset.
        store: the store's folder or URL.

    Raises:
        UnknownStudyError: if neither exists.
        InputError: if the store's address isn't valid, the name leads out of the store, or presets can't be listed.
        StoreError: if the stored file can't be read.
    """
    from study.plugins.presets import preset_names, preset_text
    from study.store import Store

    try:
        return Store(store, read_only=True).open(name).read_spec()
    except UnknownStudyError:
        if name not in preset_names():
            raise
        return preset_text(name)


@contextmanager
def with_import_strings(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the content of a study file, with the function under `train` replaced by its import string.

    A text under `train` stays unchanged. A notebook's function is written to a module, which can be imported within the
    context.

    Raises:
        InputError: if the function has no name at the top of its module, or can't be written into a module.
        OSError: if the module of a notebook's function can't be written.
    """
    if not callable(train := content.get("train")):
        yield content
        return
    from study.source import import_string_of

    name, folder = import_string_of(train, Path())
    if folder is not None:
        sys.path.append(str(folder))
    try:
        yield {**content, "train": name}
    finally:
        if folder is not None:
            sys.path.remove(str(folder))

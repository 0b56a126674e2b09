"""The command of a trial of a program: words and environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from study.engine.calls import CallTrial, Limits
from study.interface.program import CONFIG_FILES, Program, nested, text_of, variable_of
from study.source import program_words


def command_of(
    program: Program,
    trial: CallTrial,
    folder: Path,
    *,
    code: Path | None = None,
    files: Sequence[str] = (),
    limits: Limits | None = None,
    is_resumed: bool = False,
) -> tuple[list[str], dict[str, str]]:
    """Return the words and the environment of a trial's command, and prepare its files.

    A configuration file is written if the command has its placeholder. A file of the code that is run is made
    executable, unless a shell runs it. A hyperparameter that is None has no environment variable.

    Args:
        program: the program.
        trial: its seed and hyperparameters.
        folder: the trial's folder, which exists.
        code: the folder with the copy of the program's code; None if it has none.
        files: the names of the code's files.
        limits: resource limits of the trial.
        is_resumed: whether it resumes from the files that an interrupted attempt left in the folder.

    Raises:
        KeyError: if a placeholder has no value.
        TypeError: if a hyperparameter isn't JSON data (with ``{config.yaml}``: yaml.YAMLError).
        OSError: if the configuration file can't be written, or the code's file can't be made executable.
    """
    given: dict[str, Any] = {**trial.values, "seed": trial.seed, "folder": str(folder), "code": str(code or "")}
    for placeholder, name in CONFIG_FILES.items():
        if placeholder in program.placeholders:
            given[placeholder] = str(folder / name)
            config = nested(trial.values)
            if name.endswith(".yaml"):
                text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
            else:
                text = json.dumps(config, indent=1, ensure_ascii=False)
            (folder / name).write_text(text, encoding="utf-8")
    words = program.filled(given)
    if code is not None and not program.is_shell:
        words = program_words(words, files, code)
        if (path := Path(words[0])).is_relative_to(code):
            path.chmod(path.stat().st_mode | 0o100)
    environment = _environment(code, limits or Limits())
    if program.results.kind == "mlflow":
        runs = (folder / program.results.where / "mlruns").absolute()
        environment |= {"MLFLOW_TRACKING_URI": str(runs), "MLFLOW_ALLOW_FILE_STORE": "true"}
    environment |= {"STUDY_SEED": str(trial.seed), "STUDY_FOLDER": str(folder)}
    environment["STUDY_RESUME"] = "1" if is_resumed else "0"
    given_values = {name: value for name, value in trial.values.items() if value is not None}
    return words, environment | {variable_of(name): text_of(value) for name, value in given_values.items()}


def _environment(code: Path | None, limits: Limits) -> dict[str, str]:
    """Return this process's environment with a trial's limits, and with changes for a Python script.

    Python doesn't buffer its output, and finds the code's modules. Unless a virtual or conda environment is active,
    ``python`` is this process's. PYTHONSAFEPATH is removed.
    """
    environment = limits.environment() | {"PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONSAFEPATH", None)  # set for workers, but a Python script imports modules beside it
    if not {"VIRTUAL_ENV", "CONDA_PREFIX"} & environment.keys():  # no environment is active: use this process's
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    if code is not None:
        python_path = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = str(code) + (f"{os.pathsep}{python_path}" if python_path else "")
    return environment

"""Hydra's multirun folders: overrides as a grid or as points, and results."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.driver.new_program import find_results
from study.driver.sweeps.sweep import Sweep, read_yaml, seeds_notation
from study.errors import InputError
from study.interface.program import SEEDS
from study.words import count_of

_OVERRIDE = re.compile(r"(?P<key>(?:\+\+|\+)?[^=~]+)=(?P<value>.*)", re.DOTALL)
_REAL = re.compile(r"[-+]?(?:0|[1-9]\d*)?\.?\d*(?:[eE][-+]?\d+)?")
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class HydraJob:
    """A job of a multirun.

    Args:
        folder: its output folder.
        overrides: values of its task overrides by key, which may begin with a plus sign.
        words: its other overrides, such as ``~optimizer``.
        config: its configuration.
        hydra: Hydra's own configuration.
    """

    folder: Path
    overrides: Mapping[str, Any]
    words: Sequence[str]
    config: Mapping[str, Any]
    hydra: Mapping[str, Any]

    @property
    def seed_key(self) -> str:
        """Key of the seed: an override with a seed's name, else such an integer in the configuration; else empty."""
        keys = [key for key in self.overrides if re.split(r"[./]", key.lstrip("+"))[-1] in SEEDS]
        return next(iter(keys), "") or _seed_in(self.config)

    @property
    def seed(self) -> int | None:
        """The job's seed; None without one, or if it isn't an integer."""
        value: Any = self.overrides.get(self.seed_key)
        if self.seed_key not in self.overrides:
            value = self.config if self.seed_key else None
            for part in self.seed_key.split(".") if self.seed_key else ():
                value = value[part]
        return value if type(value) is int else None


def _seed_in(config: Mapping[str, Any], before: str = "") -> str:
    for key, value in config.items():
        if "." in str(key):  # an override couldn't name it
            continue
        if key in SEEDS and type(value) is int:
            return f"{before}{key}"
        if isinstance(value, Mapping) and (inner := _seed_in(value, f"{before}{key}.")):
            return inner
    return ""


def read_jobs(path: Path) -> list[HydraJob]:
    """Read the jobs of a multirun, in the order of their numbers.

    Args:
        path: folder of the multirun, or a folder above a single one.

    Raises:
        InputError: if there isn't exactly one multirun, it has no jobs, or a file can't be read or isn't Hydra's.
    """
    if not path.is_dir():
        raise InputError(f"no such folder: {path}; give the folder of a multirun, such as multirun/2026-01-31/12-00-00")
    sweeps = sorted(file.parent for file in path.rglob("multirun.yaml"))
    if len(sweeps) != 1:
        several = f"has {len(sweeps)} multiruns, such as {', '.join(map(str, sweeps[-3:]))}: give one of them"
        raise InputError(f"{path} " + (several if sweeps else "has no multirun.yaml, which Hydra's --multirun writes"))
    jobs = [_job(file.parent.parent) for file in sweeps[0].rglob(".hydra/overrides.yaml")]
    if not jobs:
        raise InputError(f"{sweeps[0]} has no jobs with .hydra/overrides.yaml; run it without hydra.output_subdir=null")
    return sorted(jobs, key=lambda job: (job.hydra["job"].get("num") or 0, str(job.folder)))


def _job(folder: Path) -> HydraJob:
    """Read a job from the files in its folder's ``.hydra``; raise InputError if they aren't Hydra's."""
    overrides, config, hydra = (
        read_yaml(folder / ".hydra" / f"{part}.yaml") for part in ("overrides", "config", "hydra")
    )
    hydra = hydra.get("hydra") if isinstance(hydra, Mapping) else None
    if not isinstance(hydra, Mapping) or not all(isinstance(hydra.get(key), Mapping) for key in ("job", "runtime")):
        raise InputError(f"{folder / '.hydra' / 'hydra.yaml'}: must have hydra.job and hydra.runtime; is it Hydra's?")
    if not isinstance(overrides, list | None):
        raise InputError(f"{folder / '.hydra' / 'overrides.yaml'}: must be a list; is it Hydra's?")
    texts = [str(override) for override in overrides or ()]
    given = dict(filter(None, map(override_of, texts)))
    words = [text for text in texts if override_of(text) is None]
    return HydraJob(folder, given, words, config if isinstance(config, Mapping) else {}, hydra)


def override_of(text: str) -> tuple[str, Any] | None:
    """Return the key and the value of an override; None if it sets nothing, such as ``~optimizer``.

    A value that is true, false, a finite number or a list of JSON becomes one; any other is the text, with its quotes.

    Example:
        >>> override_of("+model.width=8"), override_of("name='a b'"), override_of("~optimizer")
        (('+model.width', 8), ('name', "'a b'"), None)
    """
    match = _OVERRIDE.fullmatch(text)
    return None if match is None else (match["key"], _value(match["value"]))


def _value(text: str) -> Any:
    """Return the value of an override; texts keep their quotes."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        value = json.loads(text)
    except ValueError:
        value = float(text) if _REAL.fullmatch(text) and re.search(r"\d", text) else text
    is_plain = isinstance(value, list | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else text


def sweep_of_hydra(path: Path, folder: Path) -> Sweep:
    """Read a multirun of Hydra as a sweep: a grid if its jobs are all combinations of their values, else points.

    Args:
        path: folder of the multirun, or a folder above a single one.
        folder: folder of the study file.

    Raises:
        InputError: if there isn't exactly one multirun, it has no jobs, a file can't be read or isn't Hydra's, or
            overrides of the seed have a number below 0 or no whole number.
        OSError: if a job's log, or a folder or file of its results, can't be read.
    """
    jobs = read_jobs(path)
    first = jobs[0]
    sweep = Sweep(source=f"Hydra's multirun {path}, {count_of(len(jobs), 'job')}")
    keys = list(dict.fromkeys(key for job in jobs for key in job.overrides))
    seed_key = first.seed_key
    plain = {key: re.sub(r"[/@:]", "-", key.lstrip("+")) for key in keys if key != seed_key}
    names = sweep.rename(plain.values(), has_seed=True)
    by_key = {key: names[name] for key, name in plain.items()}
    _add_points(sweep, jobs, by_key)
    if seed_key in keys:
        seeds = [seed for seed in dict.fromkeys(job.seed for job in jobs) if seed is not None]
        if not seeds or min(seeds) < 0:
            raise InputError(f"{path}: {seed_key} must be a whole number of at least 0 in each job, but isn't")
        sweep.seeds = seeds_notation(seeds)
    words = [f"{key}={{{name}}}" for key, name in by_key.items()] + ([f"{seed_key}={{seed}}"] if seed_key else [])
    others = list(dict.fromkeys(word for job in jobs for word in job.words))
    sweep.notes += [
        f"the override {word} is only in some jobs" for word in others if any(word not in job.words for job in jobs)
    ]
    sweep.words = ["python", _script(first, folder, sweep), *words, *others, "hydra.run.dir={folder}"]
    _find_results(jobs, sweep)
    _note_settings(first, seed_key, sweep)
    return sweep


def _add_points(sweep: Sweep, jobs: Sequence[HydraJob], by_key: Mapping[str, str]) -> None:
    """Add the jobs' common values as fixed; add the others as a grid if complete, else as points; note gaps."""
    for key, name in by_key.items():
        if missing := sum(key not in job.overrides for job in jobs):
            sweep.notes.append(f"{count_of(missing, 'job')} had no override of {name}: points without it need a value")
    points = [{by_key[key]: value for key, value in job.overrides.items() if key in by_key} for job in jobs]
    values = {
        name: list({repr(point[name]): point[name] for point in points if name in point}.values())
        for name in by_key.values()
    }
    everywhere = [name for name in values if all(name in point for point in points)]
    sweep.fixed = {name: values[name][0] for name in everywhere if len(values[name]) == 1}
    swept = {name: values[name] for name in values if name not in sweep.fixed}
    different = list({repr(_omit(point, sweep.fixed)): _omit(point, sweep.fixed) for point in points}.values())
    if len(different) == math.prod(map(len, swept.values())) and set(swept) <= set(everywhere):
        sweep.grid = swept
    else:
        sweep.points = different
    pairs = {(repr(_omit(point, sweep.fixed)), job.seed) for point, job in zip(points, jobs, strict=True)}
    seeds = {job.seed for job in jobs}
    if len(pairs) != len(different) * len(seeds):
        sweep.notes.append(f"the jobs are {len(pairs)} of the {len(different) * len(seeds)} trials of all seeds")


def _omit(point: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in point.items() if name not in names}


def _script(job: HydraJob, folder: Path, sweep: Sweep) -> str:
    """Return the path of the program, include its folder of configurations in the code, and note a missing program."""
    cwd, name = Path(str(job.hydra["runtime"].get("cwd"))), f"{job.hydra['job'].get('name')}.py"
    here = folder.resolve()
    start = cwd if cwd.is_relative_to(here) and cwd.is_dir() else here
    script = (start / name).relative_to(here).as_posix()
    if not (here / script).is_file():
        sweep.notes.append(f"{script} isn't in this folder: put the study file beside the program, or correct it")
    for source in job.hydra["runtime"].get("config_sources") or ():
        if source.get("provider") == "main" and source.get("schema") == "file":
            configs = Path(source["path"])
            inside = configs.relative_to(cwd) if configs.is_relative_to(cwd) else Path(configs.name)
            included = f"{job.hydra['job'].get('config_name')}.yaml" if inside == Path() else inside.name
            sweep.include = [(Path(script).parent / inside.parent / included).as_posix()]
    return script


def _find_results(jobs: Sequence[HydraJob], sweep: Sweep) -> None:
    for job in jobs:
        log = job.folder / f"{job.hydra['job'].get('name')}.log"
        printed = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        sweep.results, sweep.metrics = find_results(job.folder, printed)
        if sweep.metrics:
            return


def _note_settings(job: HydraJob, seed_key: str, sweep: Sweep) -> None:
    """Note a missing seed, Hydra's own settings, and interpolations."""
    if not seed_key:
        sweep.notes.append("no override and no key of the configuration is a seed: the program must read STUDY_SEED")
    settings = (job.hydra.get("overrides") or {}).get("hydra") or []
    for setting in settings:
        if not str(setting).startswith("hydra.mode="):
            sweep.notes.append(f"{setting} is left out")
    if any("${" in str(value) for value in job.overrides.values()):
        sweep.notes.append("overrides with ${...} are kept as texts; Hydra resolves them in each trial")

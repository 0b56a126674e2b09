"""A sweep of another tool in the terms of a study file, and the text of that file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from study.driver.new_program import command_line, results_line, split_command, try_program
from study.driver.new_study import as_inline, direction_of, metric_lines, try_function
from study.errors import InputError, reason_of
from study.interface.program import GIVEN, NAME, SEEDS, Program, Results
from study.interface.program_family import OWN_NAMES
from study.spec.document import read
from study.spec.own_code import RESERVED
from study.spec.seeds import MOST_SEEDS, count_seeds, parse_seeds
from study.words import join_and

Domain = Mapping[str, Any]
"""Values of a hyperparameter: ``choices``, or ``low``, ``high``, ``scale`` and ``step``; and a condition, ``when``."""

_SEEDS, _TRIALS, _CANDIDATES, _FIRST_SEEDS = 20, 600, 12, 5
_MOST_STEPS = 10_000
_TODO = "command: TODO  # say how a trial is run: `study new` takes --command or --train beside the sweep"


@dataclass(kw_only=True)
class Sweep:
    """A sweep of another tool.

    Args:
        source: the sweep, for readers.
        question: its question.
        words: words of the command, with placeholders; empty if it names no program.
        fixed, grid, ranges, points: the hyperparameters, as a study file has them.
        seeds: a study file's `seeds`.
        objectives: optimised metrics, each with its better direction; a name may be empty.
        sampler: the sampler of a search; empty for a grid.
        trials: the budget of a search.
        prune: a study file's `prune`; empty to prune no trials.
        results, metrics: place of results, and their metrics, if finished runs show them.
        include: files that belong to the code.
        example: values to try a program with; other hyperparameters take their first values.
        options: the program's option name for each hyperparameter with another name.
        notes: sentences on changes and omissions.
    """

    source: str
    question: str = ""
    words: Sequence[str] = ()
    fixed: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, Any] = field(default_factory=dict)
    ranges: dict[str, Any] = field(default_factory=dict)
    points: list[dict[str, Any]] = field(default_factory=list)
    seeds: Any = _SEEDS
    objectives: Sequence[tuple[str, str]] = ()
    sampler: str = ""
    trials: int = _TRIALS
    prune: Mapping[str, Any] = field(default_factory=dict)
    results: Results | None = None
    metrics: Sequence[str] = ()
    include: Sequence[str] = ()
    example: dict[str, Any] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def first_values(self) -> dict[str, Any]:
        """One value of each hyperparameter: that of `example`, or else its first or lowest one.

        Of `points`, they are those of the first point, even if it lacks some, and `example` doesn't replace them.
        """
        conditional = {name for name, value in self.fixed.items() if isinstance(value, dict) and "when" in value}
        first = {name: value["value"] if name in conditional else value for name, value in self.fixed.items()}
        for name, domain in (self.grid | self.ranges).items():
            values = domain.get("choices", domain.get("values")) if isinstance(domain, dict) else domain
            first[name] = values[0] if values else domain["low"]
        return (
            first
            | (self.points[0] if self.points else {})
            | {key: value for key, value in self.example.items() if key in first}
        )

    def add(self, domains: Mapping[str, Domain]) -> dict[str, str]:
        """Add hyperparameters, and return their names in the study file; the first one named like a seed is ``seed``.

        The values of ``seed`` become `seeds`; of limits, the whole numbers between them, by their step. A single choice
        of another one becomes fixed. Several choices are a range if there is a sampler, else part of the grid. Limits
        are always a range.

        Args:
            domains: values of the hyperparameters, by the tool's names.

        Raises:
            InputError: if a seed isn't a whole number from 0 to 2**63 - 1; or if the limits of seeds have a step other
                than 1 that isn't whole, or that gives more than 10,000 seeds.
        """
        names = self.rename(domains)
        for path, domain in domains.items():
            if names[path] == "seed":
                self._add_seeds(path, domain)
            elif "choices" not in domain:
                self.ranges[names[path]] = {**domain, **_renamed(domain, names)}
            else:
                self._add_choices(names[path], domain, names)
        return names

    def rename(self, paths: Iterable[str], *, has_seed: bool = False) -> dict[str, str]:
        """Return the study file's names of hyperparameters by the tool's names; record new names in notes and options.

        Args:
            paths: the tool's names.
            has_seed: whether the seed is known already; otherwise the first hyperparameter named like a seed is called
                ``seed``, without a note.
        """
        names: dict[str, str] = {}
        for path in paths:
            if path.rpartition(".")[2] in SEEDS and not has_seed and "seed" not in names.values():
                names[path] = "seed"
                continue
            name = re.sub(r"\W+", "_", path) if re.search(r"[^\w.-]", path) else path
            name = name if re.fullmatch(NAME, name) else f"p_{re.sub(r'[^0-9A-Za-z]+', '_', name)}"
            while name in {*RESERVED, *GIVEN, *OWN_NAMES, *names.values()}:
                name += "_"
            names[path] = name
        for path, name in names.items():  # `a` and `a.b` can't both be hyperparameters
            if any(name.startswith(f"{other}.") for other in names.values()):
                names[path] = name.replace(".", "-")
                while list(names.values()).count(names[path]) > 1:
                    names[path] += "_"
        for path, name in names.items():
            if name not in (path, "seed"):
                self.notes.append(f"{path} is called {name} in the study file")
                self.options[name] = path
        return names

    def _add_choices(self, name: str, domain: Domain, names: Mapping[str, str]) -> None:
        """Add choices: a single one as fixed, several as a range of a search, or else to the grid."""
        choices = list({repr(value): value for value in domain["choices"]}.values())
        when = _renamed(domain, names)
        if len(choices) == 1:
            self.fixed[name] = {"value": choices[0], **when} if when else choices[0]
        elif self.sampler:
            self.ranges[name] = {"choices": choices, **when}
        else:
            self.grid[name] = {"values": choices, **when} if when else choices

    def _add_seeds(self, path: str, domain: Domain) -> None:
        """Take the seeds from a domain; raise InputError if they or their step are invalid."""
        choices = domain.get("choices")
        low, high = domain.get("low"), domain.get("high")
        seeds = choices or [low, high]
        if wrong := [seed for seed in seeds if type(seed) is not int or not 0 <= seed < MOST_SEEDS]:
            raise InputError(
                f"{self.source}: {path} is the seed: values must be whole numbers from 0 to 2**63 - 1, not "
                f"{wrong[0]!r}: correct it, or rename it"
            )
        step = domain.get("step", 1)
        if choices is None and step != 1:
            if type(step) is not int or (seeds[1] - seeds[0]) // step >= _MOST_STEPS:
                must = f"must have a whole step, and at most {_MOST_STEPS:,} values with it"
                raise InputError(f"{self.source}: {path} is the seed: {must}")
            choices = range(seeds[0], seeds[1] + 1, step)
        self.seeds = seeds_notation(choices) if choices else f"{low}-{high}"

    def search_table(self, objectives: Sequence[str]) -> dict[str, Any]:
        """Return the study file's `search`, with up to 12 candidates, each with up to 5 first seeds.

        There are fewer seeds if `seeds` or `trials` are fewer, and fewer candidates if `trials` don't suffice.

        Args:
            objectives: names of the metrics, at least one.

        Raises:
            ValueError: if `seeds` aren't valid.
        """
        first = min(_FIRST_SEEDS, count_seeds(parse_seeds(self.seeds)), self.trials)
        candidates = min(_CANDIDATES, self.trials // first)
        table = {"objective": objectives[0] if len(objectives) == 1 else list(objectives), "trials": self.trials}
        table |= {"sampler": self.sampler} if self.sampler != "TPE" else {}
        table |= {"candidates": candidates} if candidates != _CANDIDATES else {}
        return table | ({"first_seeds": first} if first != _FIRST_SEEDS else {})


def _renamed(domain: Domain, names: Mapping[str, str]) -> dict[str, Any]:
    return {"when": {names[path]: value for path, value in domain["when"].items()}} if "when" in domain else {}


def range_of(
    low: float,
    high: float,
    step: float | None = None,
    name: str = "",
    notes: list[str] | None = None,
    *,
    is_log: bool = False,
) -> Domain:
    """Return a range of numbers, without steps on a log scale; a single choice if `low` equals `high`.

    The numbers are integers if `step` and both limits are whole, else floats.

    Args:
        low: the least.
        high: the greatest.
        step: the step between values; None for any number.
        name: the hyperparameter's name.
        notes: list for a note on steps other than 1 that are left out; None for no note.
        is_log: whether the scale is logarithmic.

    Raises:
        OverflowError: if an integer is too large for a float.
    """
    if low == high:
        return {"choices": [low]}
    if step is not None and float(step).is_integer() and float(low).is_integer() and float(high).is_integer():
        low, high, step = int(low), int(high), int(step)
    else:
        low, high = float(low), float(high)
    if is_log and step not in (None, 1) and notes is not None:
        notes.append(f"{name}: its steps of {step:g} are left out: a log scale has none")
    if is_log:
        return {"low": low, "high": high, "scale": "log"}
    return {"low": low, "high": high} | ({} if step is None or (step == 1 and isinstance(low, int)) else {"step": step})


def seeds_notation(seeds: Sequence[int]) -> Any:
    """Return seeds in the notation of a study file: a count, a range or a sorted list, each seed once.

    Example:
        >>> seeds_notation([0, 1, 2]), seeds_notation([5, 6, 7]), seeds_notation([1, 5]), seeds_notation([3])
        (3, '5-7', [1, 5], [3])
    """
    different = sorted(set(seeds))
    if len(different) < 2 or different[-1] != different[0] + len(different) - 1:
        return different
    return f"{different[0]}-{different[-1]}" if different[0] else len(different)


def study_of_sweep(
    name: str, sweep: Sweep, folder: Path, *, train: str | None = None, command: str | None = None
) -> str:
    """Return the text of a study file for a sweep.

    A function, or the program in `command`, is tried once to find the metrics; the sweep's own program only if finished
    runs don't show them. Without any, the command is a placeholder, ``TODO``. Notes, and values of the command's other
    arguments, are added to the sweep.

    Args:
        name: the study's name.
        sweep: the sweep.
        folder: the folder of the study file.
        train: import string of the function that a trial calls; None for a program.
        command: the program that a trial runs, in place of the sweep's; None for the sweep's.

    Raises:
        InputError: if the function or the program in `command` doesn't exist, fails or lacks an argument, or `command`
            is empty, can't be split into words, needs a shell or has a placeholder of a hyperparameter that the sweep
            lacks.
        ValueError: if the sweep's seeds aren't valid, such as negative ones of Optuna's trials, and a program is tried
            or the study is a search.
        OSError: if the cache of code can't be written.
    """
    keys, metrics, remarks = _call_lines(name, sweep, folder, train, command)
    directions = _directions(sweep, metrics)
    is_search = bool(sweep.sampler and sweep.ranges)
    lines = [
        f"# From {sweep.source}: docs/guides/sweeps.md. `study plan {name}.yaml` tries it, `study run {name}.yaml` "
        "runs it.",
        *(f"# Check: {note}" for note in sweep.notes),
        f"study: {name}",
        *([f"question: {as_inline(sweep.question)}"] if sweep.question else []),
        *keys,
        *([f"include: {as_inline(list(sweep.include))}"] if sweep.include else []),
        *metric_lines(directions, "check which is better; the first chooses the best step"),
        *([f"fixed: {as_inline(sweep.fixed)}"] if sweep.fixed else []),
        *(_table("grid", sweep.grid)),
        *(_table("ranges", sweep.ranges)),
        *(["points:", *(f"  - {as_inline(point)}" for point in sweep.points)] if sweep.points else []),
        f"seeds: {as_inline(sweep.seeds)}",
        *([f"prune: {as_inline(sweep.prune)}"] if sweep.prune else []),
    ]
    if is_search:
        sought = list(directions)[: len(sweep.objectives) or 1]
        lines.append(f"search: {as_inline(sweep.search_table(sought))}")
    return "\n".join([*lines, *remarks, ""])


def _table(name: str, content: Mapping[str, Any]) -> list[str]:
    rows = (f"  {as_inline({key: value})[1:-1]}" for key, value in content.items())
    return [f"{name}:", *rows] if content else []


def _call_lines(
    name: str, sweep: Sweep, folder: Path, train: str | None, command: str | None
) -> tuple[list[str], Sequence[str], list[str]]:
    """Return the lines for a trial's call, the names of its metrics, and closing comments.

    A function, or the program in `command`, is tried once, and so is a sweep's own program without known metrics. This
    may add notes and fixed values to the sweep. Raise InputError if the function, or the program in `command`, fails.
    """
    values = sweep.first_values
    if train is not None:
        values = {sweep.options.get(field, field): value for field, value in values.items()}
        return [f"train: {train}"], try_function(name, train, folder, values)[1], []
    words = sweep.words if command is None else split_command(command)
    if not words:
        return [_TODO, "results: metrics.json  # say where they are"], [], []
    program = Program(tuple(words), Results("file", "metrics.json"))
    if sweep.metrics and command is None:
        return [command_line(program), results_line(sweep.results)], sweep.metrics, []
    seed = next(iter(parse_seeds(sweep.seeds)))
    try:
        tried = try_program(words, folder, values, options=sweep.options, include=sweep.include, seed=seed)
    except InputError as error:
        if command is not None:
            raise
        sweep.notes.append(f"the program can't be tried: {reason_of(error)}")
        return [command_line(program), results_line(None)], [], []
    if tried.failure and command is not None:
        raise InputError(tried.failure)
    if tried.failure:
        sweep.notes.append(f"the program can't be tried: {' '.join(tried.failure.split())}")
    sweep.fixed |= tried.values
    return tried.keys, tried.metrics, tried.remarks


def _directions(sweep: Sweep, metrics: Sequence[str]) -> dict[str, str]:
    """Return the better direction of each metric, the sweep's objectives first; note assumptions about them."""
    directions = {name: better for name, better in sweep.objectives if name}
    left = [metric for metric in metrics if metric not in directions]
    unnamed = [better for name, better in sweep.objectives if not name]
    if len(unnamed) == 1 and left:
        directions[left[0]] = unnamed[0]
        sweep.notes.append(f"the objective has no name and is assumed to be {left[0]} ({unnamed[0]} is better)")
    else:
        names = ["objective"] if len(unnamed) == 1 else [f"objective_{number}" for number in range(len(unnamed))]
        directions |= dict(zip(names, unnamed, strict=True))
    missing = [name for name in directions if metrics and name not in metrics]
    if missing:
        sweep.notes.append(f"{join_and(missing)} isn't among the results that were found: {join_and(list(metrics))}")
    return {name: directions.get(name) or direction_of(name) for name in (*directions, *left)} or {"loss": "lower"}


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML or JSON file.

    Raises:
        InputError: if it can't be read, is empty or isn't valid YAML; or if it has a key twice, an anchor, an alias, a
            tag or several documents, or is too large or too deep (see `study.spec.document`).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from None
    document = read(text)
    if document.problems:
        problem = document.problems[0]
        raise InputError(f"{path}" + (f", line {problem.line}" if problem.line else "") + f": {problem.message}")
    return document.data

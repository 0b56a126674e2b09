"""W&B's sweep configurations, by the rules of its documentation and its agent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.driver.sweeps.sweep import Domain, Sweep, range_of, read_yaml
from study.errors import InputError, nearest

_COMMAND = ("${env}", "${interpreter}", "${program}", "${args}")
_METHODS = {"grid": "", "random": "random", "bayes": "TPE"}
_TRANSLATED = ("program", "command", "method", "parameters", "metric", "run_cap", "early_terminate", "description")
_LEFT_OUT = {
    "name": "the study has its own name",
    "project": "results are in the store",
    "entity": "results are in the store",
}
_HYPERBAND_ETA = 3
"""Default of W&B's `eta`, and of `factor` in `prune`."""
_KEYS = ("value", "values", "distribution", "min", "max", "q", "mu", "sigma", "probabilities", "parameters")
_FLAGS = {
    "args": "--{path}={value}",
    "args_no_hyphens": "{path}={value}",
    "args_append_hydra": "+{path}={value}",
    "args_override_hydra": "++{path}={value}",
    "args_no_boolean_flags": "--{path}={value}",
}


def sweep_of_wandb(path: Path) -> Sweep:
    """Read a sweep configuration of W&B as a sweep; parts without a counterpart are left out, with a note.

    Other keys of `early_terminate`, such as ``strict``, and unused keys of a parameter get no note.

    Args:
        path: path of ``sweep.yaml``.

    Raises:
        InputError: if it can't be read, isn't a valid sweep configuration, or has an invalid seed.
    """
    content = read_yaml(path)
    if not isinstance(content, Mapping) or not isinstance(content.get("parameters"), Mapping):
        raise InputError(f"{path}: must be a sweep configuration of W&B, with method and parameters; check the path")
    method = content.get("method")
    if not isinstance(method, str) or method not in _METHODS:
        raise InputError(f"{path}: method must be grid, random or bayes, but is {method!r}{nearest(method, _METHODS)}")
    sweep = Sweep(
        source=f"W&B's sweep {path}", question=str(content.get("description") or ""), sampler=_METHODS[method]
    )
    domains: dict[str, Domain] = {}
    for name, parameter in _flat(content["parameters"]):
        try:
            domains[name] = _domain(parameter, name, sweep.notes, is_grid=method == "grid")
        except (ValueError, TypeError, OverflowError) as error:
            raise InputError(f"{path}: parameters.{name}: {error}") from None
    names = sweep.add(domains)
    sweep.words = _words(content, names, domains, sweep.notes)
    _take_metric(content.get("metric"), path, sweep)
    _take_cap(content.get("run_cap"), path, sweep)
    _take_early_stopping(content.get("early_terminate"), path, sweep)
    if method == "bayes":
        sweep.notes.append("method bayes becomes a search by TPE, instead of a Gaussian process")
    for key, value in content.items():
        if key not in _TRANSLATED:
            sweep.notes.append(f"{key} {value} is left out" + (f": {_LEFT_OUT[key]}" if key in _LEFT_OUT else ""))
    return sweep


def _flat(parameters: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, parameter in parameters.items():
        if isinstance(parameter, Mapping) and isinstance(parameter.get("parameters"), Mapping):
            yield from _flat(parameter["parameters"], f"{before}{name}.")
        else:
            yield f"{before}{name}", parameter


def _domain(parameter: Any, name: str, notes: list[str], *, is_grid: bool) -> Domain:
    """Return the values of a parameter, and note changes and omissions; raise ValueError if it is invalid."""
    if not isinstance(parameter, Mapping) or not parameter:
        raise ValueError(f"must be a table, such as {{values: [1, 2]}}, but is {parameter!r}")
    if unknown := [key for key in parameter if key not in _KEYS]:
        raise ValueError(f"must have only {', '.join(_KEYS)}, but has {unknown[0]}{nearest(unknown[0], _KEYS)}")
    if "value" in parameter:
        return {"choices": _none_as_text([parameter["value"]], name, notes)}
    if "values" in parameter:
        if not isinstance(parameter["values"], list) or not parameter["values"]:
            raise ValueError(f"values must be a list with at least one value, but is {parameter['values']!r}")
        if "probabilities" in parameter:
            notes.append(f"{name}: probabilities are left out: all values are equally likely")
        return {"choices": _none_as_text(parameter["values"], name, notes)}
    numbers = {key: parameter[key] for key in ("min", "max", "q", "mu", "sigma") if key in parameter}
    if wrong := [key for key, number in numbers.items() if type(number) not in (int, float)]:
        raise ValueError(f"{wrong[0]} must be a number, but is {numbers[wrong[0]]!r}")
    are_whole = all(isinstance(numbers.get(end), int) for end in ("min", "max"))
    distribution = str(parameter.get("distribution", "int_uniform" if are_whole else "uniform"))
    if is_grid:
        return {"choices": _grid_values(distribution, numbers)}
    return _range(distribution, numbers, name, notes)


def _none_as_text(values: Sequence[Any], name: str, notes: list[str]) -> list[Any]:
    """Replace null by the text None, as W&B's agent does."""
    if None in values:
        notes.append(f"{name}: null becomes the text None, as W&B's agent writes it")
    return ["None" if value is None else value for value in values]


def _grid_values(distribution: str, numbers: Mapping[str, Any]) -> list[Any]:
    """Return the values of a distribution for a grid; raise ValueError if it has none."""
    if distribution not in ("int_uniform", "q_uniform"):
        raise ValueError(f"a grid takes value, values, int_uniform or q_uniform, but got {distribution}")
    low, high = _limits(distribution, numbers)
    step = 1 if distribution == "int_uniform" else numbers.get("q", 1)
    if not step > 0:
        raise ValueError(f"q must be greater than 0, but is {step}")
    return [_round(low + step * number, step) for number in range(math.floor((high - low) / step + 1e-9) + 1)]


def _range(distribution: str, numbers: Mapping[str, Any], name: str, notes: list[str]) -> Domain:
    """Return the range of a distribution; normal ones become uniform, with a note.

    Raise ValueError if the distribution is unknown, or its limits are missing or wrong.
    """
    if distribution in ("normal", "q_normal", "log_normal", "q_log_normal"):
        mu, sigma = numbers.get("mu", 0), numbers.get("sigma", 1)
        if not sigma > 0:
            raise ValueError(f"sigma > 0 must hold, but got {sigma}")
        low, high = mu - 2 * sigma, mu + 2 * sigma
        is_log = "log" in distribution
        given = f"{distribution} with mu {mu:g} and sigma {sigma:g}"
        notes.append(f"{name}: {given} is replaced by a {'log-' * is_log}uniform range of 2 sigma to both sides")
        return range_of(math.exp(low), math.exp(high), is_log=True) if is_log else range_of(low, high)
    low, high = _limits(distribution, numbers)
    if distribution == "int_uniform":
        return {"low": int(low), "high": int(high)} if low < high else {"choices": [int(low)]}
    kind = distribution.removeprefix("q_")
    if kind in ("log_uniform", "inv_log_uniform"):  # their limits are exponents
        low, high = (low, high) if kind == "log_uniform" else (-high, -low)
        low, high = float(f"{math.exp(low):.12g}"), float(f"{math.exp(high):.12g}")
    elif kind not in ("uniform", "log_uniform_values", "inv_log_uniform_values"):
        raise ValueError(f"distribution {distribution!r} isn't one of W&B's")
    return range_of(low, high, numbers.get("q", 1) if distribution != kind else None, name, notes, is_log="log" in kind)


def _limits(distribution: str, numbers: Mapping[str, Any]) -> tuple[float, float]:
    if missing := [end for end in ("min", "max") if end not in numbers]:
        raise ValueError(f"{distribution} needs min and max; add {' and '.join(missing)}")
    if not numbers["min"] <= numbers["max"]:
        raise ValueError(f"min <= max must hold, but got {numbers['min']} and {numbers['max']}")
    return numbers["min"], numbers["max"]


def _round(value: float, step: float) -> float:
    return value if isinstance(value, int) else float(f"{round(value / step) * step:.12g}")


def _words(
    content: Mapping[str, Any], names: Mapping[str, str], domains: Mapping[str, Domain], notes: list[str]
) -> list[str]:
    """Return the command of W&B's agent, with placeholders for the parameters, and note omitted parts.

    The result is empty if the command needs a program and the sweep names none.
    """
    command = content.get("command") or _COMMAND
    if "program" not in content and "${program}" in command:
        return []
    command = command if isinstance(command, list | tuple) else str(command).split()
    words: list[str] = []
    for word in map(str, command):
        macro = word[2:-1] if re.fullmatch(r"\$\{\w+\}", word) else ""
        if macro in _FLAGS:
            for path, name in names.items():
                values = domains[path].get("choices", ())
                if macro == "args_no_boolean_flags" and _are_flags(values):
                    words.append(f"{{{name}:--{path}}}")
                else:
                    words.append(_FLAGS[macro].format(path=path, value=_placeholder(name, values)))
        elif macro == "args_no_equals":
            words += [
                part
                for path, name in names.items()
                for part in (f"--{path}", _placeholder(name, domains[path].get("choices", ())))
            ]
        elif macro == "args_json":
            words.append(_json_word(names, domains, notes))
        elif macro == "args_json_file":
            words.append("{config}")
        elif macro in ("interpreter", "program"):
            words.append("python" if macro == "interpreter" else str(content["program"]))
        elif macro != "env":
            if "${" in word:
                notes.append(f"{word} in the command isn't filled in: put its value there")
            words.append(re.sub(r"\{(\w[^{}]*)\}", r"{{\1}}", word))
    if any("." in path for path in names):
        notes.append("nested parameters become arguments with dots; W&B's agent gives a table as one argument")
    if not {"{config}"} & set(words) and not any("{" in word for word in words):
        notes.append("the command has no parameters: wandb.config is empty without W&B's agent, so read them elsewhere")
    return words


def _placeholder(name: str, values: Sequence[Any]) -> str:
    return f"{{{name}:True|False}}" if _are_flags(values) else f"{{{name}}}"  # W&B's agent writes them as Python does


def _are_flags(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, bool) for value in values)


def _json_word(names: Mapping[str, str], domains: Mapping[str, Domain], notes: list[str]) -> str:
    parts = []
    for path, name in names.items():
        texts = [isinstance(value, str) for value in domains[path].get("choices", (0,))]
        if any(texts) and not all(texts):
            notes.append(f"{path} has texts and other values, which ${{args_json}} can't tell apart: use {{config}}")
        parts.append(f'"{path}": "{{{name}}}"' if all(texts) else f'"{path}": {{{name}}}')
    return "{ " + ", ".join(parts) + " }"


def _take_metric(metric: Any, path: Path, sweep: Sweep) -> None:
    """Set the sweep's objective from W&B's `metric`, if there is one; raise InputError if it is invalid."""
    if metric is None:
        return
    if not isinstance(metric, Mapping) or not isinstance(metric.get("name"), str):
        raise InputError(f"{path}: metric must have a name, such as {{name: val_loss, goal: minimize}}, not {metric!r}")
    goal = metric.get("goal", "minimize")
    if goal not in ("minimize", "maximize"):
        raise InputError(f"{path}: metric.goal must be minimize or maximize, but is {goal!r}")
    sweep.objectives = [(metric["name"], "lower" if goal == "minimize" else "higher")]
    left = {key: value for key, value in metric.items() if key not in ("name", "goal")}
    sweep.notes += [f"metric.{key} {value} is left out" for key, value in left.items()]


def _take_cap(cap: Any, path: Path, sweep: Sweep) -> None:
    """Set a search's number of trials from W&B's `run_cap`, if there is one; raise InputError if it is invalid."""
    if cap is None:
        return
    if type(cap) is not int or cap < 1:
        raise InputError(f"{path}: run_cap must be a whole number of at least 1, but is {cap!r}")
    if not sweep.sampler:
        sweep.notes.append(f"run_cap {cap} is left out: a grid runs all of its trials")
        return
    sweep.trials = cap
    sweep.notes.append(f"run_cap {cap} becomes the number of trials; each candidate has several, one a seed")


def _take_early_stopping(rule: Any, path: Path, sweep: Sweep) -> None:
    """Set the sweep's `prune` from W&B's `early_terminate`: hyperband becomes halving from the same step and factor.

    Raise InputError if it is invalid. Without it, do nothing.
    """
    if rule is None:
        return
    # W&B compares at min_iter, min_iter eta, ..., or at max_iter / eta**s, ...
    if not isinstance(rule, Mapping) or rule.get("type") != "hyperband":
        raise InputError(f"{path}: early_terminate must be a table with type: hyperband, but is {rule!r}")
    numbers = {key: rule[key] for key in ("eta", "s", "min_iter", "max_iter") if key in rule}
    for key, least in [("eta", 2), ("s", 1), ("min_iter", 1), ("max_iter", 1)]:
        if key in numbers and (type(numbers[key]) is not int or numbers[key] < least):
            raise InputError(
                f"{path}: early_terminate.{key} must be a whole number of at least {least}, but is {numbers[key]!r}"
            )
    if not {"max_iter", "s"} <= set(numbers) and ("max_iter" in numbers or "min_iter" not in numbers):
        raise InputError(f"{path}: early_terminate must have max_iter and s, or min_iter alone, but is {rule!r}")
    eta = numbers.get("eta", _HYPERBAND_ETA)
    first = max(1, numbers["max_iter"] // eta ** numbers["s"]) if "max_iter" in numbers else numbers["min_iter"]
    sweep.prune = {"method": "halving", "first": first} | ({"factor": eta} if eta != _HYPERBAND_ETA else {})
    sweep.notes.append(
        f"early_terminate becomes halving from step {first} on; W&B counts calls that log, and prune counts steps"
    )

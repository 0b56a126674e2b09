"""Tables of a pack's trials for compiled code; the trials may have different shapes.

A shape determines tensors and code: model, hidden units, operation, optimiser, and more. Values shared by all trials of
a shape are a record in a table, whose fields compiled code reads by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.arithmetic.engine.compiled.codes import Code, Target
from tasks.arithmetic.engine.compiled.pack import PackArrays
from tasks.arithmetic.engine.shared.update_rule import UpdateRule

_CODE = np.dtype(
    [
        ("family", np.int64),
        ("weights", np.int64),
        ("activation", np.int64),
        ("shared", np.bool_),
        ("low", np.float32),
        ("high", np.float32),
    ]
)
_SHAPE = np.dtype(
    [
        ("hidden", np.int64),
        ("middle", np.int64),
        ("parameters", np.int64),
        ("operation", np.int64),
        ("subsets", np.int64),
    ]
)
_RULE = np.dtype(
    [
        ("optimizer", np.int64),
        ("momentum", np.float32),
        ("squared", np.bool_),
        ("out_squared", np.bool_),
        ("parts", np.int64),
    ]
)
_PART = np.dtype(
    [("end", np.int64), ("share", np.float32), ("low", np.float32), ("high", np.float32), ("of_nau", np.bool_)]
)


class Rules(NamedTuple):
    """Update rules of the parameters; see `UpdateRule`.

    Args:
        shapes: optimiser and regularisers of each shape, records [shapes].
        parts: rule of each shape's parameters, records [shapes, parameters].
        rate: float32 [trials].
        strength: float64 [trials].
        start: float64 [trials].
        length: float64 [trials].
        exponential: bool [trials].
        out_strength: float32 [trials].
    """

    shapes: Any
    parts: Any
    rate: Any
    strength: Any
    start: Any
    length: Any
    exponential: Any
    out_strength: Any


class PackTables(NamedTuple):
    """The tables of a pack's trials.

    Args:
        inputs: numbers in a row, n.
        shapes: sizes and task of each shape, records [shapes].
        codes: units of both layers of each shape, records [shapes, 2].
        shape: index of each trial's shape, int64 [trials].
        at: start of each trial's parameters, int64 [trials].
        starts: first input of each subset, int64 [trials, subsets].
        stops: the input after each subset's last, the same shape.
        rules: update rules of the parameters.
    """

    inputs: int
    shapes: Any
    codes: Any
    shape: Any
    at: Any
    starts: Any
    stops: Any
    rules: Rules


def new_tables(
    parts: Sequence[PackArrays], places: Sequence[npt.NDArray[np.int64]], at: npt.NDArray[Any]
) -> PackTables:
    """Make the tables of a pack.

    Args:
        parts: the trials of each shape.
        places: places in the pack of each part's trials.
        at: start of each trial's parameters, int64 [trials].
    """
    networks, targets, rules = ([getattr(part, name) for part in parts] for name in ("network", "target", "rule"))
    shape = np.empty(len(at), np.int64)
    for k, mine in enumerate(places):
        shape[mine] = k
    starts, stops = _spans(targets, places)
    sizes = [
        (n.hidden, n.parameters, int(rule.ends[-1]), target.operation, target.starts.shape[1])
        for n, target, rule in zip(networks, targets, rules, strict=True)
    ]
    codes = [[_code_row(network.first), _code_row(network.second)] for network in networks]
    return PackTables(
        inputs=networks[0].inputs,
        shapes=np.array(sizes, _SHAPE),
        codes=np.array(codes, _CODE),
        shape=shape,
        at=at,
        starts=starts,
        stops=stops,
        rules=_new_rules(rules, places),
    )


def _code_row(code: Code) -> tuple[Any, ...]:
    return tuple(getattr(code, str(name)) for name in _CODE.names or ())


def _spans(targets: Sequence[Target], places: Sequence[npt.NDArray[np.int64]]) -> tuple[Any, Any]:
    """Tabulate the starts and stops of subsets; missing subsets of a trial are empty."""
    most, trials = max(target.starts.shape[1] for target in targets), sum(map(len, places))
    spans = []
    for name in ("starts", "stops"):
        table = np.zeros((trials, most), np.int64)
        for target, mine in zip(targets, places, strict=True):
            span = getattr(target, name)
            table[mine, : span.shape[1]] = span
        spans.append(table)
    return spans[0], spans[1]


def _new_rules(rules: Sequence[UpdateRule], places: Sequence[npt.NDArray[np.int64]]) -> Rules:
    trials, most = sum(map(len, places)), max(len(rule.ends) for rule in rules)
    shapes = [(rule.optimizer, rule.momentum, rule.squared, rule.out_squared, len(rule.ends)) for rule in rules]
    parts = np.zeros((len(rules), most), _PART)
    for k, rule in enumerate(rules):
        rows = zip(rule.ends, rule.share, rule.low, rule.high, rule.of_nau, strict=True)
        parts[k, : len(rule.ends)] = np.array(list(rows), _PART)
    of_trials = {}
    for name in ("rate", "strength", "start", "length", "exponential", "out_strength"):
        table = np.zeros(trials, getattr(rules[0], name).dtype)
        for rule, mine in zip(rules, places, strict=True):
            table[mine] = getattr(rule, name)
        of_trials[name] = table
    return Rules(shapes=np.array(shapes, _RULE), parts=parts, **of_trials)

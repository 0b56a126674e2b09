"""Frozen rows that the stages exchange.

    spec -> Cell, Trial -> Pack -> (engine) -> Progress, Checkpoint, Result, Curve, Weights
                                                     -> store, tracking, aggregate

Fields that don't apply to a cell (a sparsity schedule for NAC-mul) are None.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Interval = tuple[float, float]
Range = tuple[Interval, ...]
"""One interval, or two of equal width; each element is drawn from either with probability 1/2."""

ID_VERSION = 1
"""Part of every id, increased when the meaning of a cell changes, so that old results aren't used."""


IMPORTED = "imported"
"""Engine of imported results, which were computed elsewhere."""


class Outcome(StrEnum):
    """Outcome of a trial. Pending isn't an outcome."""

    SOLVED = "solved"
    UNSOLVED = "unsolved"
    DIVERGED = "diverged"
    FAILED = "failed"
    FINISHED = "finished"
    """It ran to its end, and has no success criterion."""
    STOPPED = "stopped"
    """`prune` stopped it early, since other trials had come further; its outcome isn't known."""


def short_digest(content: Mapping[str, Any]) -> str:
    """Return a digest of JSON content, 16 hexadecimal digits, independent of the order of its names.

    Raises:
        TypeError: if a value has no JSON form, or a mapping isn't a dict.
        ValueError: if a number is NaN or infinite.

    Example:
        >>> short_digest({"a": 1, "b": 2}) == short_digest({"b": 2, "a": 1})
        True
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Cell:
    """Point of the grid: everything that determines a trial's result except its seed.

    Cells with the same id are equal.

    Args:
        task: the task's name.
        model: the model's name.
        values: the canonical value of each hyperparameter, in the order in which they are declared; None for one that
            doesn't apply.

    Example:
        >>> cell = Cell("simple", "NMU", {"hidden_size": 2, "momentum": None})
        >>> cell.id == Cell("simple", "NMU", {"hidden_size": 2}).id != Cell("simple", "NMU", {"hidden_size": 2.0}).id
        True
        >>> cell.value("hidden_size"), cell.value("model"), cell.value("width")
        (2, 'NMU', None)
    """

    task: str
    model: str
    values: Mapping[str, Any]

    @cached_property
    def id(self) -> str:
        """A hash of the cell's content, without the hyperparameters that don't apply."""
        return self.id_of_version(ID_VERSION)

    def id_of_version(self, version: int) -> str:
        """Return the cell's id under the current or an earlier version of ids.

        Args:
            version: the version of ids, from 1 to `ID_VERSION`.

        Raises:
            TypeError: if a value has no JSON form.
            ValueError: if a number is NaN or infinite.
        """
        content = {"task": self.task, "model": self.model, **self.values}
        return short_digest({"version": version, **{name: v for name, v in content.items() if v is not None}})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parts: task, model and hyperparameters."""
        return ("task", "model", *self.values)

    @property
    def iterations(self) -> int:
        """The last iteration of its trials; 0 if they don't have iterations."""
        return int(self.values.get("iterations") or 0)

    def value(self, name: str) -> Any:
        """Return the task, the model or a hyperparameter's value, lists as tuples; None if inapplicable or unknown."""
        if name in ("task", "model"):
            return getattr(self, name)
        return with_tuples(self.values.get(name))

    def replace(self, **values: Any) -> Cell:
        """Return a copy of the cell with the given task, model or values of hyperparameters."""
        content = {"task": self.task, "model": self.model, **self.values, **values}
        return Cell(content.pop("task"), content.pop("model"), content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)


def with_tuples(value: Any) -> Any:
    """Return a value of JSON with tuples for its lists.

    Example:
        >>> with_tuples([[1, 2], "a"])
        ((1, 2), 'a')
    """
    return tuple(map(with_tuples, value)) if isinstance(value, list) else value


def names_of(cells: Iterable[Cell]) -> list[str]:
    """Return the names of all cells' parts (task, model, hyperparameters), each once; empty without cells."""
    return list(dict.fromkeys(name for cell in cells for name in cell.names))


_BITS = 21
MOST_COMBINED = 2**_BITS
"""Limit of combined seeds; each is less than this number minus 1."""
LEAST_SEED = -(2**63)
"""The least possible seed of a trial."""


@dataclass(frozen=True)
class Sources:
    """The seeds of a trial's sources of randomness.

    Args:
        init: seed of the initial weights.
        data: seed of the training rows and all other draws, such as the problem and noise.
        evaluation: seed of the validation and test rows; None if all trials share these rows.

    Raises:
        ValueError: if the sources don't share one seed, and a seed isn't in [0, 2**21 - 1).

    Example:
        >>> Sources(7, 7).seed, Sources(7, 3).seed, Sources(7, 7, 0).seed
        (7, -6291464, -4398061191176)
        >>> sources_of(-6291464)
        Sources(init=7, data=3, evaluation=None)
    """

    init: int
    data: int
    evaluation: int | None = None

    def __post_init__(self) -> None:
        seeds = (self.init, self.data, self.evaluation or 0)
        if self.are_combined and not all(0 <= seed < MOST_COMBINED - 1 for seed in seeds):
            raise ValueError(f"seeds that are combined must be >= 0 and < {MOST_COMBINED - 1:,}, but got {seeds}")

    @property
    def are_combined(self) -> bool:
        """True if the sources don't have one common seed."""
        return self.init != self.data or self.evaluation is not None

    @property
    def seed(self) -> int:
        """The number that encodes them: the seed itself, or a negative number if several are combined."""
        if not self.are_combined:
            return self.init
        evaluation = 0 if self.evaluation is None else self.evaluation + 1
        return -1 - ((evaluation << 2 * _BITS) | (self.data << _BITS) | self.init)

    def __str__(self) -> str:
        if not self.are_combined:
            return str(self.init)
        text = f"init {self.init}, data {self.data}"
        return text if self.evaluation is None else f"{text}, evaluation {self.evaluation}"


def sources_of(seed: int) -> Sources:
    """Return the seeds of the sources of randomness that a trial's seed encodes.

    Raises:
        ValueError: if a negative seed combines different sources' seeds, and one is 2**21 - 1 or more.
    """
    if seed >= 0:
        return Sources(seed, seed)
    quotient, init = divmod(-1 - seed, MOST_COMBINED)
    evaluation, data = divmod(quotient, MOST_COMBINED)
    return Sources(init, data, evaluation - 1 if evaluation else None)


@dataclass(frozen=True)
class Trial:
    """Pair of cell and seed: the smallest unit with a result.

    Args:
        cell: everything except the seed.
        seed: 0 <= seed < 2**63, the key of the trial's random stream; negative for combined seeds (see `Sources`).
    """

    cell: Cell
    seed: int

    @cached_property
    def sources(self) -> Sources:
        """The seeds of its sources of randomness."""
        return sources_of(self.seed)

    @cached_property
    def id(self) -> str:
        """A hash of everything that determines the trial's result."""
        return short_digest({"cell": self.cell.id, "seed": self.seed})


@dataclass(frozen=True)
class Pack:
    """Trials of equal tensor shape that are trained together: the unit of scheduling."""

    trials: tuple[Trial, ...]

    @cached_property
    def id(self) -> str:
        """A hash of the pack's trials, in order."""
        return short_digest({"trials": [trial.id for trial in self.trials]})


@dataclass(frozen=True)
class Progress:
    """Progress of a pack.

    Args:
        pack_id: the pack's id.
        iteration: number of updates of each trial so far.
        iterations: number of updates of a full run.
        trials: number of its trials.
        solved: number of trials whose test MSE has been below the threshold.
        diverged: number of trials whose weights are no longer numbers.
        begun_at: number of updates in the checkpoint from which this worker began.
        latest: by cell, the mean of its trials' latest values of the first metric, and the number of these values.
        ended: number of its trials that have ended, if they are trained one after another.
    """

    pack_id: str
    iteration: int
    iterations: int
    trials: int
    solved: int
    diverged: int
    begun_at: int = 0
    latest: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    ended: int = 0


@dataclass(frozen=True)
class PackDone:
    """Event: a pack's results are in the store."""

    pack_id: str


@dataclass(frozen=True)
class PackCrashed:
    """Event: a pack raised an error; it may be tried again.

    Args:
        pack_id: the pack's id.
        error: the error's text.
    """

    pack_id: str
    error: str


@dataclass(frozen=True)
class PackSplit:
    """Event: a pack doesn't fit on its device, so it is trained as smaller packs.

    A `PackDone` of each smaller pack precedes that of the whole pack.

    Args:
        pack_id: the pack's id.
        parts: the smaller packs, in order; together they have its trials.
    """

    pack_id: str
    parts: tuple[Pack, ...]


@dataclass(frozen=True)
class PackFailed:
    """Event: a pack crashed after the last permitted attempt; its trials have no result.

    Args:
        pack_id: the pack's id.
        error: the last error's text.
    """

    pack_id: str
    error: str


@dataclass(frozen=True)
class Tick:
    """Event: time has passed, so the display should be updated."""


@dataclass(frozen=True)
class Keep:
    """Selection of a trial's files to keep.

    Args:
        patterns: patterns of paths below the trial's folder; one without a slash matches names in any folder.
        size_mb: largest size of a trial's files in megabytes.

    Example:
        >>> keep = Keep(("*.png", "best/*"))
        >>> [keep.matches(name) for name in ("a.png", "plots/a.png", "best/w.npz", "w.npz")]
        [True, True, True, False]
    """

    patterns: Sequence[str] = ("*",)
    size_mb: float = 20.0

    def matches(self, name: str) -> bool:
        """Return True if a file's path matches one of the patterns; its size isn't considered."""
        paths = {True: name, False: PurePosixPath(name).name}
        return any(fnmatch.fnmatchcase(paths["/" in pattern], pattern) for pattern in self.patterns)


@dataclass(frozen=True)
class Notice:
    """A sentence for the user.

    Args:
        text: the sentence.
        is_once: True to print it once per run, even if several workers report it.
    """

    text: str
    is_once: bool = False


@dataclass(frozen=True)
class Preparing:
    """A step of an engine's preparation, once on each machine: one process compiles it while others wait.

    Args:
        engine: the engine's name.
        machine: the machine's host name.
        doing: ``compiling``, ``preparing`` if its files may be on disk already, ``waiting`` for another process that
            does either, or ``ready``.
        pack_id: the pack that waits for it; empty if none does.
    """

    engine: str
    machine: str
    doing: Literal["compiling", "preparing", "waiting", "ready"]
    pack_id: str = ""


@dataclass(frozen=True)
class WorkersWait:
    """Number of workers without room in the cluster; reported whenever it changes.

    Args:
        count: number of waiting workers.
        total: number of running and waiting workers.
    """

    count: int
    total: int


Event = Progress | PackDone | PackCrashed | PackSplit | PackFailed | Tick | Notice | Preparing | WorkersWait
"""Events that a scheduler reports while it runs packs."""


@dataclass(frozen=True)
class Checkpoint:
    """State of a pack in mid-training; training can continue from it bit for bit.

    Args:
        pack_id: the pack's id.
        trial_ids: ids of its trials, in the order of the arrays' first axis.
        iteration: number of updates so far.
        arrays: engine state by name; none needs pickle. If trials are trained side by side, every array's first axis is
            the trial.
        training_s: seconds of training so far.
        engine: name of the engine that made it; only the same engine may resume from it.
    """

    pack_id: str
    trial_ids: tuple[str, ...]
    iteration: int
    arrays: Mapping[str, npt.NDArray[Any]]
    training_s: float
    engine: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of one trial. None means that a number doesn't exist; NaN never occurs.

    Args:
        trial: the trial.
        outcome: solved, unsolved, diverged, failed, finished or stopped.
        threshold: the number that a metric has to pass for success; None for a failed trial.
        criterion: the success criterion, such as ``test_accuracy >= 0.95``; None if the cell defines it.
        best_iteration: iteration of the best step: the best value of the task's first metric in the window (ties:
            first; NaN skipped).
        metrics: the task's available metrics at that iteration, by name.
        solved_at_iteration: first iteration whose evaluation passed the threshold.
        iterations: the last iteration: the cell's, or that of the evaluation at which the trial was stopped.
        stopped_early: True if `stop: when_decided` ended it.
        training_s: its share of the pack's seconds of training.
        engine: name of the engine that trained it.
        device: the device that it was trained on, for example ``cpu``.
        error: why it failed; None otherwise.
    """

    trial: Trial
    outcome: Outcome
    threshold: float | None = None
    criterion: str | None = None
    best_iteration: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)
    solved_at_iteration: int | None = None
    iterations: int = 0
    stopped_early: bool = False
    training_s: float = 0.0
    engine: str = ""
    device: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Curve:
    """A trial's evaluations, oldest first; all arrays have shape [evaluations].

    Args:
        trial_id: the trial's id.
        iteration: int64.
        metrics: values by metric, float32 or float64; NaN where the model gave none.
    """

    trial_id: str
    iteration: npt.NDArray[np.int64]
    metrics: Mapping[str, npt.NDArray[np.floating[Any]]]


@dataclass(frozen=True)
class Weights:
    """A trial's parameters at the end of its training; NaN where they are no longer numbers.

    Args:
        trial_id: the trial's id.
        iteration: number of updates; an evaluation at that iteration precedes its update, and uses these weights.
        arrays: parameters by name, such as ``layer_1.`` or ``layer_2.`` and the parameter's name in the unit's module.
            Shapes are those for one trial: [out, in], or [out] for a bias.
    """

    trial_id: str
    iteration: int
    arrays: Mapping[str, npt.NDArray[np.float32]]


def is_pairs(value: object) -> bool:
    """Return True for a tuple of pairs of numbers, as `format_range` writes them.

    Example:
        >>> is_pairs(((-6.0, -2.0), (2, 6))), is_pairs((("conv", "relu"),)), is_pairs(())
        (True, False, False)
    """
    return isinstance(value, tuple) and bool(value) and all(_is_pair(part) for part in value)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(end, int | float) for end in value)


def format_range(range_: Range) -> str:
    """Format a range as text, with all its digits.

    Example:
        >>> format_range(((-6.0, -2.0), (2.0, 6.1)))
        '[-6,-2]|[2,6.1]'
    """
    return "|".join(f"[{_shortest(low)},{_shortest(high)}]" for low, high in range_)


def _shortest(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def parse_range(text: str) -> Range:
    """Parse a text of `format_range`.

    Raises:
        ValueError: if a part of the text isn't an interval of two numbers.

    Example:
        >>> parse_range('[-6,-2]|[2,6]')
        ((-6.0, -2.0), (2.0, 6.0))
    """
    pairs = [part.strip("[]").split(",") for part in text.split("|")]
    return tuple((float(low), float(high)) for low, high in pairs)


Labels = Mapping[str, Mapping[str, str]]
"""Names of grid points that set several hyperparameters, by cell id, then by grid axis."""


def value(cell: Cell, key: str, labels: Labels) -> Any:
    """Return a cell's value of a hyperparameter, or its label on an axis of the grid; None if it has neither."""
    return cell.value(key) if key in cell.names else labels.get(cell.id, {}).get(key)

"""Outcomes of runs: seeds, groups, metrics, and the runs that count.

Every decision is reported to the user, who can override it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError
from study.interface.declarations import Metric
from study.outcomes.columns import ALIASES, OUTCOME_SCHEMA
from study.outcomes.files import Source, without_states
from study.outcomes.gather import SOURCE, Outcomes, fewest_columns, gather, infer_type
from study.outcomes.nested_runs import inherited, with_trials_below
from study.outcomes.run_columns import CONSTANT, LABEL, SECONDARY, STATED, RunChoices, floats, role_of
from study.outcomes.run_names import direction, main_first, seed_column
from study.outcomes.runs import HYPERPARAMETER, METRIC, OTHER, Runs
from study.outcomes.states import read_state_words
from study.outcomes.wanted import Wanted, question, wanted
from study.records import Outcome
from study.trials.grouping import group_codes
from study.words import count_of

Rows = npt.NDArray[np.bool_]

_RESERVED = {"trial_id", "source", *(alias for aliases in ALIASES.values() for alias in aliases)}
_MOST_METRICS = 6
_MOST_NAMES = 12


@dataclass(frozen=True)
class RunOutcomes:
    """Outcomes of runs, one row a trial.

    Args:
        name: the name of the runs.
        outcomes: the trials, as `gather` returns them.
        metrics: the columns that are averaged, the main one first; True if higher values are better.
        notices: the decisions, a sentence each.
    """

    name: str
    outcomes: Outcomes
    metrics: Mapping[str, bool]
    notices: tuple[str, ...]

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that distinguish groups."""
        return self.outcomes.by

    @property
    def table(self) -> pa.Table:
        """The trials as `write_outcomes` writes them, metrics last.

        Columns source and stopped_early, and empty columns of `OUTCOME_SCHEMA`, are left out.
        """
        table, ours = self.outcomes.table, OUTCOME_SCHEMA.names
        filled = [name for name in ours if name != "stopped_early" and table[name].null_count < len(table)]
        others = [name for name in table.column_names if name not in (*ours, *self.metrics, SOURCE)]
        return table.select([*filled, *others, *self.metrics])

    @property
    def metric_options(self) -> list[str]:
        """The metrics as values of the option `study report --metric`."""
        lower = {name: name if direction(name) is False else f"{name}:lower" for name in self.metrics}
        return [f"{name}:higher" if higher else lower[name] for name, higher in self.metrics.items()]


_NONE = RunChoices()


def outcomes_of_runs(runs: Runs, choices: RunChoices = _NONE) -> RunOutcomes:
    """Convert runs to outcomes.

    Runs that haven't ended, runs without a seed and parents of runs with seeds are left out. Runs that failed, were
    stopped or, without columns of outcomes, ended without any metric count as failed. One of several runs with the same
    hyperparameters and seed counts.

    Args:
        runs: the runs.
        choices: the user's choices.

    Raises:
        InputError: if the runs have no seeds, or neither metrics nor outcomes, no run is left, a state has no clear
            meaning, the user names a missing column or a metric without numbers or direction, a choice of state words
            is malformed, a seed or outcome is invalid, or hyperparameters seem to be missing, since too many runs
            repeat others; or if an installed package of tasks can't be imported, or two offer the same task.
        pyarrow.ArrowInvalid: as `floats` raises for a metric with a hexadecimal integer.

    Example:
        >>> table = pa.table({"lr": ["0.1", "0.1", "0.2", "0.2"], "seed": ["0", "1", "0", "1"],
        ...     "val_acc": ["0.91", "0.92", "0.97", "0.96"], "host": ["a", "a", "a", "a"]})
        >>> found = outcomes_of_runs(Runs("runs.csv", table))
        >>> found.by, found.metric_options
        (('lr',), ['val_acc:higher'])
    """
    return _Decisions(runs, choices).outcomes()


class _Decisions:
    """Sequential decisions about runs, with their notices."""

    def __init__(self, runs: Runs, choices: RunChoices) -> None:
        self._runs, self._choices = runs, choices
        self._notices = [*runs.notices]
        self._left_out: list[str] = []
        self._table, self._roles = runs.table, dict(runs.roles)
        self._failed = np.zeros(len(self._table), bool)
        self._extra: dict[str, pa.Array] = {}
        if runs.ids is not None:
            self._extra["trial_id"] = pa.array(runs.ids, pa.string())
        if runs.seconds is not None:
            self._extra["training_s"] = pa.array(runs.seconds, pa.float64())

    def outcomes(self) -> RunOutcomes:
        """Make all decisions, and return the outcomes."""
        named = [*self._choices.by, *self._choices.metric_names]
        _check_columns(named, self._table.column_names)
        self._read_seeds()
        _check_columns(named, self._table.column_names)  # again: the column of seeds is gone
        self._read_states()
        columns = self._columns()
        metrics = self._metrics([name for name in columns if self._roles[name] == METRIC])
        if not self._choices.metrics:  # a column with a metric's name and few values may be a hyperparameter
            guessed = [name for name in list(metrics)[1:] if name not in self._runs.roles]
            self._left_out += [name for name in guessed if 2 * len(pc.unique(columns[name])) <= len(columns[name])]
        hyperparameters = [name for name in columns if self._roles[name] == HYPERPARAMETER]
        names = {name: f"{name} (hyperparameter)" if name in _RESERVED else name for name in hyperparameters}
        stated = {name: self._table[name] for name in STATED if name in self._table.column_names}
        if not stated:
            self._fail_silent([columns[name] for name in metrics])
        content = {"seed": self._extra.pop("seed"), **stated, **self._extra}
        content |= {names[name]: columns[name] for name in hyperparameters} | {name: columns[name] for name in metrics}
        table = self._without_repeats(pa.table(content), list(names.values()))
        by = self._by(table, names)
        self._notices.append(f"metrics: {', '.join(f'{n} ({_better(b)})' for n, b in metrics.items()) or 'none'}")
        source = Source(self._runs.name, table, np.arange(1, len(table) + 1), failed=self._failed)
        columns_wanted = Wanted({name: Metric(higher_is_better=higher) for name, higher in metrics.items()})
        return RunOutcomes(self._runs.name, gather([source], by, columns_wanted), metrics, tuple(self._notices))

    def _read_states(self) -> None:
        """Remove the columns of states and the runs that haven't ended, and mark failed runs."""
        choices = self._choices
        roles = [name for name, role in self._roles.items() if role != OTHER]
        others = {*choices.by, *choices.metric_names, *roles}
        source = Source(self._runs.name, self._table, np.arange(len(self._table)))
        read = without_states(source, others, read_state_words(choices.state_words))
        self._notices += read.notices
        self._table, self._failed = read.table, self._failed if read.failed is None else read.failed
        self._extra = {name: column.take(pa.array(read.rows)) for name, column in self._extra.items()}

    def _fail_silent(self, metrics: Sequence[pa.ChunkedArray]) -> None:
        """Mark runs without any of the metrics as failed; raise InputError if there are no metrics."""
        if not metrics:
            raise InputError(
                f"{self._runs.name} has no metrics: name a column of numbers with --metric; choose from "
                f"{', '.join(self._table.column_names)}"
            )
        is_silent = np.all([np.asarray(column.is_null()) for column in metrics], axis=0)
        if silent := int((is_silent & ~self._failed).sum()):
            self._notices.append(f"failed: {count_of(silent, 'run')}, which ended without any of the metrics")
        self._failed = self._failed | is_silent

    def _read_seeds(self) -> None:
        """Move the seeds out of the table, and leave out runs without a seed and parents of runs with seeds."""
        name = None if self._choices.without_seeds else seed_column(self._table, self._choices.seed)
        if name is None:
            self._notices.append("seeds: none; the numbers of the runs are used instead")
            texts = [str(row) for row in range(len(self._table))]
        else:
            self._notices.append(f"seeds: {name}")
            texts = [str(text).strip() if text is not None else "" for text in self._table[name].to_pylist()]
            self._table = self._table.drop_columns([name])
        self._extra["seed"] = infer_type(pa.chunked_array([pa.array(texts, pa.string())])).combine_chunks()
        has_seed = np.array([text.lower() not in ("", "none", "nan", "null") for text in texts])
        if any(row is not None for row in self._runs.above):
            has_seed = self._unnest(has_seed)
        self._leave_out(~has_seed, "without a seed")

    def _unnest(self, has_seed: Rows) -> Rows:
        """Fill missing values of nested runs from their parents, and leave out parents of runs with seeds.

        Returns `has_seed` of the other runs.
        """
        names = [name for name in self._table.column_names if self._roles.get(name) == HYPERPARAMETER]
        self._table, changed = inherited(self._table, names, self._runs.above)
        self._note("inherited by nested runs", changed)
        is_above = with_trials_below(has_seed, self._runs.above)
        self._leave_out(is_above, "with nested runs that have seeds")
        return has_seed[~is_above]

    def _leave_out(self, rows: Rows, reason: str) -> None:
        """Remove runs, with a notice; raise InputError if none would be left."""
        number = int(rows.sum())
        if not number:
            return
        text = f"{count_of(number, 'run')} {reason}"
        if number == len(rows):
            raise InputError(f"{self._runs.name}: no run is left to count: {text}")
        self._notices.append(f"left out: {text}")
        left = pa.array(~rows)
        self._table, self._failed = self._table.filter(left), self._failed[~rows]
        self._extra = {name: column.filter(left) for name, column in self._extra.items()}

    def _columns(self) -> dict[str, pa.ChunkedArray]:
        """Return the hyperparameters and metrics, typed, and report the columns that are left out."""
        columns, by_role = {}, defaultdict(list)
        for name in self._table.column_names:
            typed = infer_type(self._table[name])
            role = role_of(name, typed, self._roles.get(name), self._choices)
            by_role[role].append(name)
            if role in (HYPERPARAMETER, METRIC):
                self._roles[name] = role
                columns[name] = floats(self._table[name]) if role == METRIC else typed
        self._note("the same in all runs, left out", by_role[CONSTANT])
        empty = [name for name in by_role[""] if self._table[name].null_count == len(self._table)]
        self._note("empty, left out", empty)
        self._note("ids, names, places and times, left out (--by NAME includes one)", by_role[LABEL])
        self._note("spreads, extremes, counts and times, left out (--metric NAME includes one)", by_role[SECONDARY])
        self._left_out = by_role[LABEL] + by_role[SECONDARY]
        return columns

    def _metrics(self, names: Sequence[str]) -> dict[str, bool]:
        """Choose the user's metrics, or up to six by name, with True if higher values are better.

        Raises InputError if a direction is unknown. Other numbers are left out, with a notice.
        """
        if self._choices.metrics:
            columns = wanted(self._choices.metrics)
            if columns.undirected:
                raise InputError("\n".join(map(question, columns.undirected)))
            return {name: metric.higher_is_better for name, metric in columns.metrics.items()}
        ordered = main_first(names)
        telling = [name for name in ordered if direction(name) is not None]
        if not telling and ordered and not any(name in STATED for name in self._table.column_names):
            raise InputError(
                f"{self._runs.name}: no column has the name of a metric. Possible metrics: {_listed(ordered)}; "
                f"{question(ordered[0])}"
            )
        left = [name for name in ordered if name not in telling[:_MOST_METRICS]]
        self._note("other numbers that may be metrics, left out (--metric NAME or --by NAME includes one)", left)
        self._left_out += [name for name in left if name not in self._runs.roles]
        return {name: bool(direction(name)) for name in telling[:_MOST_METRICS]}

    def _without_repeats(self, table: pa.Table, hyperparameters: Sequence[str]) -> pa.Table:
        """Keep one run of each trial, with a notice; raise InputError for too many repeats.

        It is the first (or last) run that didn't fail or, if all failed, the first (or last) of them.
        """
        codes = group_codes(table, [*hyperparameters, "seed"])
        has_failed = self._failed.copy()
        if "outcome" in table.column_names:
            words = table["outcome"].cast(pa.string())
            has_failed |= np.asarray(pc.equal(words, str(Outcome.FAILED)).fill_null(False))
        order = np.arange(len(codes)) * (-1 if self._choices.repeats == "last" else 1)
        places = np.lexsort((order, has_failed, codes))
        first = places[np.append(True, codes[places][1:] != codes[places][:-1])]
        number = len(codes) - len(first)
        if not number:
            return table
        if number >= len(first) and self._left_out:
            raise InputError(
                f"{self._runs.name}: {number:,} of {len(codes):,} runs have the hyperparameters and the seed of "
                f"another: if one of {_listed(self._left_out)} is a hyperparameter, name all hyperparameters with "
                "--by; if none is, name the metrics with --metric; if the runs drew their seeds at random, give "
                "--without-seeds"
            )
        others = np.setdiff1d(np.arange(len(codes)), first)
        groups = len(set(group_codes(table, hyperparameters)[others].tolist()))
        self._notices.append(
            f"repeats: {count_of(number, 'run')} of {count_of(groups, 'group')} with the hyperparameters and the seed "
            f"of another; the {self._choices.repeats} that didn't fail counts (--repeats)"
        )
        first = np.sort(first)
        self._failed = self._failed[first]
        return table.take(pa.array(first))

    def _by(self, table: pa.Table, names: Mapping[str, str]) -> list[str]:
        """Return the columns that distinguish groups, with a notice about the sizes of groups."""
        by = [names.get(name, name) for name in self._choices.by] or fewest_columns(table, list(names.values()))
        codes = group_codes(table, by)
        sizes = Counter(codes.tolist()).values()
        least = "" if min(sizes) == max(sizes) else f"{min(sizes)} to "
        groups = (
            f"{count_of(len(sizes), 'group')} by {', '.join(by)}" if by else "one, since nothing varies but the seed"
        )
        self._notices.append(f"groups: {groups}, {least}{count_of(max(sizes), 'seed')} each")
        return by

    def _note(self, topic: str, names: Sequence[str]) -> None:
        """Add a notice that lists names, if there are any."""
        if names:
            self._notices.append(f"{topic}: {_listed(names)}")


def _check_columns(names: Iterable[str], columns: Sequence[str]) -> None:
    """Raise InputError if a column doesn't exist."""
    for name in names:
        if name not in columns:
            raise InputError(f"the runs have no column {name!r}; choose from {', '.join(columns)}")


def _better(higher: bool) -> str:
    return "higher is better" if higher else "lower is better"


def _listed(names: Sequence[str]) -> str:
    """List the first names, and count the others."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more

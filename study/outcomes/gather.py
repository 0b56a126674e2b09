"""One table of outcomes from several sources, with the columns that distinguish groups."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import cell_columns, hyperparameters_of, metrics_of
from study.errors import InputError
from study.interface.declarations import Metric
from study.outcomes.checks import checked
from study.outcomes.columns import ALIASES, OUTCOME_SCHEMA, measured
from study.outcomes.files import Source
from study.outcomes.run_names import is_label, is_secondary
from study.outcomes.separated import MISSING
from study.outcomes.wanted import Wanted
from study.trials.grouping import all_differ, group_codes
from study.trials.seed_design import Sizes, sizes_of_all
from study.trials.table import TrialTable

SOURCE = "source"
"""Name of the column with each row's file or study."""

_MOST_LISTED = 10


@dataclass(frozen=True)
class Outcomes:
    """Checked outcomes, one row a trial.

    Args:
        table: the columns of `OUTCOME_SCHEMA`, then those that may distinguish groups.
        by: the columns that distinguish groups.
        notices: sentences for the reader.
        metrics: the declarations of the metrics that are averaged, by name.
        sizes: the kind of the sample sizes: adaptive if it is adaptive in any source.
    """

    table: pa.Table
    by: tuple[str, ...]
    notices: tuple[str, ...]
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    sizes: Sizes = "fixed"

    @property
    def trials(self) -> TrialTable:
        """The trials, grouped by `by`."""
        return TrialTable(self.table, self.metrics, self.by)


_NOTHING = Wanted()


def gather(sources: Sequence[Source], by: Sequence[str] | None = None, wanted: Wanted = _NOTHING) -> Outcomes:
    """Combine sources, check every row, and choose the columns that distinguish groups.

    A column distinguishes groups if it varies and doesn't describe a result. Unless it is a known hyperparameter, it
    must also have at most half as many distinct values as there are rows, and no name of an id, a place, a time or a
    spread. A column that those before it determine is left out. ``model`` is included even if it doesn't vary. Rows
    with equal seeds and equal values in all such columns and those of `by` are one trial.

    Args:
        sources: at least one source.
        by: the columns to group by instead; empty for a single group.
        wanted: user-supplied roles of the columns.

    Returns:
        The outcomes in the order of the sources, each trial once.

    Raises:
        InputError: if columns are missing, values are wrong, a trial occurs twice with different outcomes, rows differ
            only in columns that don't distinguish groups, an installed package of tasks can't be imported, or two offer
            the same task. One message lists all mistakes of one kind.

    Example:
        >>> table = pa.table({"model": ["NMU", "NMU"], "seed": [0, 1], "solved": [True, False]})
        >>> gather([Source("a.csv", table, np.array([1, 2]))], ["model"]).table["outcome"].to_pylist()
        ['solved', 'unsolved']
    """
    declared: dict[str, Metric] = dict(wanted.known)
    for declarations in (*(source.metrics for source in sources), wanted.metrics):
        declared |= declarations
    parts, read = _check_all(sources, wanted)
    metrics = {name: metric for name, metric in declared.items() if any(name in part.column_names for part in parts)}
    table = _join(sources, parts, metrics)
    groups = [name for name in table.column_names if name not in (*OUTCOME_SCHEMA.names, *metrics)]
    explicit = _explicit_columns(by, groups)
    is_own = any(SOURCE in source.table.column_names for source in sources)
    described = {*measured(), *declared, *wanted.columns}.union(*(metrics_of(source.table) for source in sources))
    hyperparameters = {*cell_columns()}.union(*(hyperparameters_of(source.table) for source in sources))
    candidates = [name for name in groups if name not in described and (name != SOURCE or is_own)]
    counts = {name: int(pc.count_distinct(table[name]).as_py()) for name in (*candidates, *explicit)}
    named = [n for n in candidates if n not in hyperparameters and (is_label(n) or is_secondary(n)) and counts[n] > 1]
    ids = [n for n in candidates if n not in (*hyperparameters, *named) and _is_id(counts[n], len(table))]
    candidates = [name for name in candidates if name not in (*ids, *named)]
    # The key has only columns that vary; a missing value counts as a value.
    key = list(dict.fromkeys([*candidates, *explicit]))
    key = [name for name in key if counts[name] + (table[name].null_count > 0) > 1]
    results = ("outcome", "solved_at_iteration", *metrics)
    trials, notices = _unique_trials(sources, table, key, [n for n in (*ids, *named) if n not in explicit], results)
    fewest = fewest_columns(trials, key)
    chosen = explicit if by is not None else _with_model(fewest, candidates)
    pooled = [name for name in fewest_columns(trials, [*chosen, *key]) if name not in chosen]
    sentences = (*read, *notices, *_grouping_notices(chosen, pooled, ids, named))
    sizes = sizes_of_all(source.sizes for source in sources)
    return Outcomes(trials, tuple(chosen), sentences, metrics, sizes)


def _check_all(sources: Sequence[Source], wanted: Wanted) -> tuple[list[pa.Table], list[str]]:
    """Return the checked columns and the notices of all sources; raise InputError with all mistakes."""
    messages: list[str] = []
    sentences: list[str] = []
    parts = []
    for source in sources:
        mistakes: list[str] = []
        notices = [*source.notices]
        part = checked(source, mistakes, wanted, notices)
        sentences += [f"{PurePath(source.name).name}: {notice}" for notice in notices]
        if part is None:
            messages.append("\n".join([f"{source.name} can't be used, nothing was written", *mistakes]))
        else:
            parts.append(part)
    if messages:
        raise InputError("\n".join(messages))
    return parts, sentences


def _join(sources: Sequence[Source], parts: Sequence[pa.Table], metrics: Collection[str]) -> pa.Table:
    """Concatenate the sources' checked columns and other columns, with one type for each column."""
    others = [_others(source, metrics) for source in sources]
    names = list(dict.fromkeys(name for other in others for name in other.column_names))
    tables = []
    for source, part, other in zip(sources, parts, others, strict=True):
        for name in metrics:
            if name not in part.column_names:
                part = part.append_column(name, pa.nulls(len(part), pa.float64()))
        part = part.select([*OUTCOME_SCHEMA.names, *metrics])
        for name in names:
            kind = _common([o[name].type for o in others if name in o.column_names])
            empty = pa.nulls(len(part), kind)
            # beside another file's floats, integers beyond 2**53 are rounded
            own = pc.cast(other[name], kind, safe=False) if name in other.column_names else empty
            part = part.append_column(name, own)
        tables.append(part if SOURCE in names else part.append_column(SOURCE, _source_column(source, sources)))
    return pa.concat_tables(tables)


def _source_column(source: Source, sources: Sequence[Source]) -> pa.Array:
    """Return each row's source: the file's name without suffix, or the full name if the short one isn't unique."""
    stem = PurePath(source.name).stem
    is_alone = sum(PurePath(other.name).stem == stem for other in sources) == 1
    return pa.repeat(stem if is_alone else source.name, source.table.num_rows)


def _with_model(chosen: list[str], candidates: Sequence[str]) -> list[str]:
    """Add the model even if it doesn't vary, as in every table of results."""
    return chosen if "model" in chosen or "model" not in candidates else ["model", *chosen]


def _others(source: Source, metrics: Collection[str]) -> pa.Table:
    """Return the columns other than outcomes, metrics and nested ones, with inferred types."""
    names = source.table.column_names
    used = {alias for aliases in ALIASES.values() for alias in aliases} | {*metrics}
    if "trained_iterations" in names:
        used.remove("iterations")  # then it is the protocol's number of iterations
    columns = {name: source.table[name] for name in names if name not in used}
    return pa.table({name: infer_type(c) for name, c in columns.items() if not pa.types.is_nested(c.type)})


def infer_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column of text to integers or floats if every value that isn't missing is such a number.

    Missing values become null then; otherwise the text is unchanged, and decoded if it was a dictionary. A number has
    no spaces around it; hexadecimal integers such as 0x1F count. A column of text without values becomes integers, all
    null. In a column of floats, NaN becomes null; other types are unchanged.
    """
    if pa.types.is_large_string(column.type):
        column = pc.cast(column, pa.string())
    if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        is_number = pa.types.is_floating(column.type)
        return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column) if is_number else column
    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    values = encoded.dictionary
    is_missing = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(values, pa.string()))), pa.array(MISSING))
    present = pc.if_else(is_missing, pa.scalar(None, values.type), values)
    for kind in (pa.int64(), pa.float64()):
        try:
            values = pc.cast(present, kind)
            break
        except pa.ArrowInvalid:
            continue
    return pa.chunked_array([values.take(encoded.indices)])


def _common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type for a column of several sources: the same one, else floats for numbers, else text."""
    kinds = [kind for kind in dict.fromkeys(kinds) if not pa.types.is_null(kind)] or [pa.string()]
    if len(set(kinds)) == 1:
        return kinds[0]
    are_numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
    return pa.float64() if are_numbers else pa.string()


def _explicit_columns(by: Sequence[str] | None, valid: Sequence[str]) -> list[str]:
    """Return the user's columns, each once; raise InputError if one doesn't exist."""
    for name in by or ():
        if name not in valid:
            near = difflib.get_close_matches(name, valid, n=3, cutoff=0.5) or valid
            raise InputError(f"--by {name}: no such column to group by; choose from {', '.join(near)}")
    return list(dict.fromkeys(by or ()))


def _is_id(different: int, rows: int) -> bool:
    """Return True if a column has too many distinct values for a hyperparameter: more than half of the rows."""
    return different * 2 > rows > 1


def fewest_columns(table: pa.Table, names: Sequence[str]) -> list[str]:
    """Return the columns that distinguish groups, in order, without those that the columns before them determine.

    Args:
        table: at least one row.
        names: the columns to choose from.

    Raises:
        KeyError: if the table lacks a column.
    """
    columns: list[str] = []
    count = 1
    for name in names:
        with_name = int(group_codes(table, [*columns, name]).max()) + 1
        if with_name > count:
            columns.append(name)
            count = with_name
    return columns


def _unique_trials(
    sources: Sequence[Source], table: pa.Table, key: Sequence[str], ids: Sequence[str], results: Sequence[str]
) -> tuple[pa.Table, list[str]]:
    """Return one row for each trial of `key` and seed, and a notice about repeated rows.

    Raises InputError if rows of a trial differ in the columns `results` or `ids`.
    """
    if all_differ(table, [*key, "seed"]):
        return table, []
    codes = group_codes(table, [*key, "seed"])
    first = np.unique(codes, return_index=True)[1]
    original = first[codes]
    differs = np.zeros(len(codes), bool)
    for name in results:
        values = group_codes(table, [name])
        differs |= values != values[original]
    if differs.any():
        raise InputError(_conflicts(sources, table, (np.flatnonzero(differs), original), (key, ids, results)))
    count = len(codes) - len(first)
    varying = [name for name in ids if np.any((values := group_codes(table, [name])) != values[original])]
    if varying:
        raise InputError(
            f"{count:,} row{'s differ' if count > 1 else ' differs'} from others only in {', '.join(varying)}, which "
            f"look{'s' if len(varying) == 1 else ''} like an id or a measurement: if it is a hyperparameter, "
            "name it in --by; if the rows are repeats of one trial, keep one row of each"
        )
    trials = table.take(pa.array(first))
    return trials, [f"{count:,} row{'s' if count > 1 else ''} that repeat others exactly were counted once"]


def _conflicts(
    sources: Sequence[Source],
    table: pa.Table,
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    names: tuple[Sequence[str], Sequence[str], Sequence[str]],
) -> str:
    """Return the error message with both rows of each trial that has two outcomes."""
    (places, original), (key, ids, results) = rows, names
    offsets = np.cumsum([0, *(len(source.rows) for source in sources)])

    def place(row: int) -> str:
        """Return the source and the row number of a row."""
        index = int(np.searchsorted(offsets, row, side="right")) - 1
        return f"{sources[index].name}, row {sources[index].rows[row - offsets[index]]}"

    columns = fewest_columns(table, key)
    lines = []
    for row in places[:_MOST_LISTED]:
        trial = table.slice(int(row), 1).to_pylist()[0]
        other = table.slice(int(original[row]), 1).to_pylist()[0]
        group = ", ".join(f"{name} {trial[name]}" for name in [*columns, "seed"])
        lines.append(
            f"  {place(int(original[row]))} and {place(int(row))}: {group}: {_brief(other, results)} / "
            f"{_brief(trial, results)}"
        )
    more = [f"  ... and {len(places) - _MOST_LISTED:,} more"] if len(places) > _MOST_LISTED else []
    hint = f"if one of {', '.join([*ids, SOURCE])} distinguishes them, name it in --by; else keep the right row"
    count = f"{len(places):,} trial{'s' if len(places) > 1 else ''}"
    return "\n".join([f"{count} twice with different outcomes, nothing was written", *lines, *more, f"  {hint}"])


def _brief(trial: dict[str, object], results: Sequence[str]) -> str:
    """Return a trial's results as text."""
    at = f" at {trial['solved_at_iteration']:g}" if trial["solved_at_iteration"] is not None else ""
    metrics = [name for name in results[2:] if trial[name] is not None]
    return f"{trial['outcome']}{at}" + "".join(f", {name.replace('_', ' ')} {trial[name]:g}" for name in metrics)


def _grouping_notices(
    chosen: Sequence[str], pooled: Sequence[str], ids: Sequence[str], named: Sequence[str]
) -> list[str]:
    """Return sentences on columns that are counted together, and on those left out of grouping."""
    notices = []
    if pooled:
        notices.append(
            f"rows of different {', '.join(pooled)} are counted together; where they share seeds, intervals of rates "
            "allow for it, and other intervals are left out"
        )
    reasons = {
        "more different values than half of the rows": ids,
        "the name of an id, a place, a time or a spread": named,
    }
    for reason, names in reasons.items():
        left = [name for name in names if name not in chosen]
        if left:
            notices.append(
                f"{', '.join(left)} {'isn' if len(left) == 1 else 'aren'}'t used for grouping, because of {reason}; "
                f"name {'it' if len(left) == 1 else 'them'} in --by if needed"
            )
    return notices

"""Claims about a study's cells, resolved from the names and values in its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from study import words
from study.errors import nearest
from study.interface.declarations import Metric
from study.records import Cell, short_digest, value
from study.spec.cells import labelled_cells
from study.spec.claim_names import ClaimNames
from study.spec.claim_table import EVERY, ClaimTable
from study.spec.counterparts import are_alike, swept
from study.spec.document import Path
from study.spec.tables import POINTS, Spec

SUCCESS_RATE, SOLVED_AT, TIME_TO_SUCCESS = "success_rate", "solved_at", "time_to_success"
TIMES = (SOLVED_AT, TIME_TO_SUCCESS)
_SUCCESS_QUANTITIES = (SUCCESS_RATE, *TIMES)
_TITLES = {SUCCESS_RATE: "success rate", SOLVED_AT: "mean solved at", TIME_TO_SUCCESS: "mean time to success"}
_MOST_NAMES = 8
Labels = Mapping[str, Mapping[str, str]]


class ClaimError(Exception):
    """A claim that doesn't fit the study's cells.

    Args:
        key: the claim's key with the mistake.
        message: a message for the user.
    """

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class Claim:
    """A claim about cells, or about pairs of cells.

    Args:
        text: the claim in words.
        quantity: success_rate, solved_at, time_to_success or a metric.
        is_below: whether the quantity is claimed to be below the bound, rather than above.
        bound: the number to compare with; for pairs, the difference to exceed.
        cells: the cells.
        others: the comparison cell of each of `cells`; empty if these are compared with a number.
        metric: the metric's declaration; None for quantities of success.
    """

    text: str
    quantity: str
    is_below: bool
    bound: float
    cells: tuple[Cell, ...]
    others: tuple[Cell, ...] = ()
    metric: Metric | None = None

    @cached_property
    def id(self) -> str:
        """A hash of the quantity, relation, bound and cells."""
        cells = [[cell.id for cell in cells] for cells in self.compared]
        return short_digest({"quantity": self.quantity, "below": self.is_below, "bound": self.bound, "cells": cells})

    @property
    def is_of_share(self) -> bool:
        """True if the claim is about the share of seeds beyond the bound, and so about the median."""
        return self.limits is None

    @property
    def limits(self) -> tuple[float, float] | None:
        """The limits of the quantity; None for a metric judged by its median.

        Those of a time are 0 and the smallest number of iterations of the cells. A metric judged by its median lacks a
        limit, has equal limits, or has a resolution, since its values differ by factors.
        """
        if self.quantity == SUCCESS_RATE:
            return 0.0, 1.0
        if self.quantity in TIMES:
            return 0.0, float(min(cell.iterations for cell in (*self.cells, *self.others)))
        metric = self.metric
        if metric is None or metric.low is None or metric.high is None or not metric.low < metric.high:
            return None
        return None if metric.resolution is not None else (metric.low, metric.high)

    @property
    def compared(self) -> list[tuple[Cell, ...]]:
        """The judged cells, each with its comparison cell if there is one."""
        return [(cell, *self.others[place : place + 1]) for place, cell in enumerate(self.cells)]


def claims_of(spec: Spec, cells: Sequence[Cell] | None = None, labels: Labels | None = None) -> list[Claim]:
    """Return a study's claims, in the file's order; empty without any.

    Args:
        spec: the study; `claim_mistakes` must yield nothing for it.
        cells: its cells, if they are known already; used only with `labels`.
        labels: their labels, by cell id and axis.

    Raises:
        ClaimError: if a claim has a mistake.
        ValueError: if the cells aren't known, and the family rejects the values of a point, or one without a default is
            missing.
        InputError: if the vocabulary of an installed package can't be imported.
    """
    if not spec.claims:
        return []
    if cells is None or labels is None:
        labels_by_cell = labelled_cells(spec)
        cells, labels = tuple(labels_by_cell), {cell.id: axes for cell, axes in labels_by_cell.items()}
    study = _Cells(spec, cells, labels)
    return [study.claim(table) for table in spec.claims]


def claim_mistakes(spec: Spec) -> Iterator[tuple[Path, str]]:
    """Yield the first mistake of each claim, with its place; with a search, only that claims can't be combined with it.

    Raises:
        ValueError: if the family rejects the values of a point, or one without a default is missing.
        InputError: if the vocabulary of an installed package can't be imported.
    """
    if not spec.claims:
        return
    if spec.search is not None:
        yield ("claims",), "can't be combined with a search: add claims to the study file of its winner"
        return
    labels_by_cell = labelled_cells(spec)
    study = _Cells(spec, tuple(labels_by_cell), {cell.id: axes for cell, axes in labels_by_cell.items()})
    for place, table in enumerate(spec.claims):
        try:
            study.claim(table)
        except ClaimError as mistake:
            yield ("claims", place, mistake.key), str(mistake)


@dataclass(frozen=True)
class _Cells:
    """A study's cells, with the look-up of the cells that a claim names."""

    spec: Spec
    cells: Sequence[Cell]
    labels: Labels

    def claim(self, table: ClaimTable) -> Claim:
        table = table.model_copy(update={"quantity": self._quantities.get(table.quantity, table.quantity)})
        metric = self._metric(table)
        cells, fields = self._resolved(table.subject, table.subject)
        cells = self._matching(table, cells)
        bound, others = table.bound, tuple[Cell, ...]()
        if not isinstance(bound, int | float):
            others = tuple(self._counterpart(table, cell, fields) for cell in cells)
            bound = table.by or 0.0
        claim = Claim("", table.quantity, table.relation == "below", bound, cells, others, metric)
        _check_bound(claim, table.relation if not others else "by")
        return replace(claim, text=_text(table, claim))

    # --- quantities

    @cached_property
    def _metrics(self) -> Mapping[str, Metric]:
        return self.spec.family.metrics_of(self.cells)

    @cached_property
    def _quantities(self) -> dict[str, str]:
        """The quantities, by their titles in reports; ambiguous titles are left out."""
        titles = {name: title.removeprefix("mean ") for name, title in _TITLES.items()}
        titles |= {name: words.metric_title(name, metric) for name, metric in self._metrics.items()}
        named = [(name, title) for name, title in titles.items()]
        named += [(name, metric.title) for name, metric in self._metrics.items() if metric.title]
        names_by_title: dict[str, set[str]] = {}
        for name, title in named:
            for text in (title, f"mean {title}"):
                names_by_title.setdefault(text, set()).add(name)
        return {
            title: names.pop() for title, names in names_by_title.items() if len(names) == 1 and title not in titles
        }

    def _metric(self, table: ClaimTable) -> Metric | None:
        name, metrics = table.quantity, self._metrics
        if name in _SUCCESS_QUANTITIES:
            if not self.spec.has_success:
                raise ClaimError(table.subject, f"{name} needs a success criterion: add success")
            if name in TIMES and not all(cell.iterations for cell in self.cells):
                raise ClaimError(table.subject, f"{name} needs the number of iterations of a trial: set iterations")
            if name == SOLVED_AT and not isinstance(table.bound, int | float):
                raise ClaimError(
                    table.subject,
                    "solved_at covers only solved trials, whose seeds differ between methods: compare "
                    "time_to_success, which counts all iterations of an unsolved trial",
                )
            return None
        choices = [*(_SUCCESS_QUANTITIES if self.spec.has_success else ()), *metrics]
        if name not in metrics:
            near = nearest(name, [*choices, *(title for title, key in self._quantities.items() if key in choices)])
            raise ClaimError(table.subject, f"must be one of {', '.join(choices)}, but got {name!r}{near}")
        if metrics[name].of == "solved" and not isinstance(table.bound, int | float):
            raise ClaimError(
                table.subject,
                f"{name} covers only solved trials, whose seeds differ between methods: compare it with a number",
            )
        return metrics[name]

    # --- names of cells

    @cached_property
    def _names(self) -> ClaimNames:
        return ClaimNames(self.cells, self.labels, self._fields, self.spec.family.titles)

    def _resolved(self, name: str, key: str) -> tuple[tuple[Cell, ...], frozenset[str]]:
        """Return the cells of a name, and the fields whose values it states; raise ClaimError if it has no cell."""
        meanings = [(cell, self._names.meaning(cell, name)) for cell in self.cells]
        cells = tuple(cell for cell, fields in meanings if fields is not None)
        if not cells:
            if ambiguous := self._names.ambiguous.get(name):
                ways = " or ".join(repr(f"{field} {name}") for field in sorted(ambiguous))
                raise ClaimError(key, f"{name!r} is a value of {words.join_and(sorted(ambiguous))}: write {ways}")
            valid = self._names.usual
            examples = ", ".join(valid[:_MOST_NAMES]) + (", ..." if len(valid) > _MOST_NAMES else "")
            raise ClaimError(
                key,
                f"must be a model, a swept value, a label, or several of these, such as {examples}, but got "
                f"{name!r}{nearest(name, [*valid, *self._names.parts])}",
            )
        return cells, next(fields for _, fields in meanings if fields is not None)

    # --- values under at

    def _matching(self, table: ClaimTable, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        where = {self._names.fields.get(name, name): wanted for name, wanted in (table.at or {}).items()}
        for name, wanted in where.items():
            has = list(dict.fromkeys(value(cell, name, self.labels) for cell in cells))
            if set(has) == {None}:
                valid = list(dict.fromkeys(n for c in cells for n in (*c.names, *self.labels.get(c.id, {}))))
                raise ClaimError("at", f"{table.subject} has no {name}{nearest(name, valid)}")
            if wanted != EVERY:
                matching = [cell for cell in cells if _is_meant(name, value(cell, name, self.labels), wanted)]
                if not matching:
                    values = ", ".join(words.format_value(name, content) for content in has)
                    raise ClaimError("at", f"{name} must be one of {values}, but got {wanted}")
                cells = matching
        if table.at == {}:
            return tuple(cells)
        groups: dict[tuple[Any, ...], list[Cell]] = {}
        for cell in cells:
            groups.setdefault(tuple(value(cell, name, self.labels) for name in where), []).append(cell)
        for group in groups.values():
            if len(group) > 1:
                name = self._varying(group)
                values = ", ".join(dict.fromkeys(words.format_cell_value(cell, name, self.labels) for cell in group))
                raise ClaimError(
                    "at", f"{table.subject} means several cells, with {name} {values}: choose values, or every {name}"
                )
        return tuple(cells)

    def _varying(self, cells: Sequence[Cell]) -> str:
        axes = dict.fromkeys(axis for cell in cells for axis in self.labels.get(cell.id, {}))
        names = (*axes, *swept(cells))
        return next(name for name in names if len({value(cell, name, self.labels) for cell in cells}) > 1)

    # --- cells to compare with

    def _counterpart(self, table: ClaimTable, cell: Cell, own_fields: frozenset[str]) -> Cell:
        key, bound = table.relation, table.bound
        if isinstance(bound, str):
            cells, fields = self._resolved(bound, key)
            free = set(fields | own_fields) if fields else set()
        else:
            bound = {self._names.fields.get(name, name): wanted for name, wanted in bound.items()}
            cells = tuple(
                other
                for other in self.cells
                if all(_is_meant(name, value(other, name, self.labels), wanted) for name, wanted in bound.items())
                and ("model" in bound or other.model == cell.model)
            )
            free = set(bound).union(*map(self._fields, bound))
        names = [name for name in swept(self.cells) if name not in free]
        matched = [other for other in cells if other != cell and are_alike(cell, other, names)]
        if len(matched) != 1:
            zipped = set[str]().union(*map(self._fields, axes := self.labels.get(cell.id, {})))
            varying = [name for name in (*axes, *names) if name not in {"model", *zipped}]
            at = ", ".join(f"{name} {words.format_cell_value(cell, name, self.labels)}" for name in varying)
            how = "no counterpart" if not matched else "several counterparts"
            hint = "" if not matched else f", with different {self._varying(matched)}: give a table of values"
            whose = bound if isinstance(bound, str) else "those with " + ", ".join(f"{n} {v}" for n, v in bound.items())
            raise ClaimError(
                key, f"{table.subject}{f' with {at}' if at else ''} has {how} among the cells of {whose}{hint}"
            )
        return matched[0]

    def _fields(self, axis: str) -> set[str]:
        """Return the hyperparameters that a zip axis or the table `points` sets; empty for any other name."""
        tables = ({POINTS: self.spec.points}, self.spec.zip, *(model.zip for model in self.spec.model_tables))
        return {name for zips in tables for point in zips.get(axis, ()) for name in point.explicit}


def _is_meant(name: str, own: Any, wanted: Any) -> bool:
    """Return True if a cell's value is, or is among, a claim's values, as written in the file or a report."""
    content = tuple(map(tuple, wanted)) if isinstance(wanted, list) and _nests(wanted) else wanted
    content = tuple(content) if isinstance(content, list) else content
    if own == content:
        return own is not None or wanted is None
    text = words.format_value(name, own)
    return wanted == text or (isinstance(wanted, list) and (own in wanted or text in wanted))


def _nests(wanted: list[Any]) -> bool:
    return bool(wanted) and all(isinstance(item, list) for item in wanted)


def _check_bound(claim: Claim, key: str) -> None:
    """Raise ClaimError for a bound at or beyond the quantity's limits, or a difference that no pair can exceed.

    A quantity without limits may have any bound.
    """
    if claim.limits is None:
        return
    low, high = claim.limits
    if claim.others:
        if claim.bound >= high - low:
            raise ClaimError(key, f"must be < {high - low:g}, the greatest difference, but got {claim.bound:g}")
    elif not low < claim.bound < high:
        raise ClaimError(key, f"must be > {low:g} and < {high:g}, but got {claim.bound:g}")


def _text(table: ClaimTable, claim: Claim) -> str:
    bound, metric, share = table.bound, claim.metric, ""
    quantity = _TITLES.get(table.quantity) or f"mean {words.metric_title(table.quantity, metric or Metric())}"
    if metric is not None and claim.is_of_share:
        quantity = words.metric_title(table.quantity, metric)
        share = f" in more than half of the {'solved trials' if metric.of == 'solved' else 'seeds'}"
    if isinstance(bound, int | float):
        versus = f"{bound:,.12g}"
    else:
        whose = (
            bound if isinstance(bound, str) else ", ".join(f"{_spaced(n)} {_values(n, v)}" for n, v in bound.items())
        )
        versus = f"that of {whose}" + (f" by more than {table.by:,.12g}" if table.by else "")
    verb = "exceeds" if table.relation == "exceeds" else "is below"
    return f"{table.subject}: {quantity} {verb} {versus}{share}{_where_text(table)}"


def _where_text(table: ClaimTable) -> str:
    if table.at is None:
        return ""
    if not table.at:
        return ", in every cell"
    parts = [
        f"every {_spaced(name)}" if wanted == EVERY else f"{_spaced(name)} {_values(name, wanted)}"
        for name, wanted in table.at.items()
    ]
    return f", at {words.join_and(parts)}"


def _values(name: str, wanted: Any) -> str:
    return words.join_and(
        [words.format_value(name, content) for content in (wanted if isinstance(wanted, list) else [wanted])]
    )


def _spaced(name: str) -> str:
    return name.replace("_", " ")

"""Claims as the study's cells: which are meant, and what each is compared with."""

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
_OF_SUCCESS = (SUCCESS_RATE, *TIMES)
_TITLES = {SUCCESS_RATE: "success rate", SOLVED_AT: "mean solved at", TIME_TO_SUCCESS: "mean time to success"}
_MOST_NAMES = 8
Labels = Mapping[str, Mapping[str, str]]


class ClaimError(Exception):
    """A claim that the study's cells can't meet.

    Args:
        key: the key of the claim that is wrong.
        message: what was given, and what must hold.
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
        is_below: whether it says that the quantity is below the bound, and not above.
        bound: the number that it is compared with; of a pair, by how much the difference must be more.
        cells: the cells.
        others: those that each is compared with; empty if it is compared with a number.
        metric: the metric's declaration; None for what is of success.
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
        """What tells it from other claims: the same for the same statement about the same cells."""
        cells = [[cell.id for cell in cells] for cells in self.compared]
        return short_digest({"quantity": self.quantity, "below": self.is_below, "bound": self.bound, "cells": cells})

    @property
    def is_of_share(self) -> bool:
        """Whether it is about the share of seeds beyond the bound, and so about the median."""
        return self.limits is None

    @property
    def limits(self) -> tuple[float, float] | None:
        """The least and the greatest that the quantity can be; None for a metric whose mean says little.

        That is one without both limits, and one whose values differ by factors.
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
        """What is judged: each cell, with the one that it is compared with."""
        return [(cell, *self.others[place : place + 1]) for place, cell in enumerate(self.cells)]


def claims_of(spec: Spec, cells: Sequence[Cell] | None = None, labels: Labels | None = None) -> list[Claim]:
    """Return a study's claims.

    Args:
        spec: the study, whose claims `claim_mistakes` finds no fault with.
        cells: its cells, if they are known already.
        labels: their labels, by id and axis.
    """
    if not spec.claims:
        return []
    if cells is None or labels is None:
        of_cells = labelled_cells(spec)
        cells, labels = tuple(of_cells), {cell.id: axes for cell, axes in of_cells.items()}
    study = _Cells(spec, cells, labels)
    return [study.claim(table) for table in spec.claims]


def claim_mistakes(spec: Spec) -> Iterator[tuple[Path, str]]:
    """Yield the mistakes of a study's claims, each with its place."""
    if not spec.claims:
        return
    if spec.search is not None:
        yield ("claims",), "a search chooses its cells; claims are of planned ones: run its winner's file with claims"
        return
    of_cells = labelled_cells(spec)
    study = _Cells(spec, tuple(of_cells), {cell.id: axes for cell, axes in of_cells.items()})
    for place, table in enumerate(spec.claims):
        try:
            study.claim(table)
        except ClaimError as mistake:
            yield ("claims", place, mistake.key), str(mistake)


@dataclass(frozen=True)
class _Cells:
    """A study's cells, to find those that a claim means."""

    spec: Spec
    cells: Sequence[Cell]
    labels: Labels

    def claim(self, table: ClaimTable) -> Claim:
        table = table.model_copy(update={"quantity": self._quantities.get(table.quantity, table.quantity)})
        metric = self._metric(table)
        cells, fields = self._named(table.subject, table.subject)
        cells = self._at(table, cells)
        bound, others = table.bound, tuple[Cell, ...]()
        if not isinstance(bound, int | float):
            others = tuple(self._other(table, cell, fields) for cell in cells)
            bound = table.by or 0.0
        claim = Claim("", table.quantity, table.relation == "below", bound, cells, others, metric)
        _check_bound(claim, table.relation if not others else "by")
        return replace(claim, text=_text(table, claim))

    # --- what of

    @cached_property
    def _metrics(self) -> Mapping[str, Metric]:
        return self.spec.family.metrics_of(self.cells)

    @cached_property
    def _quantities(self) -> dict[str, str]:
        """The quantities by the names that reports have for them; what two have in common is left out."""
        titles = {name: title.removeprefix("mean ") for name, title in _TITLES.items()}
        titles |= {name: words.metric_title(name, metric) for name, metric in self._metrics.items()}
        named = [(name, title) for name, title in titles.items()]
        named += [(name, metric.title) for name, metric in self._metrics.items() if metric.title]
        of_title: dict[str, set[str]] = {}
        for name, title in named:
            for text in (title, f"mean {title}"):
                of_title.setdefault(text, set()).add(name)
        return {title: names.pop() for title, names in of_title.items() if len(names) == 1 and title not in titles}

    def _metric(self, table: ClaimTable) -> Metric | None:
        name, metrics = table.quantity, self._metrics
        if name in _OF_SUCCESS:
            if not self.spec.has_success:
                raise ClaimError(table.subject, f"{name} needs to know what success is: say it under success")
            if name in TIMES and not all(cell.iterations for cell in self.cells):
                raise ClaimError(table.subject, f"{name} needs to know how many iterations a trial has: say iterations")
            if name == SOLVED_AT and not isinstance(table.bound, int | float):
                raise ClaimError(
                    table.subject,
                    "solved_at is of solved trials alone, which aren't the same seeds for two methods: compare "
                    "time_to_success, in which an unsolved trial takes all its iterations",
                )
            return None
        choices = [*(_OF_SUCCESS if self.spec.has_success else ()), *metrics]
        if name not in metrics:
            near = nearest(name, [*choices, *(title for title, of in self._quantities.items() if of in choices)])
            raise ClaimError(table.subject, f"must be one of {', '.join(choices)}, but got {name!r}{near}")
        if metrics[name].of == "solved" and not isinstance(table.bound, int | float):
            raise ClaimError(
                table.subject,
                f"{name} is of solved trials alone, which aren't the same seeds for two methods: give a number",
            )
        return metrics[name]

    # --- whose

    @cached_property
    def _names(self) -> ClaimNames:
        return ClaimNames(self.cells, self.labels, self._fields, self.spec.family.titles)

    def _named(self, name: str, key: str) -> tuple[tuple[Cell, ...], frozenset[str]]:
        """Return the cells that a name means, and the fields whose values it says."""
        meanings = [(cell, self._names.meaning(cell, name)) for cell in self.cells]
        cells = tuple(cell for cell, fields in meanings if fields is not None)
        if not cells:
            if ambiguous := self._names.ambiguous.get(name):
                ways = " or ".join(repr(f"{field} {name}") for field in sorted(ambiguous))
                raise ClaimError(key, f"{name!r} is a value of {words.join_and(sorted(ambiguous))}: say {ways}")
            valid = self._names.usual
            some = ", ".join(valid[:_MOST_NAMES]) + (", ..." if len(valid) > _MOST_NAMES else "")
            raise ClaimError(
                key,
                f"must be a model, a value or label of what is swept, or several of these, such as {some}, but got "
                f"{name!r}{nearest(name, [*valid, *self._names.parts])}",
            )
        return cells, next(fields for _, fields in meanings if fields is not None)

    # --- where

    def _at(self, table: ClaimTable, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        where = {self._names.fields.get(name, name): wanted for name, wanted in (table.at or {}).items()}
        for name, wanted in where.items():
            has = list(dict.fromkeys(value(cell, name, self.labels) for cell in cells))
            if set(has) == {None}:
                valid = list(dict.fromkeys(n for c in cells for n in (*c.names, *self.labels.get(c.id, {}))))
                raise ClaimError("at", f"{table.subject} has no {name}{nearest(name, valid)}")
            if wanted != EVERY:
                matching = [cell for cell in cells if _is_meant(name, value(cell, name, self.labels), wanted)]
                if not matching:
                    values = ", ".join(words.format_value(name, one) for one in has)
                    raise ClaimError("at", f"{name} is one of {values}, but got {wanted}")
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
                    "at", f"{table.subject} has several cells there, with {name} {values}: say which, or every {name}"
                )
        return tuple(cells)

    def _varying(self, cells: Sequence[Cell]) -> str:
        axes = dict.fromkeys(axis for cell in cells for axis in self.labels.get(cell.id, {}))
        names = (*axes, *swept(cells))
        return next(name for name in names if len({value(cell, name, self.labels) for cell in cells}) > 1)

    # --- compared with whom

    def _other(self, table: ClaimTable, cell: Cell, own_fields: frozenset[str]) -> Cell:
        key, bound = table.relation, table.bound
        if isinstance(bound, str):
            cells, fields = self._named(bound, key)
            free = set(fields | own_fields) if fields else set()
        else:
            bound = {self._names.fields.get(name, name): of for name, of in bound.items()}
            cells = tuple(
                other
                for other in self.cells
                if all(_is_meant(name, value(other, name, self.labels), of) for name, of in bound.items())
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
        """Return the hyperparameters that an axis of points sets."""
        tables = ({POINTS: self.spec.points}, self.spec.zip, *(model.zip for model in self.spec.model_tables))
        return {name for zips in tables for point in zips.get(axis, ()) for name in point.explicit}


def _is_meant(name: str, of: Any, wanted: Any) -> bool:
    """Return whether a value is the one, or among those, that a claim gives, as the file or a report writes it."""
    content = tuple(map(tuple, wanted)) if isinstance(wanted, list) and _nests(wanted) else wanted
    content = tuple(content) if isinstance(content, list) else content
    if of == content:
        return of is not None or wanted is None
    shown = words.format_value(name, of)
    return wanted == shown or (isinstance(wanted, list) and (of in wanted or shown in wanted))


def _nests(wanted: list[Any]) -> bool:
    return bool(wanted) and all(isinstance(one, list) for one in wanted)


def _check_bound(claim: Claim, key: str) -> None:
    """Refuse a bound that the quantity can't be on both sides of."""
    if claim.limits is None:
        return
    low, high = claim.limits
    if claim.others:
        if claim.bound >= high - low:
            raise ClaimError(key, f"must be < {high - low:g}, the greatest difference, but got {claim.bound:g}")
    elif not low < claim.bound < high:
        raise ClaimError(key, f"must be > {low:g} and < {high:g}, but got {claim.bound:g}")


def _text(table: ClaimTable, claim: Claim) -> str:
    bound, metric, of = table.bound, claim.metric, ""
    what = _TITLES.get(table.quantity) or f"mean {words.metric_title(table.quantity, metric or Metric())}"
    if metric is not None and claim.is_of_share:
        what = words.metric_title(table.quantity, metric)
        of = f" in more than half of the {'solved trials' if metric.of == 'solved' else 'seeds'}"
    if isinstance(bound, int | float):
        versus = f"{bound:,.12g}"
    else:
        whose = (
            bound if isinstance(bound, str) else ", ".join(f"{_spaced(n)} {_values(n, v)}" for n, v in bound.items())
        )
        versus = f"that of {whose}" + (f" by more than {table.by:,.12g}" if table.by else "")
    verb = "exceeds" if table.relation == "exceeds" else "is below"
    return f"{table.subject}: {what} {verb} {versus}{of}{_where_text(table)}"


def _where_text(table: ClaimTable) -> str:
    if table.at is None:
        return ""
    if not table.at:
        return ", in every cell"
    parts = [
        f"every {_spaced(name)}" if of == EVERY else f"{_spaced(name)} {_values(name, of)}"
        for name, of in table.at.items()
    ]
    return f", at {words.join_and(parts)}"


def _values(name: str, of: Any) -> str:
    return words.join_and([words.format_value(name, one) for one in (of if isinstance(of, list) else [of])])


def _spaced(name: str) -> str:
    return name.replace("_", " ")

"""Success that references set: the keys of a study file that say so, and what must hold for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue

from study.errors import nearest
from study.interface.criterion import Bound
from study.interface.references import KINDS, ReferenceCriterion
from study.interface.signature import canonical
from study.interface.values import choice, number
from study.records import Cell
from study.spec.cells import canonical_cell
from study.spec.document import Path
from study.spec.grid import model_level, points
from study.spec.own_code import BoundTable
from study.spec.table import Table, optional, table_field

if TYPE_CHECKING:
    from study.spec.packed_tables import PackedSpec

WORDS: Mapping[str, bool] = {"below_references": False, "above_references": True}
"""What stands for the bound of a metric that references set, and whether a greater value is better then."""

_MOST_POINTS = 20_000
_MOST_NAMES = 3

_Level = Annotated[float, Field(gt=0, lt=1), BeforeValidator(number)]


class SuccessTable(BoundTable):
    """What a metric must reach for success: bounds, or a word that says that references set one.

    Args:
        word: one of `WORDS`, which the file gives in place of the table.
    """

    _not_keys: ClassVar[tuple[str, ...]] = ("word",)

    word: choice(tuple(WORDS)) | None = optional()  # type: ignore[valid-type]

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "word" in data:
            raise ValueError(
                f"the keys here are at_least and below; or give {' or '.join(WORDS)} in place of the table"
            )
        return {"word": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _check(self) -> SuccessTable:
        if self.word is None:
            Bound(at_least=self.at_least, below=self.below)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        table = handler.resolve_ref_schema(handler(core))
        bounds = {name: of for name, of in table["properties"].items() if name != "word"}
        return {"anyOf": [{"enum": list(WORDS)}, table | {"properties": bounds}]}


class ReferencesTable(Table):
    """The trials that set the bounds of metrics of success.

    Args:
        model: the model whose trials they are.
        bound: what the bounds are of: ``prediction`` for one more reference, or ``mean`` for the references' mean.
        level: of the bounds, one-sided.
        keep: what the metrics of a reference must meet for it to count.
    """

    model: str
    bound: choice(tuple(reversed(KINDS))) = "prediction"  # type: ignore[valid-type]
    level: _Level = 0.99
    keep: dict[str, BoundTable] = table_field(dict)


def reference_criterion(
    spec: PackedSpec, cells: Sequence[Cell], seeds: Callable[[Cell], Collection[int]]
) -> ReferenceCriterion:
    """Return what success is in a study whose references say it.

    Args:
        spec: the study; every question has one cell of references.
        cells: the planned cells.
        seeds: returns the seeds of a cell.
    """
    table, metrics = spec.references, spec.family.metrics
    assert table is not None
    references = {_question(spec, cell.values): cell.id for cell in cells if cell.model == table.model}
    return ReferenceCriterion(
        model=table.model,
        higher_is_better={name: metrics[name].higher_is_better for name in spec.by_references},
        kind=table.bound,
        level=table.level,
        keep={name: Bound(at_least=one.at_least, below=one.below) for name, one in table.keep.items()},
        bounds={
            name: Bound(at_least=one.at_least, below=one.below)
            for name, one in spec.success.items()
            if name not in spec.by_references
        },
        reference_of={
            cell.id: references[question] for cell in cells if (question := _question(spec, cell.values)) in references
        },
        seeds={cell.id: seeds(cell) for cell in cells if cell.model == table.model},
    )


def _question(spec: PackedSpec, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a cell asks: trials are judged by references that ask the same."""
    return tuple(repr(values[name]) for name in spec.declared.question_fields)


def reference_mistakes(spec: PackedSpec) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with references, and where they are needed and aren't given, each with its place."""
    table, metrics = spec.references, spec.family.metrics
    for name, one in spec.success.items():
        is_higher = name in metrics and metrics[name].higher_is_better
        if one.word is None or name not in metrics:
            continue
        if WORDS[one.word] != is_higher:
            right = next(word for word, of_higher in WORDS.items() if of_higher == is_higher)
            better = "higher" if is_higher else "lower"
            yield ("success", name), f"{better} values of {name} are better, so it must be {right}, but got {one.word}"
        if table is None:
            yield (
                ("success", name),
                f"{one.word} needs references: say whose trials they are, references: {{model: NAME}}",
            )
    if table is None:
        return
    if not spec.by_references:
        yield (
            ("references",),
            f"set no bound: give a metric of success the word {' or '.join(WORDS)} in place of a table",
        )
    for name in table.keep:
        if name not in metrics:
            yield (
                ("references", "keep", name),
                f"must be one of the metrics, {', '.join(metrics)}, but got {name!r}{nearest(name, metrics)}",
            )
    yield from _unfit(spec)
    names = [model.name for model in spec.model_tables]
    if table.model not in names:
        yield (
            ("references", "model"),
            f"must be one of the study's models, {', '.join(names)}, but got {table.model!r}"
            f"{nearest(table.model, names)}",
        )
    elif spec.search is None:
        yield from _question_mistakes(spec)


def _unfit(spec: PackedSpec) -> Iterator[tuple[Path, str]]:
    """Yield what can't be had together with references: each new reference moves the bounds of all trials."""
    if spec.search is not None:
        yield (
            ("search",),
            "a search compares candidates while it goes on, and references judge trials only when all are done: leave "
            "out references, and seek a metric",
        )
    if spec.until is not None:
        yield (
            ("seeds", "until"),
            "seeds must be a count or a list where references say what success is: more seeds would move their bounds",
        )


def _question_mistakes(spec: PackedSpec) -> Iterator[tuple[Path, str]]:
    """Yield the questions that have no cell of references, or several; none while a value isn't valid."""
    assert spec.references is not None
    model, must = spec.references.model, "every value of the task's fields must have exactly one cell of"
    try:
        references: dict[tuple[str, ...], dict[Cell, None]] = {}
        others: dict[tuple[str, ...], None] = {}
        for index, table in enumerate(spec.model_tables):
            level = model_level(spec, index)
            for point in islice(
                points(level, None if table.name == model else spec.declared.question_fields), _MOST_POINTS
            ):
                values = {name: setting.value for name, setting in point.settings.items()}
                if table.name == model:
                    cell = canonical_cell(spec.task_name, model, values, spec.family)
                    references.setdefault(_question(spec, cell.values), {})[cell] = None
                else:
                    others[_question_of_point(spec, values)] = None
    except ValueError:
        return  # which is reported where the value is
    without = [question for question in others if question not in references]
    if without:
        yield ("references", "model"), f"{must} {model}, but {_named(spec, without)} has none"
    several = [question for question, cells in references.items() if len(cells) > 1]
    if several:
        cells = list(references[several[0]])
        differing = [name for name in cells[0].names if cells[0].value(name) != cells[1].value(name)]
        yield (
            ("references", "model"),
            f"{must} {model}, but {_named(spec, several)} has {len(cells)}, which differ in {', '.join(differing)}: "
            f"fix that for this model alone, models: [{{name: {model}, fixed: {{{differing[0]}: ...}}}}, ...]",
        )


def _question_of_point(spec: PackedSpec, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the question of a point, of which only the task's fields are known."""
    fields = spec.declared.task_fields
    filled = {}
    for name in spec.declared.question_fields:
        value = values.get(name, fields[name].default)
        filled[name] = None if value is None and fields[name].default is None else canonical(fields[name], value)
    return _question(spec, filled)


def _named(spec: PackedSpec, questions: list[tuple[str, ...]]) -> str:
    """Name the first of some questions."""
    parts = [f"{name} {value}" for name, value in zip(spec.declared.question_fields, questions[0], strict=True)][
        :_MOST_NAMES
    ]
    more = f" (and {len(questions) - 1} more)" if len(questions) > 1 else ""
    return (", ".join(parts) or "the task") + more

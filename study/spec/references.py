"""Success criteria set by references: their schema in a study file, and checks."""

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
"""The words for a bound set by references, each with the direction: True if higher values are better."""

_MOST_POINTS = 20_000
_MOST_NAMES = 3

_Level = Annotated[float, Field(gt=0, lt=1), BeforeValidator(number)]


class SuccessTable(BoundTable):
    """Bounds of a metric for success, or a word for a bound set by references.

    Args:
        word: one of `WORDS`, given in place of the table.
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
        bounds = {name: schema for name, schema in table["properties"].items() if name != "word"}
        return {"anyOf": [{"enum": list(WORDS)}, table | {"properties": bounds}]}


class ReferencesTable(Table):
    """Reference trials for bounds of success.

    Args:
        model: the model of the reference trials.
        bound: ``prediction`` for bounds of one more reference, or ``mean`` for bounds of the references' mean.
        level: the one-sided confidence level of the bounds.
        keep: bounds by metric; references that violate them don't count.
    """

    model: str
    bound: choice(tuple(reversed(KINDS))) = "prediction"  # type: ignore[valid-type]
    level: _Level = 0.99
    keep: dict[str, BoundTable] = table_field(dict)


def reference_criterion(
    spec: PackedSpec, cells: Sequence[Cell], seeds: Callable[[Cell], Collection[int]]
) -> ReferenceCriterion:
    """Return the success criterion that a study's references set.

    Args:
        spec: the study; it must have references, and `reference_mistakes` must yield nothing for it.
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
        keep={name: Bound(at_least=kept.at_least, below=kept.below) for name, kept in table.keep.items()},
        bounds={
            name: Bound(at_least=given.at_least, below=given.below)
            for name, given in spec.success.items()
            if name not in spec.by_references
        },
        reference_of={
            cell.id: references[question] for cell in cells if (question := _question(spec, cell.values)) in references
        },
        seeds={cell.id: seeds(cell) for cell in cells if cell.model == table.model},
    )


def _question(spec: PackedSpec, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the question of a cell with these values: the reprs of its question fields, in their order.

    A trial is judged by the references with the same question.
    """
    return tuple(repr(values[name]) for name in spec.declared.question_fields)


def reference_mistakes(spec: PackedSpec) -> Iterator[tuple[Path, str]]:
    """Yield each mistake in references, and in the words of `success` for their bounds, with its place.

    Such words need references, and must fit the direction of their metric. A search and `until` can't be combined with
    references. Questions without, or with several, reference cells are sought among 20,000 points of each model.
    """
    table, metrics = spec.references, spec.family.metrics
    for name, given in spec.success.items():
        is_higher = name in metrics and metrics[name].higher_is_better
        if given.word is None or name not in metrics:
            continue
        if WORDS[given.word] != is_higher:
            right = next(word for word, for_higher in WORDS.items() if for_higher == is_higher)
            better = "higher" if is_higher else "lower"
            yield (
                ("success", name),
                f"{better} values of {name} are better, so it must be {right}, but got {given.word}",
            )
        if table is None:
            yield (
                ("success", name),
                f"{given.word} needs the model of the references: add references: {{model: NAME}}",
            )
    if table is None:
        return
    if not spec.by_references:
        yield (("references",), f"set no bound: under success, give a metric {' or '.join(WORDS)} in place of a table")
    for name in table.keep:
        if name not in metrics:
            yield (
                ("references", "keep", name),
                f"must be one of the metrics, {', '.join(metrics)}, but got {name!r}{nearest(name, metrics)}",
            )
    yield from _incompatible(spec)
    names = [model.name for model in spec.model_tables]
    if table.model not in names:
        yield (
            ("references", "model"),
            f"must be one of the study's models, {', '.join(names)}, but got {table.model!r}"
            f"{nearest(table.model, names)}",
        )
    elif spec.search is None:
        yield from _question_mistakes(spec)


def _incompatible(spec: PackedSpec) -> Iterator[tuple[Path, str]]:
    """Yield each setting that can't be combined with references: new references move the bounds of all trials."""
    if spec.search is not None:
        yield (
            ("search",),
            "a search compares candidates while it runs, but references judge trials after all have ended: remove "
            "references, and optimise a metric",
        )
    if spec.until is not None:
        yield (
            ("seeds", "until"),
            "can't be combined with references, whose bounds move with the number of seeds: give a count or a list",
        )


def _question_mistakes(spec: PackedSpec) -> Iterator[tuple[Path, str]]:
    """Yield a mistake for questions without, or with several, cells of references; none if a value is invalid.

    Of each model, 20,000 points are read at most.
    """
    assert spec.references is not None
    model, must = spec.references.model, "each combination of the task's fields must have exactly one cell of"
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
        return  # reported at the value's place
    without = [question for question in others if question not in references]
    if without:
        yield ("references", "model"), f"{must} {model}, but {_question_name(spec, without)} has none"
    several = [question for question, cells in references.items() if len(cells) > 1]
    if several:
        cells = list(references[several[0]])
        differing = [name for name in cells[0].names if cells[0].value(name) != cells[1].value(name)]
        yield (
            ("references", "model"),
            f"{must} {model}, but {_question_name(spec, several)} has {len(cells)}, which differ in "
            f"{', '.join(differing)}: fix that for this model only, "
            f"models: [{{name: {model}, fixed: {{{differing[0]}: ...}}}}, ...]",
        )


def _question_of_point(spec: PackedSpec, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the question of a point with these values, with defaults filled in; ValueError if one is invalid."""
    fields = spec.declared.task_fields
    filled = {}
    for name in spec.declared.question_fields:
        value = values.get(name, fields[name].default)
        filled[name] = None if value is None and fields[name].default is None else canonical(fields[name], value)
    return _question(spec, filled)


def _question_name(spec: PackedSpec, questions: list[tuple[str, ...]]) -> str:
    """Return a name of the first question from up to three of its fields, with the number of the others."""
    parts = [f"{name} {value}" for name, value in zip(spec.declared.question_fields, questions[0], strict=True)][
        :_MOST_NAMES
    ]
    more = f" (and {len(questions) - 1} more)" if len(questions) > 1 else ""
    return (", ".join(parts) or "the task") + more

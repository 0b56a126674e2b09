"""Schema of a study file, as pydantic models and as JSON schema."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue

from study.errors import nearest
from study.interface.criterion import Bound
from study.interface.declarations import Hyperparameter
from study.interface.family import Family
from study.interface.packed_family import PackedFamily
from study.interface.pruning import Pruning
from study.interface.references import ReferenceCriterion
from study.interface.values import Count, Positive, choice, number, quoted, whole
from study.plugins import offers
from study.records import Cell, Keep
from study.source import SourceCode, SourceData
from study.spec.claim_table import ClaimTable
from study.spec.compare_table import CompareTable, as_list
from study.spec.seeds import SeedsTable, Until, seeds_table
from study.spec.table import Table, as_text, drop_default, optional, table_field, table_of, values
from study.spec.tags import Tags
from study.trials.seed_design import SeedDesign

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
_MLFLOW, _INDEX = "mlflow", "index.html"  # the store keeps MLflow's database and its index next to the studies


class RangeTable(Table):
    """The range of a hyperparameter in a search: low and high, or choices."""

    low: Any = optional()
    high: Any = optional()
    scale: choice(("linear", "log")) = optional()  # type: ignore[valid-type]
    step: Any = optional()
    choices: Any = optional()
    when: Annotated[Any, WithJsonSchema({"type": "object"})] = optional()


def _range_of(name: str, hyperparameter: Hyperparameter) -> type[RangeTable]:
    """Make the table of a hyperparameter's range, within the limits of its values."""
    type_ = hyperparameter.type
    fields: dict[str, Any] = {"choices": (values(type_), optional())}
    if hyperparameter.kind != "other":
        step = Count if hyperparameter.kind == "whole" else Positive
        fields |= {"low": (type_, optional()), "high": (type_, optional()), "step": (step, optional())}
    else:
        fields |= {key: (_NoNumbers, optional()) for key in ("low", "high", "scale", "step")}
    return create_model(f"Range_{name}", __base__=RangeTable, **fields)


def _no_numbers(value: object) -> object:
    raise ValueError(f"only numbers have a range; give choices: [...] instead of {quoted(value)}")


_NoNumbers = Annotated[Any, BeforeValidator(_no_numbers), WithJsonSchema({"not": {}})]

Points = Mapping[str, tuple[Table, ...]]

POINTS = "points"
"""The name of the axis of explicit points, and of their table."""


class SettingsTable(Table):
    """Tables that set hyperparameters, for all models or for one.

    Args:
        fixed: hyperparameters with one value.
        grid: hyperparameters with several values.
        zip: axes whose points set several hyperparameters together.
        ranges: hyperparameters that a search chooses.
        when: conditions: the values of others with which hyperparameters apply.
    """

    fixed: Table = table_field(Table)
    grid: Table = table_field(Table)
    zip: Points = table_field(dict)
    ranges: Table = table_field(Table)
    when: Table = table_field(Table)


class AnySettings(SettingsTable):
    """Tables with any hyperparameters, for checks before these are known."""

    fixed: Any = table_field(dict)
    grid: Any = table_field(dict)
    zip: Any = table_field(dict)
    ranges: Any = table_field(dict)
    when: Any = table_field(dict)


class ModelTable(SettingsTable):
    """A model, alone or with its own settings in place of those for all models."""

    name: str

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        table = handler.resolve_ref_schema(handler(core))
        known, own = {"enum": table["properties"]["name"]["enum"]}, {"type": "string", "pattern": ":"}
        table["properties"]["name"] = {"anyOf": [known, own]}
        return {"anyOf": [known, own, table]}


def _check_name(name: str) -> str:
    if not re.fullmatch(_NAME, name):
        raise ValueError(
            "must name a folder of the store: letters, digits, '.', '_' and '-', at most 80, the first a "
            f"letter or a digit; but got {quoted(name)}"
        )
    lower = name.lower()  # some file systems don't distinguish case
    if lower.startswith(_MLFLOW):
        raise ValueError(f"must not start with {_MLFLOW!r}, which the store uses itself, but got {quoted(name)}")
    if lower == _INDEX:
        raise ValueError(f"must not be {_INDEX!r}, the store's own page, but got {quoted(name)}")
    return name


_Seed = Annotated[int, Field(ge=0, le=2**32 - 1), BeforeValidator(whole)]
_Keep = Annotated[float, Field(gt=0, lt=1), BeforeValidator(number)]

OBJECTIVES_OF_SUCCESS = ("success_rate", "solved_at", "time_to_success")
"""Search objectives that need a success criterion; the others are metrics."""
SAMPLERS = ("TPE", "NSGA-II", "CMA-ES", "random")


def _objectives(value: object, choices: Sequence[str] | None = None) -> tuple[str, ...]:
    names = value if isinstance(value, list | tuple) else [value]
    valid = "the names of metrics" if choices is None else ", ".join(choices)
    if not names:
        raise ValueError(f"must be one or several of {valid}, but the list is empty")
    for name in names:
        if not isinstance(name, str) or (choices is not None and name not in choices):
            message = f"must be one or several of {valid}, but got {quoted(name)}"
            raise ValueError(message + nearest(name, choices or ()))
    if len(set(names)) < len(names):
        raise ValueError("each objective must be given only once")
    return tuple(names)


def _objectives_schema(name: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [name, {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}]})


class Search(Table):
    """Choice and comparison of candidate cells.

    Args:
        objective: the quantity to optimise; several for a Pareto front.
        trials: the budget of trials, without those of the confirmation.
        sampler: the method that suggests candidates.
        seed: the sampler's seed.
        candidates: the number of candidates that are suggested and compared at once.
        first_seeds: the number of seeds that each candidate begins with.
        keep: the share of candidates that get more seeds.
        confirm_seeds: the number of fresh seeds for each candidate of the final front.
        confirm_candidates: the greatest number of confirmed candidates of the front.
    """

    objective: Annotated[Any, BeforeValidator(_objectives), _objectives_schema({"type": "string"})]
    trials: Count
    sampler: choice(SAMPLERS) = "TPE"  # type: ignore[valid-type]
    seed: _Seed = 0
    candidates: Count = 12
    first_seeds: Count = 5
    keep: _Keep = 1 / 3
    confirm_seeds: Count = 100
    confirm_candidates: Count = 5


def search_table(family: Family) -> type[Search]:
    """Make the class of the searches in a family, with its averaged metrics among the objectives.

    Example:
        >>> from study.plugins.families import family_named
        >>> search_table(family_named("simple"))(objective="sparsity_error", trials=60).objective
        ('sparsity_error',)
    """
    names = (*OBJECTIVES_OF_SUCCESS, *(name for name, metric in family.metrics.items() if metric.of != "none"))
    schema = _objectives_schema({"enum": list(names)})
    objective = Annotated[Any, BeforeValidator(partial(_objectives, choices=names)), schema]
    return create_model("Search", __base__=Search, objective=(objective, ...))


_StudyName = Annotated[
    str, BeforeValidator(as_text), AfterValidator(_check_name), Field(json_schema_extra={"pattern": _NAME})
]


class Spec(SettingsTable):
    """A study as written by the user; `docs/` and the presets describe its tables.

    Attributes:
        family: the family that declares the hyperparameters.
        tables: further tables that set hyperparameters, each with a prefix. The prefix and a key of the table make a
            hyperparameter's name.

    Args:
        standardise: the metric, known at a trial's start, by which success rates are standardised; empty for none.
        points: the points of an unnamed axis; in a search, its first candidates.
    """

    family: ClassVar[Family]
    tables: ClassVar[tuple[tuple[str, str], ...]] = ()

    study: _StudyName
    question: Annotated[str, BeforeValidator(as_text)] = ""
    tags: Tags = Field(default=(), json_schema_extra=drop_default)
    seeds: SeedsTable
    claims: Annotated[tuple[ClaimTable, ...], Field(min_length=1)] = Field(default=(), json_schema_extra=drop_default)
    compare: Annotated[tuple[CompareTable, ...], BeforeValidator(as_list)] = Field(
        default=(), json_schema_extra=drop_default
    )
    standardise: Annotated[str, BeforeValidator(as_text)] = Field(default="", json_schema_extra=drop_default)
    search: Search | None = optional()
    points: tuple[Table, ...] = Field(default=(), json_schema_extra=drop_default)
    _source_text: str = PrivateAttr("")
    _notices: tuple[str, ...] = PrivateAttr(())
    _source_file: Path | None = PrivateAttr(None)
    _source_folder: Path | None = PrivateAttr(None)
    _source_code: SourceCode | None = PrivateAttr(None)
    _source_data: tuple[SourceData, ...] = PrivateAttr(())

    @property
    @abstractmethod
    def task_name(self) -> str:
        """The task's name."""

    @property
    @abstractmethod
    def model_tables(self) -> tuple[ModelTable, ...]:
        """The models, each with its own settings."""

    @property
    def pruning(self) -> Pruning | None:
        """The rule that stops trials early; None without one."""
        return None

    @property
    def has_files(self) -> bool:
        """True if trials may write files, as those of functions and programs."""
        return False

    @property
    def keep_files(self) -> Keep:
        """The files of a trial to keep."""
        return Keep()

    @property
    @abstractmethod
    def has_success(self) -> bool:
        """True if the study has a success criterion."""

    @property
    def named_metrics(self) -> frozenset[str]:
        """Metrics that the file names: those of `standardise` and `until`, and all search objectives.

        Objectives may be quantities of success, such as ``success_rate``, instead of metrics.
        """
        names = {*(() if self.search is None else self.search.objective), *filter(None, [self.standardise])}
        return frozenset(names if self.until is None or self.until.metric is None else {*names, self.until.metric})

    @property
    def criterion(self) -> dict[str, Bound] | None:
        """The bounds that a solved trial's metrics satisfy; None if the trials' cells contain the criterion.

        Empty without a criterion, or if it is set by references (`reference_criterion`), so that no trial can be
        judged by itself.
        """
        return None

    def reference_criterion(
        self, cells: Sequence[Cell], seeds: Callable[[Cell], Collection[int]]
    ) -> ReferenceCriterion | None:
        """Return the success criterion set by references; None without references.

        Args:
            cells: the planned cells.
            seeds: returns the seeds of a cell.
        """
        return None

    @property
    @abstractmethod
    def head(self) -> dict[str, Any]:
        """The file's values about task and training, by key, without hyperparameters, models and seeds."""

    @property
    def source_code(self) -> SourceCode | None:
        """The own code when the file was read; None without own code, or for a study of a store."""
        return self._source_code

    @property
    def source_data(self) -> tuple[SourceData, ...]:
        """The data files when the file was read; empty for a study of a store."""
        return self._source_data

    @property
    def source_file(self) -> Path | None:
        """The path of the user's file; None for a preset, a mapping, or a study of a store."""
        return self._source_file

    @property
    def source_folder(self) -> Path | None:
        """The folder given to `parse_spec`, searched first for modules; None for a preset, or a study of a store."""
        return self._source_folder

    @property
    def text(self) -> str:
        """The file's text, with overrides; empty for a spec that wasn't parsed from text."""
        return self._source_text

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences on side effects of overrides, and notices on programs."""
        return self._notices

    @property
    def until(self) -> Until | None:
        """The rule that adds seeds to cells; None if the number of seeds is fixed."""
        return self.seeds.until

    @property
    def seed_design(self) -> SeedDesign:
        """The design of the cells' seeds: searched, adaptive by a rule, combined or fixed."""
        if self.search is not None:
            return SeedDesign("searched")
        if self.until is not None:
            return SeedDesign("adaptive", self.until.rule, self.until.metric)
        return SeedDesign("combined" if self.seeds.sources else "fixed")

    @property
    def first_seeds(self) -> Sequence[int]:
        """The seeds that every cell has, independent of results; in a search, those that a candidate can earn.

        Raises:
            ValueError: if a combined seed is too large, as for `SeedsTable.combined`.
        """
        if self.until is not None:
            return range(self.until.step)
        seeds: Sequence[int] = self.seeds.combined if self.seeds.sources else self.seeds.listed
        return seeds

    @property
    def all_seeds(self) -> Sequence[int]:
        """The possible seeds of a cell, in order of addition; without those that confirm a search's candidates.

        Raises:
            ValueError: as `first_seeds` does.
        """
        return self.first_seeds if self.until is None else range(self.until.max)

    @property
    def last_seed(self) -> int:
        """The greatest of the first seeds; for combined seeds, of the numbers that encode them.

        Raises:
            ValueError: as `first_seeds` does.
        """
        seeds = self.first_seeds
        return int(seeds[-1] if isinstance(seeds, range) else max(seeds))

    @property
    def most_seeds(self) -> int:
        """The greatest possible number of seeds of a cell; without those that confirm a search's candidates."""
        return self.seeds.count if self.until is None else self.until.max


class TaskSpec(Spec):
    """A study of models that learn a task.

    `spec_class` makes the class for a family of tasks.

    Attributes:
        prefixes: the prefix of each further table (see `Spec.tables`), by its name.

    Example:
        >>> from study.plugins.families import family_named
        >>> data = {"study": "mine", "task": {"name": "simple"}, "models": ["NMU"], "seeds": 3}
        >>> spec = spec_class(family_named("simple")).model_validate(data)
        >>> spec.task_name, spec.models[0].name, list(spec.first_seeds)
        ('simple', 'NMU', [0, 1, 2])
    """

    prefixes: ClassVar[Mapping[str, str]] = {"task": "", "protocol": "", "success": "success_"}

    task: Table
    models: Annotated[tuple[ModelTable, ...], Field(min_length=1)]

    @property
    def task_name(self) -> str:
        """The task's name."""
        return str(self.task.name)  # type: ignore[attr-defined]  # a field of the family's class

    @property
    def model_tables(self) -> tuple[ModelTable, ...]:
        """The models, each with its own settings."""
        return self.models

    @property
    def has_success(self) -> bool:
        """True: the family's tasks have a success criterion."""
        return True

    @property
    def head(self) -> dict[str, Any]:
        """The task's name, under the file's key `task`."""
        return {"task": {"name": self.task_name}}


@cache
def spec_class(family: Family, base: type[TaskSpec] = TaskSpec) -> type[TaskSpec]:
    """Make the spec class of a family's studies, with its declared hyperparameters; cached by the arguments.

    Args:
        family: the family that declares the hyperparameters.
        base: the base class.

    Raises:
        KeyError: if a hyperparameter belongs to a table that isn't one of the base class's `prefixes`.

    Example:
        >>> from study.plugins.families import family_named
        >>> list(spec_class(family_named("simple")).model_fields)[:6]
        ['fixed', 'grid', 'zip', 'ranges', 'when', 'study']
    """
    settings = settings_of(family)
    types: dict[str, dict[str, Any]] = {name: {} for name in base.prefixes}
    for name, declared in family.hyperparameters.items():
        if declared.table:
            types[declared.table][name.removeprefix(base.prefixes[declared.table])] = declared.type
    # Stable tasks have other classes; here they are listed in the message for an unknown task.
    others = () if isinstance(family, PackedFamily) else (*offers.names("families"), *offers.names("stable_tasks"))
    tasks = choice(tuple(dict.fromkeys([*family.tasks, *others])))
    task = create_model("Task", __base__=table_of("_Task", types.pop("task")), name=(tasks, ...))
    model = create_model("ModelTable", __base__=ModelTable, name=(choice(family.models), ...), **settings)
    fields: dict[str, Any] = {
        "points": points_of(family),
        "task": (task, ...),
        "models": (Annotated[tuple[model, ...], Field(min_length=1)], ...),  # type: ignore[valid-type]
        **settings,
        "seeds": (seeds_table(family.models), ...),
        "search": (search_table(family) | None, optional()),
    }
    for name, types_of_table in types.items():
        fields[name] = (table := table_of(name.capitalize(), types_of_table), table_field(table))
    made = create_model("Spec", __base__=base, **fields)
    made.family, made.tables = family, tuple(base.prefixes.items())
    return made


def settings_of(family: Family) -> dict[str, Any]:
    """Return pydantic fields for a `SettingsTable` of a family's hyperparameters.

    They are pairs of a type and a `pydantic.Field`, by name. `ranges` has only the searchable hyperparameters.
    """
    types = {name: declared.type for name, declared in family.hyperparameters.items()}
    fixed = table_of("Fixed", {name: Annotated[type_, _WithCondition("value")] for name, type_ in types.items()})
    grid = table_of("Grid", {name: Annotated[values(type_), _WithCondition("values")] for name, type_ in types.items()})
    searchable = {name: declared for name, declared in family.hyperparameters.items() if declared.is_searchable}
    ranges = table_of("Ranges", {name: _range_of(name, declared) for name, declared in searchable.items()})
    condition = table_of("Condition", {name: _one_or_several(type_) for name, type_ in types.items()})
    when = table_of("When", dict.fromkeys(types, condition))
    return {
        "fixed": (fixed, table_field(fixed)),
        "grid": (grid, table_field(grid)),
        "zip": (Mapping[str, points_of(family)[0]], table_field(dict)),  # type: ignore[misc]
        "ranges": (ranges, table_field(ranges)),
        "when": (when, table_field(when)),
    }


def points_of(family: Family) -> tuple[Any, Any]:
    """Return the type of a list of points of a family's hyperparameters, and its field."""
    types = {name: declared.type for name, declared in family.hyperparameters.items()}
    point = table_of("Point", {"label": str} | types)
    points = Annotated[tuple[point, ...], Field(min_length=1)]  # type: ignore[valid-type]
    return points, Field(default=(), json_schema_extra=drop_default)


def _one_or_several(type_: Any) -> Any:
    """Return the type of a list of values that accepts a single value as a list of one."""
    adapter = TypeAdapter(type_)

    def as_values(value: object) -> object:
        try:
            return [adapter.validate_python(value)]
        except ValidationError:
            return value if isinstance(value, list) else [value]

    schema = {"anyOf": [adapter.json_schema(), {"type": "array", "items": adapter.json_schema(), "minItems": 1}]}
    return Annotated[values(type_), BeforeValidator(as_values), WithJsonSchema(schema)]


@dataclass(frozen=True)
class _WithCondition:
    """Schema of a hyperparameter's value or values: alone, or in a table with a condition.

    `study.spec.settings_form` moves the condition out of the table before the file is checked.
    """

    key: str

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        alone = handler(core)
        table = {
            "type": "object",
            "properties": {self.key: alone, "when": {"type": "object"}},
            "required": [self.key],
            "additionalProperties": False,
        }
        return {"anyOf": [alone, table]}


def names_at(table: type[Table], path: Sequence[str | int]) -> list[str]:
    """Return the allowed keys of the table at a place; empty if no table with fixed keys is there.

    List indices, names of axes and unknown keys in the path are skipped. At `zip`, the keys are those of its points.

    Example:
        >>> from study.plugins.families import family_named
        >>> names_at(spec_class(family_named("simple")), ["models", 0, "ranges", "learning_rate"])
        ['low', 'high', 'scale', 'step', 'choices', 'when']
    """
    at: type[Table] | None = table
    for part in path:
        if at is not None and part in at.model_fields:
            at = _table_in(at.model_fields[str(part)].annotation)
    if at is None:
        return []
    return [name for name in at.model_fields if name not in at._not_keys]


def _table_in(annotation: Any) -> type[Table] | None:
    """Return the class of the tables that a field holds, alone, in a list or by name; None if it holds no table."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return annotation
    return next((table for argument in get_args(annotation) if (table := _table_in(argument)) is not None), None)

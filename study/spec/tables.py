"""The shape of a study file, as pydantic models; its JSON schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue

from study.errors import nearest
from study.spec.hyperparameters import (
    HYPERPARAMETERS,
    NUMBERS,
    PROTOCOL,
    SUCCESS,
    TASK,
    TRAINING,
    WHOLE,
    Count,
    HalfWidth,
    Keep,
    Positive,
    Seed,
    choice,
    quoted,
)
from tasks import MODELS, TASKS

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
_RESERVED = "mlflow"  # the store keeps MLflow's database and files next to the studies
MOST_SEEDS = 2**63
_BATCH = 20


def _drop_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _table_field(of: type) -> Any:
    return Field(default_factory=of, json_schema_extra=_drop_default)


def _optional() -> Any:
    return Field(default=None, json_schema_extra=_drop_default)


def _values(type_: Any) -> Any:
    return Annotated[list[type_], Field(min_length=1)]


class Table(BaseModel):
    """A table of the file that remembers the order of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    _order: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="wrap")
    @classmethod
    def _remember_order(cls, data: Any, handler: ValidatorFunctionWrapHandler) -> Self:
        table: Self = handler(data)
        if isinstance(data, Mapping):
            table._order = tuple(data)
        return table

    @property
    def explicit(self) -> dict[str, Any]:
        """The values that the file gives, in its order."""
        return {name: getattr(self, name) for name in self._order if name in self.model_fields_set}


def _table(name: str, types: Mapping[str, Any]) -> type[Table]:
    fields: dict[str, Any] = {key: (type_, _optional()) for key, type_ in types.items()}
    return create_model(name, __base__=Table, **fields)


if TYPE_CHECKING:

    class _Task(Table):
        name: str

    class _Fixed(Table): ...

    class _Grid(Table): ...

    class _Ranges(Table): ...

    class _Point(Table): ...

    class _Protocol(Table): ...

    class _Success(Table): ...

else:
    _Fixed = _table("Fixed", HYPERPARAMETERS)
    _Grid = _table("Grid", {name: _values(type_) for name, type_ in HYPERPARAMETERS.items()})
    _Point = _table("Point", {"label": str} | HYPERPARAMETERS)
    _Protocol = _table("Protocol", PROTOCOL)
    _Success = _table("Success", {name.removeprefix("success_"): type_ for name, type_ in SUCCESS.items()})
    _Task = create_model("Task", __base__=_table("_Task", TASK), name=(choice(TASKS), ...))


class RangeTable(Table):
    """What a search chooses a hyperparameter from: low and high, or choices."""

    low: Any = _optional()
    high: Any = _optional()
    scale: choice(("linear", "log")) = _optional()  # type: ignore[valid-type]
    step: Any = _optional()
    choices: Any = _optional()


def _range_of(name: str, type_: Any) -> type[RangeTable]:
    """Make the table of one hyperparameter's range, which has the limits of its values."""
    fields: dict[str, Any] = {"choices": (_values(type_), _optional())}
    if name in NUMBERS:
        step = Count if name in WHOLE else Positive
        fields |= {"low": (type_, _optional()), "high": (type_, _optional()), "step": (step, _optional())}
    else:
        fields |= {key: (_NoNumbers, _optional()) for key in ("low", "high", "scale", "step")}
    return create_model(f"Range_{name}", __base__=RangeTable, **fields)


def _no_numbers(value: object) -> object:
    raise ValueError(f"only numbers have a range; give choices: [...] instead of {quoted(value)}")


_NoNumbers = Annotated[Any, BeforeValidator(_no_numbers), WithJsonSchema({"not": {}})]

_Points = Annotated[tuple[_Point, ...], Field(min_length=1)]
_Zip = dict[str, _Points]


if not TYPE_CHECKING:
    _Ranges = _table("Ranges", {name: _range_of(name, type_) for name, type_ in TRAINING.items()})


class ModelTable(Table):
    """A model, alone or with hyperparameters of its own, which replace those for all models."""

    name: choice(MODELS)  # type: ignore[valid-type]
    fixed: _Fixed = _table_field(_Fixed)
    grid: _Grid = _table_field(_Grid)
    zip: _Zip = _table_field(dict)
    ranges: _Ranges = _table_field(_Ranges)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        table = handler.resolve_ref_schema(handler(core))
        return {"anyOf": [{"enum": list(MODELS)}, table]}


def _check_name(name: str) -> str:
    if not re.fullmatch(_NAME, name):
        raise ValueError(
            "must name a folder of the store: letters, digits, '.', '_' and '-', at most 80, the first a "
            f"letter or a digit; but got {quoted(name)}"
        )
    if name.lower().startswith(_RESERVED):
        raise ValueError(f"must not start with {_RESERVED!r}, which the store uses itself, but got {quoted(name)}")
    return name


def _text(value: object) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError(f"must be text, but got {quoted(value)}")
    return str(value)


def _seeds(value: object) -> Sequence[int]:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value < MOST_SEEDS:
            raise ValueError(f"must be at least 1 and below 2**63, but got {value}")
        return range(value)
    if not isinstance(value, list):
        raise ValueError(f"must be a count, or a list of seeds, but got {quoted(value)}")
    if not value:
        raise ValueError("must have at least 1 seed, but the list is empty")
    for seed in value:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < MOST_SEEDS:
            raise ValueError(f"each seed must be a whole number, 0 <= seed < 2**63, but got {quoted(seed)}")
    first: set[int] = set()
    repeats = [seed for seed in value if seed in first or first.add(seed)]  # type: ignore[func-returns-value]
    if repeats:
        raise ValueError(f"each seed may be given once, but got {repeats[0]} again")
    return tuple(value)


class Until(Table):
    """When a cell has enough seeds; seeds are added in batches.

    Args:
        half_width: half-width of the success rate's interval that must be reached.
        different_from: model from whose cells all other cells are to be distinguished.
        max: the most seeds that a cell gets.
        batch: number of seeds that are added at once.
    """

    half_width: HalfWidth | None = _optional()
    different_from: choice(MODELS) | None = _optional()  # type: ignore[valid-type]
    max: Count
    batch: Count | None = _optional()

    @property
    def step(self) -> int:
        """Number of seeds that are added between evaluations of the rule."""
        return min(self.batch or _BATCH, self.max)


class SeedsTable(Table):
    """A count, a list of seeds, or a rule that decides how many of the seeds 0, 1, 2, ... are used."""

    listed: Annotated[Any, BeforeValidator(_seeds)] = None
    until: Until = _optional()

    @model_validator(mode="before")
    @classmethod
    def _from_value(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return {"listed": data}
        if set(data) != {"until"}:
            keys = ", ".join(map(repr, data)) or "none"
            raise ValueError(f"must be a count, a list of seeds, or a table whose key is 'until', but has {keys}")
        return dict(data)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        until = handler.resolve_ref_schema(handler(core))["properties"]["until"]
        table = {"type": "object", "properties": {"until": until}, "additionalProperties": False}
        return {"anyOf": [*_SEEDS_SCHEMA, table | {"required": ["until"]}], "description": _SEEDS_ARE}


_SEEDS_ARE = "a count (3 means seeds 0, 1 and 2), a list, or `until` there are enough"
_SEEDS_SCHEMA: tuple[dict[str, Any], ...] = (
    {"type": "integer", "minimum": 1},
    {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "uniqueItems": True},
)


OBJECTIVES = ("success_rate", "solved_at", "time_to_success", "sparsity_error")
SAMPLERS = ("TPE", "NSGA-II", "CMA-ES", "random")


def _objectives(value: object) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value]
    if not names:
        raise ValueError(f"must be one or several of {', '.join(OBJECTIVES)}, but the list is empty")
    for name in names:
        if name not in OBJECTIVES:
            must = f"must be one or several of {', '.join(OBJECTIVES)}, but got {quoted(name)}"
            raise ValueError(must + nearest(name, OBJECTIVES))
    if len(set(names)) < len(names):
        raise ValueError("each objective may be given once")
    return tuple(str(name) for name in names)


_OBJECTIVES_SCHEMA = {
    "anyOf": [
        {"enum": list(OBJECTIVES)},
        {"type": "array", "items": {"enum": list(OBJECTIVES)}, "minItems": 1, "uniqueItems": True},
    ]
}


class Search(Table):
    """How candidates, which are cells, are chosen and compared.

    Args:
        objective: what to optimise; several names for a Pareto front.
        trials: budget of trials that the candidates may take, without those of the confirmation.
        sampler: name of the method that suggests candidates.
        seed: the sampler's seed.
        candidates: number of candidates that are suggested at once and compared.
        first_seeds: number of seeds that each candidate begins with.
        keep: share of the candidates that go on with more seeds.
        confirm_seeds: number of fresh seeds for each candidate of the final front.
        confirm_candidates: the most candidates of the front that are confirmed.
    """

    objective: Annotated[Any, BeforeValidator(_objectives), WithJsonSchema(_OBJECTIVES_SCHEMA)]
    trials: Count
    sampler: choice(SAMPLERS) = "TPE"  # type: ignore[valid-type]
    seed: Seed = 0
    candidates: Count = 12
    first_seeds: Count = 5
    keep: Keep = 1 / 3
    confirm_seeds: Count = 100
    confirm_candidates: Count = 5


_StudyName = Annotated[
    str, BeforeValidator(_text), AfterValidator(_check_name), Field(json_schema_extra={"pattern": _NAME})
]


class Spec(Table):
    """A study as the user writes it; `docs/` and the presets show what each table holds.

    Example:
        >>> data = {"study": "mine", "task": {"name": "simple"}, "models": ["NMU"], "seeds": 3}
        >>> spec = Spec.model_validate(data)
        >>> spec.models[0].name, list(spec.first_seeds)
        ('NMU', [0, 1, 2])
    """

    study: _StudyName
    question: Annotated[str, BeforeValidator(_text)] = ""
    task: _Task
    models: Annotated[tuple[ModelTable, ...], Field(min_length=1)]
    fixed: _Fixed = _table_field(_Fixed)
    grid: _Grid = _table_field(_Grid)
    zip: _Zip = _table_field(dict)
    ranges: _Ranges = _table_field(_Ranges)
    seeds: SeedsTable
    search: Search | None = _optional()
    protocol: _Protocol = _table_field(_Protocol)
    success: _Success = _table_field(_Success)
    _source_text: str = PrivateAttr("")

    @property
    def text(self) -> str:
        """The file as it was written."""
        return self._source_text

    @property
    def until(self) -> Until | None:
        """The rule that decides how many seeds a cell gets; None if the file says how many."""
        return self.seeds.until

    @property
    def first_seeds(self) -> Sequence[int]:
        """The seeds that every cell has, whatever their results are."""
        seeds: Sequence[int] = self.seeds.listed if self.until is None else range(self.until.step)
        return seeds

    @property
    def last_seed(self) -> int:
        """The greatest of the first seeds."""
        seeds = self.first_seeds
        return int(seeds[-1] if isinstance(seeds, range) else max(seeds))

    @property
    def most_seeds(self) -> int:
        """The most seeds that a cell can have."""
        if self.until is not None:
            return self.until.max
        # Not len(): Python refuses it for a range that is longer than a machine word can count.
        return self.first_seeds.stop if isinstance(self.first_seeds, range) else len(self.first_seeds)


def names_at(path: Sequence[str | int]) -> list[str]:
    """Return the keys that the table at a place can have; none where any key is allowed."""
    match list(path):
        case []:
            return list(Spec.model_fields)
        case ["models", _, *inside]:
            return names_at(inside) if inside else list(ModelTable.model_fields)
        case ["zip", _, _]:
            return ["label", *HYPERPARAMETERS]
        case ["seeds"]:
            return ["until"]
        case ["seeds", "until"]:
            return list(Until.model_fields)
        case ["task"]:
            return ["name", *TASK]
        case ["protocol"]:
            return list(PROTOCOL)
        case ["success"]:
            return [name.removeprefix("success_") for name in SUCCESS]
        case ["fixed" | "grid"]:
            return list(HYPERPARAMETERS)
        case ["ranges"]:
            return list(TRAINING)
        case ["ranges", _]:
            return list(RangeTable.model_fields)
        case ["search"]:
            return list(Search.model_fields)
    return []


def schema() -> dict[str, Any]:
    """Return the JSON schema of a study file, for editors.

    Example:
        >>> sorted(schema()["required"])
        ['models', 'seeds', 'study', 'task']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Spec.model_json_schema(),
        "title": "A study",
        "description": "A study of seeded training trials.",
    }

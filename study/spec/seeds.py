"""Seeds of cells: a count, a list, a rule, or combined seeds."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, GetJsonSchemaHandler, create_model, model_validator
from pydantic.json_schema import JsonSchemaValue

from study.interface.values import Count, Positive, choice, quoted
from study.records import Sources
from study.spec.table import Table, optional
from study.words import count_of

MOST_SEEDS = 2**63
MOST_TRIALS = 10_000_000
"""Greatest number of trials of a study."""
_RANGE = re.compile(r"\s*([0-9]+)\s*-\s*([0-9]+)\s*", re.ASCII)
_MOST_DIGITS = 40  # more than any seed has; Python refuses to read thousands of them
_BATCH = 20
SOURCES = ("init", "data", "evaluation")
"""Sources of randomness that may have their own seeds."""


def parse_seeds(value: object) -> Sequence[int]:
    """Parse the seeds of a file: a count n for 0 to n - 1, a range such as 100-149, or a list of seeds and ranges.

    Returns:
        A range for a count or a range; a tuple for a list, in its order.

    Raises:
        ValueError: if the value is none of these, a count is below 1 or at least 2**63, a range descends, a list is
            empty, repeats a seed or has more than `MOST_TRIALS`, or a seed is below 0 or at least 2**63.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value < MOST_SEEDS:
            raise ValueError(f"must be at least 1 and below 2**63, but got {value}")
        return range(value)
    if isinstance(value, str):
        return _range(value)
    if not isinstance(value, list):
        raise ValueError(f"must be a count, a list of seeds, or a range such as 100-149, but got {quoted(value)}")
    if not value:
        raise ValueError("must have at least 1 seed, but the list is empty")
    parts = [_range(item) if isinstance(item, str) else (_seed(item),) for item in value]
    if (count := sum(map(count_seeds, parts))) > MOST_TRIALS:
        raise ValueError(f"must list at most {MOST_TRIALS:,} seeds, the most trials of a study, but lists {count:,}")
    seeds = tuple(itertools.chain.from_iterable(parts))
    first: set[int] = set()
    repeats = [seed for seed in seeds if seed in first or first.add(seed)]  # type: ignore[func-returns-value]
    if repeats:
        raise ValueError(f"each seed may be given once, but got {repeats[0]} again")
    return seeds


def _seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_SEEDS:
        raise ValueError(f"each seed must be a whole number, 0 <= seed < 2**63, but got {quoted(value)}")
    return value


def _range(text: str) -> range:
    """Parse a range of seeds, both ends included; raise ValueError if it is invalid."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"must be a count, a list of seeds, or a range such as 100-149, but got {quoted(text)}")
    first, last = (int(end[:_MOST_DIGITS]) for end in match.groups())
    if last >= MOST_SEEDS or first >= MOST_SEEDS:
        raise ValueError(f"the seeds of a range must be below 2**63, but got {quoted(text)}")
    if first > last:
        raise ValueError(f"a range must ascend, as {last}-{first} does, but got {quoted(text)}")
    return range(first, last + 1)


def count_seeds(seeds: Sequence[int]) -> int:
    """Return the number of seeds, also for ascending ranges that are too long for `len`.

    Example:
        >>> count_seeds(range(2**63)) == 2**63, count_seeds(range(0, 10, 4)), count_seeds(range(5, 3))
        (True, 3, 0)
    """
    return max(0, -(-(seeds.stop - seeds.start) // seeds.step)) if isinstance(seeds, range) else len(seeds)


def format_seeds(seeds: Sequence[int]) -> str | list[int]:
    """Format seeds for a file: as text for a Python range of two or more successive seeds, otherwise as a list.

    Example:
        >>> format_seeds(range(40, 47)), format_seeds((3, 7)), format_seeds(range(5, 6))
        ('40-46', [3, 7], [5])
    """
    if isinstance(seeds, range) and seeds.step == 1 and len(seeds) > 1 and seeds[0] >= 0:
        return f"{seeds[0]}-{seeds[-1]}"
    return list(seeds)


class Until(Table):
    """Rule that adds seeds in batches until a cell has enough.

    Args:
        half_width: the wanted half-width of the interval of the success rate, or of a metric's mean.
        different_from: the model whose cells are compared with all other cells.
        claims: ``decided``, for seeds until the study's claims are decided.
        metric: the judged metric, instead of success.
        max: the greatest number of seeds of a cell.
        batch: the number of seeds added at once.
    """

    half_width: Positive | None = optional()
    different_from: str | None = optional()
    claims: choice(("decided",)) | None = optional()  # type: ignore[valid-type]
    metric: str | None = optional()
    max: Count
    batch: Count | None = optional()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        table = handler.resolve_ref_schema(handler(core))
        properties = dict(table["properties"])
        by_metric = table | {"required": [*table["required"], "metric"]}
        del properties["metric"]
        rate = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5, "title": "Half Width"}
        return {"anyOf": [table | {"properties": properties | {"half_width": rate}}, by_metric]}

    @property
    def rule(self) -> Literal["half_width", "different_from", "claims"]:
        """The name of the rule, the only one that is given."""
        if self.claims is not None:
            return "claims"
        return "different_from" if self.half_width is None else "half_width"

    @property
    def step(self) -> int:
        """The number of seeds added between evaluations of the rule: `batch`, or else 20, and at most `max`."""
        return min(self.batch or _BATCH, self.max)


class SeedsTable(Table):
    """Seeds as a count or list, a rule that adds the seeds 0, 1, 2, ..., or seeds of several sources.

    Args:
        listed: the seeds, if given in place of the table.
        until: the rule.
        init: seeds of initial weights.
        data: seeds of training rows.
        evaluation: seeds of validation and test rows.
        design: ``crossed`` to combine each seed of a source with each of the others, or ``nested`` for different data
            seeds of each init seed.
    """

    _not_keys: ClassVar[tuple[str, ...]] = ("listed",)

    listed: Annotated[Any, BeforeValidator(parse_seeds)] = None
    until: Until = optional()
    init: Annotated[Any, BeforeValidator(parse_seeds)] = None
    data: Annotated[Any, BeforeValidator(parse_seeds)] = None
    evaluation: Annotated[Any, BeforeValidator(parse_seeds)] = None
    design: choice(("crossed", "nested")) = "crossed"  # type: ignore[valid-type]

    @model_validator(mode="before")
    @classmethod
    def _from_value(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return {"listed": data}
        if set(data) != {"until"} and not (set(data) <= {*SOURCES, "design"} and set(data) & set(SOURCES)):
            keys = ", ".join(map(repr, data)) or "none"
            raise ValueError(
                "must be a count, a range, a list of seeds, or a table with the key 'until' alone, or with keys among "
                f"{', '.join(SOURCES)}, and design, but has {keys}"
            )
        return dict(data)

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.combinations > MOST_TRIALS:
            raise ValueError(
                f"must combine to at most {MOST_TRIALS:,} seeds, the most trials of a study, but combine to "
                f"{self.combinations:,}"
            )
        return self

    @property
    def combinations(self) -> int:
        """The number of combinations of the sources' seeds, computed without making them; 0 without sources."""
        return math.prod(map(count_seeds, self.sources.values())) if self.sources else 0

    @property
    def sources(self) -> Mapping[str, Sequence[int]]:
        """The seeds of each source with its own seeds; empty if all sources share one seed."""
        return {name: seeds for name in SOURCES if (seeds := getattr(self, name)) is not None}

    @property
    def count(self) -> int:
        """The number of listed or combined seeds, computed without making them; not for a table with `until`."""
        return self.combinations or count_seeds(self.listed)

    @property
    def combined(self) -> tuple[int, ...]:
        """The seeds that encode the combinations of the sources' seeds; only for a table with `init` or `data`.

        If only one of init and data has seeds, both sources use them.

        In a nested design with n data seeds, the first init seed has the data seeds 0 to n - 1, the second the next n,
        and so on.

        Raises:
            ValueError: if a seed to combine, also a data seed of a nested design, is at least 2**21 - 1.
        """
        inits = self.data if self.init is None else self.init
        evaluations = [None] if self.evaluation is None else self.evaluation
        if self.design == "nested":
            count = len(self.data)
            pairs = [(init, place * count + n) for place, init in enumerate(inits) for n in range(count)]
        elif self.data is None or self.init is None:
            pairs = [(seed, seed) for seed in inits]
        else:
            pairs = list(itertools.product(inits, self.data))
        return tuple(Sources(*pair, evaluation).seed for pair in pairs for evaluation in evaluations)

    @property
    def size(self) -> str:
        """The number of seeds of each cell, in words; not for a table with `until`."""
        if not self.sources:
            return count_of(self.count, "seed")
        nested = " in each" if self.design == "nested" else ""
        return " × ".join(count_of(len(seeds), f"{name} seed") for name, seeds in self.sources.items()) + nested

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        fields = handler.resolve_ref_schema(handler(core))["properties"]
        seeds: dict[str, Any] = {"anyOf": list(_SEEDS_SCHEMA)}
        table: dict[str, Any] = {"type": "object", "additionalProperties": False}
        properties = {**dict.fromkeys(SOURCES, seeds), "design": fields["design"]}
        tables = [table | {"properties": {"until": fields["until"]}, "required": ["until"]}]
        tables += [table | {"properties": properties, "required": [name]} for name in ("init", "data")]
        return {"anyOf": [*_SEEDS_SCHEMA, *tables], "description": _SEEDS_DESCRIPTION}


_SEEDS_DESCRIPTION = (
    "a count (3 means seeds 0, 1 and 2), a range (100-149), a list of seeds and ranges, a rule under `until`, or the "
    "seeds of each source of randomness"
)
_RANGE_SCHEMA: dict[str, Any] = {"type": "string", "pattern": "^\\s*[0-9]+\\s*-\\s*[0-9]+\\s*$"}
_ITEM_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "integer", "minimum": 0}, _RANGE_SCHEMA]}
_SEEDS_SCHEMA: tuple[dict[str, Any], ...] = (
    {"type": "integer", "minimum": 1},
    _RANGE_SCHEMA,
    {"type": "array", "items": _ITEM_SCHEMA, "minItems": 1, "uniqueItems": True},
)


def seeds_table(models: Sequence[str]) -> type[SeedsTable]:
    """Make the class of the seeds of studies with these models, the valid values of `different_from`."""
    until = create_model("Until", __base__=Until, different_from=(choice(models) | None, optional()))
    return create_model("SeedsTable", __base__=SeedsTable, until=(until, optional()))

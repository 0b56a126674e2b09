"""What study files of own code share whose trials are called one after another: metrics, resources, files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BeforeValidator, Field, create_model, model_validator

from study.errors import nearest
from study.interface.declarations import Metric, check_series
from study.interface.family import Family
from study.interface.pruning import Pruning
from study.interface.values import Count, Iteration, NotNegative, Positive, choice, number
from study.records import Keep
from study.spec.document import Path
from study.spec.own_code import TIMES, OwnCodeSpec, success_mistakes
from study.spec.seeds import seeds_table
from study.spec.table import Table, optional, table_field
from study.spec.tables import ModelTable, points_of, search_table, settings_of

_Number = Annotated[float, BeforeValidator(number)]


class MetricTable(Table):
    """A metric that a trial reports: which direction is better, alone or with more.

    Args:
        better: ``higher`` or ``lower``.
        title: its name for readers.
        unit: its unit.
        low: the least value that it can have.
        high: the greatest value that it can have.
        series: what the metrics of its series are, for readers.
        along: what tells the metrics of its series apart, for readers.
        at: its place there.
        is_trained: whether training covers its place.
    """

    better: choice(("higher", "lower"))  # type: ignore[valid-type]
    title: str = ""
    unit: str = ""
    low: _Number | None = optional()
    high: _Number | None = optional()
    series: str = ""
    along: str = ""
    at: _Number | None = optional()
    is_trained: bool = False

    @model_validator(mode="before")
    @classmethod
    def _from_direction(cls, data: Any) -> Any:
        return data if isinstance(data, Mapping) else {"better": data}

    @model_validator(mode="after")
    def _can_be_a_metric(self) -> Self:
        _ = self.metric
        return self

    @property
    def metric(self) -> Metric:
        """The metric as the rest of the program knows it."""
        return Metric(higher_is_better=self.better == "higher", **self.model_dump(exclude={"better"}))


class ResourcesTable(Table):
    """What a trial may use.

    Args:
        cpus: cores, and threads of the libraries that it calls.
        gpus: GPUs, or a share of one; without them, it sees none.
        memory_gb: GiB; not of functions that run in the process of the service.
        time_limit_s: seconds after which it has failed.
    """

    cpus: Count = 1
    gpus: NotNegative = 0.0
    memory_gb: Positive | None = optional()
    time_limit_s: Positive | None = optional()


class KeepTable(Table):
    """Selection of the files of a trial to keep.

    Args:
        files: patterns; none to keep only the log.
        size_mb: megabytes of a trial at most.
    """

    files: tuple[str, ...] = ("*",)
    size_mb: Positive = 20.0

    @model_validator(mode="before")
    @classmethod
    def _from_patterns(cls, data: Any) -> Any:
        return {"files": data} if isinstance(data, list | tuple) else data


class PruneTable(Table):
    """When trials are stopped early, by what others had reached.

    Args:
        method: ``halving`` or ``median``.
        metric: what is compared; by default what the search seeks, or the first metric.
        first: the first step at which trials are compared.
        factor: of halving: one of so many goes on, to the step that is so many times greater.
        every: of the median rule: steps between two comparisons.
        after: how many trials of other cells must have been compared at a step before one is stopped there.
    """

    method: choice(("halving", "median")) = "halving"  # type: ignore[valid-type]
    metric: str | None = optional()
    first: Count = 1
    factor: Annotated[float, Field(gt=1), BeforeValidator(number)] = 3.0
    every: Count = 1
    after: Count = 5

    @model_validator(mode="before")
    @classmethod
    def _from_method(cls, data: Any) -> Any:
        return {"method": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _check(self) -> Self:
        other = "every" if self.method == "halving" else "factor"
        if other in self.model_fields_set:
            raise ValueError(f"{other} isn't a setting of {self.method}; leave it out")
        return self


class CallSpec(OwnCodeSpec):
    """A study whose trials are called one after another.

    Args:
        metrics: what a trial reports, the first of which chooses the best step.
        iterations: the greatest step that a trial may report.
        resources: what a trial may use.
        keep: which files of a trial are kept.
        prune: when trials are stopped early; None to let all end by themselves.
        config: a configuration file whose values are fixed hyperparameters (`study.spec.config_file`); None here.

    Attributes:
        task: the task of all its cells.
    """

    task: ClassVar[str]

    metrics: Annotated[dict[str, MetricTable], Field(min_length=1)]
    iterations: Iteration | None = optional()
    resources: ResourcesTable = table_field(ResourcesTable)
    keep: KeepTable = table_field(KeepTable)
    prune: PruneTable | None = optional()
    config: str | None = optional()

    @property
    def called(self) -> str:
        """The name of what is called, in place of a model's."""
        return str(self.family.models[0])

    @property
    def pruning(self) -> Pruning | None:
        """The rule by which trials are stopped early; those that confirm what a search has found never are."""
        if self.prune is None:
            return None
        settings = self.prune.model_dump()
        sought = () if self.search is None else [name for name in self.search.objective if name in self.metrics]
        metric = settings.pop("metric") or next(iter([*sought, *self.metrics]))
        return Pruning(
            metric=metric,
            is_higher_better=self.declared_metrics[metric].higher_is_better,
            complete_from=None if self.search is None else self.last_seed + 1,
            **settings,
        )

    @property
    def has_files(self) -> bool:
        """Whether trials may have files."""
        return True

    @property
    def keep_files(self) -> Keep:
        """Which files of a trial are kept."""
        return Keep(self.keep.files, self.keep.size_mb)

    @property
    def task_name(self) -> str:
        """The task's name."""
        return self.task

    @property
    def model_tables(self) -> tuple[ModelTable, ...]:
        """What is called, in place of a model; it sets nothing for itself."""
        return (ModelTable(name=self.called),)

    @property
    def head(self) -> dict[str, Any]:
        """What the file says of what is called beside hyperparameters and seeds."""
        names = "train command shell results resume metrics success iterations isolation resources keep version include"
        return self.written(*names.split())

    @property
    def declared_metrics(self) -> dict[str, Metric]:
        """The metrics by name."""
        return {name: one.metric for name, one in self.metrics.items()}


def call_mistakes(
    spec: CallSpec, reserved: Collection[str], hyperparameters: Collection[str], taken: str
) -> Iterator[tuple[Path, str]]:
    """Yield each mistake in what a file says of metrics, success and the times that a search seeks, with its place.

    Args:
        spec: the study.
        reserved: names that no metric may have.
        hyperparameters: the names of the hyperparameters.
        taken: what to say of a metric that is called like one of these.
    """
    for name in spec.metrics:
        if name in reserved:
            yield ("metrics", name), "the name means something else in a study's results; give it another one"
        elif name in hyperparameters:
            yield ("metrics", name), taken
    yield from _prune_mistakes(spec)
    try:
        check_series(spec.declared_metrics)
    except ValueError as error:
        yield ("metrics",), str(error)
    yield from success_mistakes(spec, spec.metrics)
    for name in spec.search.objective if spec.search is not None else ():
        if name in TIMES and spec.iterations is None:
            yield (
                ("search", "objective"),
                f"{name} needs to know how long an unsolved trial would have gone on: say iterations",
            )


def _prune_mistakes(spec: CallSpec) -> Iterator[tuple[Path, str]]:
    if spec.prune is None:
        return
    metric = spec.prune.metric
    if metric is not None and metric not in spec.metrics:
        hint = nearest(metric, spec.metrics)
        yield ("prune", "metric"), f"must be one of the metrics, {', '.join(spec.metrics)}, but got {metric!r}{hint}"
    needing = "claims" if spec.claims else "until" if spec.until is not None else ""
    if needing:
        yield ("prune",), f"{needing} is judged by trials that ended by themselves: leave prune out"


SpecT = TypeVar("SpecT", bound=CallSpec)


def call_spec_class(base: type[SpecT], family: Family) -> type[SpecT]:
    """Make the class of the studies of a function or a program: its tables have the hyperparameters of that.

    Args:
        base: the class that it is derived from.
        family: what declares them.
    """
    search: Any = (search_table(family) | None, optional())
    made = create_model(
        base.__name__,
        __base__=base,
        seeds=(seeds_table(family.models), ...),
        search=search,
        points=points_of(family),
        **settings_of(family),
    )
    made.family = family
    return made

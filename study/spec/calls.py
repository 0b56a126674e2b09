"""Tables shared by studies of functions and programs: metrics, resources, files and pruning."""

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
    """A reported metric: its direction, alone or in a table with more keys.

    Args:
        better: ``higher`` or ``lower``.
        title: the metric's name for readers.
        unit: its unit.
        low: its smallest possible value.
        high: its greatest possible value.
        series: the name of its series, for readers.
        along: the name of the places along the series, for readers.
        at: the metric's place in the series.
        is_trained: whether training covers that place.
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
        """The metric's declaration."""
        return Metric(higher_is_better=self.better == "higher", **self.model_dump(exclude={"better"}))


class ResourcesTable(Table):
    """Resources of a trial.

    Args:
        cpus: the number of cores, and of threads of the libraries that the trial calls.
        gpus: the number of GPUs, or a share of one; 0 hides all GPUs.
        memory_gb: the memory limit in GiB; not for functions that run in the service's process.
        time_limit_s: the seconds after which the trial fails.
    """

    cpus: Count = 1
    gpus: NotNegative = 0.0
    memory_gb: Positive | None = optional()
    time_limit_s: Positive | None = optional()


class KeepTable(Table):
    """Selection of a trial's files to keep.

    Args:
        files: glob patterns; empty to keep only the log.
        size_mb: the greatest total size of a trial's files, in megabytes.
    """

    files: tuple[str, ...] = ("*",)
    size_mb: Positive = 20.0

    @model_validator(mode="before")
    @classmethod
    def _from_patterns(cls, data: Any) -> Any:
        return {"files": data} if isinstance(data, list | tuple) else data


class PruneTable(Table):
    """Rule that stops trials early by comparison with other trials at the same step.

    Args:
        method: ``halving`` or ``median``.
        metric: the compared metric; by default the search's objective, or else the first metric.
        first: the first step of a comparison.
        factor: for halving, the ratio of successive steps of comparison; the best 1 / factor of the trials continue.
        every: for the median rule, the number of steps between comparisons.
        after: the number of trials of other cells that must have reached a step before a trial is stopped there.
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
    """A study of a function or a program, whose trials run one after another.

    Args:
        metrics: the reported metrics; the first chooses the best step.
        iterations: the greatest step that a trial may report.
        resources: resources of a trial.
        keep: files of a trial to keep.
        prune: the rule that stops trials early; None for none.
        config: a configuration file with fixed hyperparameters; None once `study.spec.config_file` has read it.

    Attributes:
        task: the task of all cells.
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
        """The name of the function or program, in place of a model's name."""
        return str(self.family.models[0])

    @property
    def pruning(self) -> Pruning | None:
        """The rule that stops trials early, except those that confirm a search's candidates; None without one.

        Raises:
            KeyError: if `prune` names a metric that isn't declared, as `call_mistakes` reports.
            ValueError: in a search, as `last_seed` does.
        """
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
        """True: trials may write files."""
        return True

    @property
    def keep_files(self) -> Keep:
        """The files of a trial to keep."""
        return Keep(self.keep.files, self.keep.size_mb)

    @property
    def task_name(self) -> str:
        """The task's name."""
        return self.task

    @property
    def model_tables(self) -> tuple[ModelTable, ...]:
        """A table with the function or program in place of a model, without settings of its own."""
        return (ModelTable(name=self.called),)

    @property
    def head(self) -> dict[str, Any]:
        """The file's values about the function or program, by key, without hyperparameters, seeds and pruning.

        Keys that the file lacks are left out. Short forms become tables, such as ``{"better": "lower"}`` of a metric.
        """
        names = "train command shell results resume metrics success iterations isolation resources keep version include"
        return self.written(*names.split())

    @property
    def declared_metrics(self) -> dict[str, Metric]:
        """The metrics' declarations, by name."""
        return {name: table.metric for name, table in self.metrics.items()}


def call_mistakes(
    spec: CallSpec, reserved: Collection[str], hyperparameters: Collection[str], taken: str
) -> Iterator[tuple[Path, str]]:
    """Yield each mistake in metrics, success, pruning and time objectives of a search, with its place.

    Mistakes of `success_mistakes` are among them. Of the metrics' series, only the first mistake is yielded.

    Args:
        spec: the study.
        reserved: names that no metric may have.
        hyperparameters: the names of the hyperparameters.
        taken: the message for a metric with the name of a hyperparameter.
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
            yield (("search", "objective"), f"{name} needs a number of iterations for unsolved trials: set iterations")


def _prune_mistakes(spec: CallSpec) -> Iterator[tuple[Path, str]]:
    if spec.prune is None:
        return
    metric = spec.prune.metric
    if metric is not None and metric not in spec.metrics:
        hint = nearest(metric, spec.metrics)
        yield ("prune", "metric"), f"must be one of the metrics, {', '.join(spec.metrics)}, but got {metric!r}{hint}"
    needing = "claims" if spec.claims else "until" if spec.until is not None else ""
    if needing:
        yield ("prune",), f"can't be combined with {needing}, which needs trials that end by themselves: remove one"


SpecT = TypeVar("SpecT", bound=CallSpec)


def call_spec_class(base: type[SpecT], family: Family) -> type[SpecT]:
    """Make the spec class of studies of a function or program, with its declared hyperparameters.

    Args:
        base: the base class.
        family: the family that declares the hyperparameters.
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

"""Schema of a study file that names a packed task and its models."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from study.interface.criterion import Bound
from study.interface.packed_family import PackedFamily
from study.interface.references import ReferenceCriterion
from study.plugins import offers
from study.records import Cell
from study.spec.own_code import OwnCodeSpec
from study.spec.references import ReferencesTable, SuccessTable, reference_criterion
from study.spec.table import Table, optional, table_field
from study.spec.tables import AnySettings, ModelTable, TaskSpec


class PackedSpec(OwnCodeSpec, TaskSpec):
    """A study of a packed task and its models.

    `spec_class` makes the class with their declared hyperparameters.

    Args:
        success: the success criterion: bounds by metric, or words for bounds set by references.
        references: the trials that set these bounds.
    """

    success: dict[str, SuccessTable] = table_field(dict)  # type: ignore[assignment]  # values are more than bounds
    references: ReferencesTable | None = optional()
    prefixes: ClassVar[Mapping[str, str]] = {"task": "", "protocol": ""}

    @property
    def declared(self) -> PackedFamily:
        """The declarations of the task and the models."""
        assert isinstance(self.family, PackedFamily)
        return self.family

    @property
    def criterion(self) -> dict[str, Bound]:
        """The bounds that a solved trial's metrics satisfy; empty without `success`, or if references set any."""
        return {} if self.by_references else super().criterion

    @property
    def by_references(self) -> tuple[str, ...]:
        """The metrics of success with a bound set by references."""
        return tuple(name for name, table in self.success.items() if table.word is not None)

    def reference_criterion(
        self, cells: Sequence[Cell], seeds: Callable[[Cell], Collection[int]]
    ) -> ReferenceCriterion | None:
        """Return the success criterion set by references; None without references."""
        return reference_criterion(self, cells, seeds) if self.by_references else None

    @property
    def head(self) -> dict[str, Any]:
        """The task's name, success, version and included files, by the file's keys; without those that it lacks."""
        return {"task": {"name": self.task_name}, **self.written("success", "version", "include")}


class AnyTask(Table):
    """A task with any fields."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # Exclude the tasks of families, so that editors find mistakes in their files.
        made = handler(core)
        table = handler.resolve_ref_schema(made)
        others = "|".join(offers.names("families"))
        table["properties"]["name"] = {"type": "string"} | ({"pattern": f"^(?!({others})$)"} if others else {})
        return made


class AnyModel(AnySettings, ModelTable):
    """A model with any arguments."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler.resolve_ref_schema(handler(core))]}


class AnyPackedSpec(AnySettings, PackedSpec):
    """A study of a packed task with any hyperparameters, for checks before the import of task and models."""

    task: AnyTask
    models: Annotated[tuple[AnyModel, ...], Field(min_length=1)]
    points: Any = ()
    protocol: Any = table_field(dict)

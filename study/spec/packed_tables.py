"""The shape of a study file that names a task and models of one's own."""

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
    """A study of models and a task of one's own, which train in packs.

    `spec_class` makes the class for what they declare.

    Args:
        success: the metrics that say whether a trial is solved.
        references: the trials that set the bounds of metrics that aren't given one.
    """

    success: dict[str, SuccessTable] = table_field(dict)  # type: ignore[assignment]  # values are more than bounds
    references: ReferencesTable | None = optional()
    prefixes: ClassVar[Mapping[str, str]] = {"task": "", "protocol": ""}

    @property
    def declared(self) -> PackedFamily:
        """What the task and the models declare."""
        assert isinstance(self.family, PackedFamily)
        return self.family

    @property
    def criterion(self) -> dict[str, Bound]:
        """What the metrics of a solved trial meet; empty where references say it."""
        return {} if self.by_references else super().criterion

    @property
    def by_references(self) -> tuple[str, ...]:
        """The metrics of success of which references set the bound."""
        return tuple(name for name, one in self.success.items() if one.word is not None)

    def reference_criterion(
        self, cells: Sequence[Cell], seeds: Callable[[Cell], Collection[int]]
    ) -> ReferenceCriterion | None:
        """Return what success is where references say it; None if none do."""
        return reference_criterion(self, cells, seeds) if self.by_references else None

    @property
    def head(self) -> dict[str, Any]:
        """What the file says of the task beside hyperparameters, models and seeds."""
        return {"task": {"name": self.task_name}, **self.written("success", "version", "include")}


class AnyTask(Table):
    """A task with any fields."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # Files of families fit no shape but their own, so that editors find the mistakes in them.
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
    """The same with any hyperparameters: what can be checked before task and models are known."""

    task: AnyTask
    models: Annotated[tuple[AnyModel, ...], Field(min_length=1)]
    points: Any = ()
    protocol: Any = table_field(dict)

"""Family of a user's packed task and its models: hyperparameters, training, code identity."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from study.interface.declarations import MOST_IN_PACK, REQUIRED, UPDATE_US, Hyperparameter, Metric
from study.interface.declared_json import as_json, from_json
from study.interface.family import Check, Content, Family, Mistake, Values
from study.interface.l1_strengths import FIRST_MEANING, LAST_MEANING, l1_fields, l1_mistakes
from study.interface.l1_strengths import NAMES as L1
from study.interface.signature import canonical
from study.interface.values import Count, Iteration, NotNegative, Positive, choice, number

OWN_NAMES = ("code",)
"""Values of a cell besides the hyperparameters."""

# Cost of an update per pack, besides the cost per trial.
_STEP_US = 500.0

_SPARSITY = ("sparsity_start", "sparsity_end")

_Momentum = Annotated[float, Field(ge=0, lt=1), BeforeValidator(number)]


def _training_hyperparameter(type_: Any, default: Any, meaning: str, otherwise: str, **options: Any) -> Hyperparameter:
    return Hyperparameter(
        type=type_, default=default, meaning=meaning, otherwise=otherwise, is_method=True, is_searchable=True, **options
    )


def _protocol_hyperparameter(type_: Any, default: Any, meaning: str, otherwise: str) -> Hyperparameter:
    return Hyperparameter(type=type_, default=default, meaning=meaning, otherwise=otherwise, table="protocol")


TRAINING: Mapping[str, Hyperparameter] = {
    "optimizer": _training_hyperparameter(
        choice(("adam", "adamw", "sgd", "momentum", "rmsprop")),
        "adam",
        "`adam`, `adamw`, `sgd`, `momentum`, `rmsprop`",
        "`adam`",
    ),
    "learning_rate": _training_hyperparameter(Positive, 1e-3, "> 0", "1e-3"),
    "schedule": _training_hyperparameter(
        choice(("constant", "linear", "cosine")),
        "constant",
        "how the learning rate falls to 0 at the last iteration: `linear` or `cosine`; or `constant`",
        "`constant`",
    ),
    "warmup": _training_hyperparameter(
        Iteration, 0, "iterations at the start over which the learning rate grows from 0", "0"
    ),
    "momentum": _training_hyperparameter(_Momentum, 0.9, "in [0, 1), if the optimiser is `momentum`", "0.9"),
    "weight_decay": _training_hyperparameter(NotNegative, 0.01, ">= 0, if the optimiser is `adamw`", "0.01"),
    "clip_norm": _training_hyperparameter(Positive, None, "the largest norm of a trial's gradient, > 0", "no limit"),
    "sparsity_strength": _training_hyperparameter(
        NotNegative, None, "λ̂ of the regulariser of bounded weights, >= 0; 0 is off", "off", title="λ̂", none="off"
    ),
    "sparsity_start": _training_hyperparameter(
        Iteration, None, "iteration at which λ starts to grow", "given with λ̂", title="λ start"
    ),
    "sparsity_end": _training_hyperparameter(
        Iteration, None, "iteration at which λ reaches λ̂, > `sparsity_start`", "given with λ̂", title="λ end"
    ),
    "l1_strength": _training_hyperparameter(NotNegative, None, LAST_MEANING, "off", title="L1 strength", none="off"),
    "l1_first_strength": _training_hyperparameter(Positive, None, FIRST_MEANING, "β₁", title="first L1 strength"),
    "iterations": _protocol_hyperparameter(
        Iteration, REQUIRED, "the last iteration; updates are 0, 1, ..., `iterations`", "must be given"
    ),
    "evaluate_every": _protocol_hyperparameter(Count, 100, "iterations between evaluations", "100"),
    "best_step_window": _protocol_hyperparameter(
        Count, None, "the best step is sought among that many last evaluations", "all evaluations"
    ),
}
"""Training hyperparameters of all packed tasks. Without a window, the best step is sought among all evaluations."""

# Trials of a pack may differ in these.
_MEMBER_FIELDS = ("learning_rate", "schedule", "warmup")
# Hyperparameters of a single optimiser, and this optimiser.
_OPTIMIZER_OF = {"momentum": "momentum", "weight_decay": "adamw"}
_LENGTH = ("iterations", "evaluate_every")
_WARMUP = ("warmup", "iterations")
_PROTOCOL = tuple(name for name, declared in TRAINING.items() if declared.table == "protocol")


@dataclass(frozen=True, eq=False)
class PackedFamily(Family):
    """Family of one packed task and its models.

    Args:
        task: the task's import string or name.
        task_fields: hyperparameters that the task's class declares, by field.
        arguments: hyperparameters of each model builder's signature, by the model's import string or name.
        metrics: the task's metrics by name; the first one chooses the best step.
        code: identity of the source code in trial ids.
        aliases: import strings by the short names of plug-ins in the study file.
        revision: identity of the code of a stable task and its named models; empty for other tasks.
        data: digests by path in the study file, for each field that names data.
        trials_at_once: largest number of trials in a pack, if the user sets no pack size.
        update_us: estimated time of an update of one trial, in microseconds.
        remarks: sentences on the task's data, for readers of the results.

    Example:
        >>> fields = {"turns": Hyperparameter(type=int, default=2)}
        >>> arguments = {"lab:mlp": {}, "lab:wide": {"width": Hyperparameter(type=int, default=8)}}
        >>> family = PackedFamily("lab:Spirals", fields, arguments, {"test_loss": Metric()}, code="version:1")
        >>> family.why_without_effect("width", "lab:Spirals", "lab:mlp", {})
        'lab:mlp has no argument width'
        >>> values = family.canonical("lab:Spirals", "lab:wide", {"iterations": 1000})
        >>> values["turns"], values["width"], values["momentum"], values["best_step_window"]
        (2, 8, None, 11)
    """

    task: str
    task_fields: Mapping[str, Hyperparameter]
    arguments: Mapping[str, Mapping[str, Hyperparameter]]
    metrics: Mapping[str, Metric]
    code: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    revision: str = ""
    data: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    trials_at_once: int = MOST_IN_PACK
    update_us: float = UPDATE_US
    remarks: Sequence[str] = ()

    @property
    def own_code(self) -> str:
        """Identity of the code in trial ids."""
        return self.code

    @property
    def tasks(self) -> Sequence[str]:  # type: ignore[override]
        """The name of its task."""
        return (self.task,)

    @property
    def models(self) -> Sequence[str]:  # type: ignore[override]
        """The names of its models."""
        return tuple(self.arguments)

    @property
    def question_fields(self) -> Sequence[str]:  # type: ignore[override]
        """The fields of the task that don't belong to the method: all but `batch_size`."""
        return tuple(name for name, declared in self.task_fields.items() if not declared.is_method)

    @property
    def hyperparameters(self) -> Mapping[str, Hyperparameter]:  # type: ignore[override]
        """Hyperparameters of the task, of all models, and of training.

        Of an argument that several models have, this is the declaration of the last one.
        """
        model_arguments = {
            name: declared for arguments in self.arguments.values() for name, declared in arguments.items()
        }
        return {**self.task_fields, **model_arguments, **TRAINING}

    def _declarations_for(self, model: str) -> dict[str, Hyperparameter]:
        return {**self.task_fields, **self.arguments[model], **TRAINING}

    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the canonical values of a cell, with defaults, and ``code``.

        Arguments of other models, hyperparameters of other optimisers, and regularisers that are off are None. The
        number of evaluations is the default and the upper limit of `best_step_window`. Values of other names are
        ignored.

        Args:
            task: unused.
            model: an element of `models`.
            values: the values that are set, by hyperparameter.

        Raises:
            ValueError: if a value without a default is missing, a value has the wrong type or violates a limit, or a
                limit in the signature can't be applied to its type, such as ``Ge(0)`` to a list. None is a value of the
                wrong type unless the default is None or the type accepts it.
            KeyError: if there is no such model.
        """
        declared = self._declarations_for(model)
        filled: dict[str, Any] = dict.fromkeys(self.hyperparameters)
        for name, hyperparameter in declared.items():
            value = values.get(name)
            value = hyperparameter.default if value is None and name not in values else value
            if value is REQUIRED:
                raise ValueError(self._missing_message(name, model))
            is_open = value is None and hyperparameter.default is None
            filled[name] = None if is_open else canonical(hyperparameter, value)
        for name, optimizer in _OPTIMIZER_OF.items():
            if filled["optimizer"] != optimizer:
                filled[name] = None
        if not filled["sparsity_strength"]:
            filled |= dict.fromkeys(("sparsity_strength", *_SPARSITY))
        filled |= l1_fields(filled["l1_strength"], filled["l1_first_strength"])
        evaluations = filled["iterations"] // filled["evaluate_every"] + 1
        filled["best_step_window"] = min(filled["best_step_window"] or evaluations, evaluations)
        return filled | {"code": self._code_of(model)}

    def _code_of(self, model: str) -> str:
        """Return the code identity in a model's trial ids.

        It is the digest of the source; of a stable task its revision, with the digest if the model is an import string.
        """
        if not self.revision:
            return self.code
        return f"{self.revision};{self.code}" if ":" in model else self.revision

    @property
    def checks(self) -> Sequence[Check]:
        """Checks of values without a default, of iterations and warm-up, and of regularisers."""
        required = [
            name
            for name in self.hyperparameters
            if any(
                name in declared and declared[name].default is REQUIRED
                for declared in map(self._declarations_for, self.models)
            )
        ]
        ramp = Check(("sparsity_strength", *_SPARSITY), may_be_chosen=True)
        steps = Check(L1, may_be_chosen=True)
        return [*(Check((name,)) for name in required), Check(_LENGTH), Check(_WARMUP), ramp, steps]

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Iterator[Mistake]:
        """Yield the mistakes that one of `checks` finds in the values that are set; the messages name the keys.

        Raises:
            KeyError: if a value without a default is missing, and there is no such model; raised while iterating.
        """
        if check.names == _LENGTH:
            every = values.get("evaluate_every", TRAINING["evaluate_every"].default)
            if "iterations" in values and every > values["iterations"]:
                yield (
                    ("evaluate_every", "iterations"),
                    "evaluate_every <= iterations must hold, or a trial is evaluated only before its first update; "
                    f"but got evaluate_every {every} and iterations {values['iterations']}",
                )
        elif check.names == _WARMUP:
            if "iterations" in values and values.get("warmup", 0) > values["iterations"]:
                yield (
                    _WARMUP,
                    f"warmup <= iterations must hold, but got {values['warmup']} and {values['iterations']}",
                )
        elif "sparsity_strength" in check.names:
            yield from _ramp_mistakes(values)
        elif check.names == L1:
            yield from l1_mistakes(values.get("l1_strength"), values.get("l1_first_strength"))
        elif not values:
            (name,) = check.names
            declared = self._declarations_for(model).get(name)
            if declared is not None and declared.default is REQUIRED:
                yield (), self._missing_message(name, model)

    def _missing_message(self, name: str, model: str) -> str:
        if name in TRAINING:
            return f"{name} must be given, under {TRAINING[name].table or 'fixed, grid or zip'}"
        if name in self.task_fields:
            return f"{name} has no default in {self.task}, so it must be given, under task, fixed, grid or zip"
        return f"{name} has no default in {model}, so it must be given, under fixed, grid or zip"

    def why_without_effect(self, name: str, task: str, model: str, values: Mapping[str, Collection[Any]]) -> str | None:
        """Return the reason why a hyperparameter has no effect in any of the values of the grid; None if it has one.

        Raises:
            KeyError: if there is no such model.
        """
        if name not in self._declarations_for(model):
            return f"{model} has no argument {name}"
        optimizer = _OPTIMIZER_OF.get(name)
        if optimizer is not None and optimizer not in values.get("optimizer", ()):
            return f"optimizer must be {optimizer} for that"
        if name in _SPARSITY and not any(values.get("sparsity_strength", ())):
            return "sparsity_strength must be above 0 for that"
        if name == "l1_first_strength" and not any(values.get("l1_strength", ())):
            return "l1_strength must be above 0 for that"
        return None

    def is_chosen(self, name: str, values: Values) -> bool:
        """Return True if a hyperparameter has an effect, given the values that a search has chosen before it.

        False only if it belongs to another optimiser, or to a regulariser that is off. The model isn't considered.
        """
        if name in _SPARSITY:
            return bool(values.get("sparsity_strength"))
        if name == "l1_first_strength":
            return bool(values.get("l1_strength"))
        return name not in _OPTIMIZER_OF or bool(values.get("optimizer") == _OPTIMIZER_OF[name])

    @property
    def search_order(self) -> Sequence[str]:
        """Searchable hyperparameters of the task, the models and training, the optimiser before its dependents."""
        return [name for name, declared in self.hyperparameters.items() if declared.is_searchable]

    def shape(self, cell: Content) -> tuple[object, ...]:
        """Return the recipe and protocol; trials of a pack may differ in learning rate, schedule and warm-up only."""
        return (recipe_text(cell), *(cell.values[name] for name in _PROTOCOL))

    def cost_us(self, cells: Sequence[Content], draws: int) -> float:
        """Estimate the training time of a pack on one core in microseconds, by the task's `update_us`."""
        return (int(cells[0].values["iterations"]) + 1) * (_STEP_US + len(cells) * self.update_us)

    def most_in_pack(self, cell: Content, trials: int, slots: int) -> int:
        """Return `trials_at_once`, whatever the cell, the number of trials and the slots."""
        return self.trials_at_once

    def to_json(self) -> str:
        """Return the declarations as JSON, to read a stored study without its code.

        Raises:
            PydanticUserError: if pydantic can't make a JSON schema of a hyperparameter's type.
            TypeError: if a default isn't JSON data.
        """
        content = {
            "task": self.task,
            "code": self.code,
            "fields": {name: as_json(declared) for name, declared in self.task_fields.items()},
            "models": {
                model: {name: as_json(declared) for name, declared in arguments.items()}
                for model, arguments in self.arguments.items()
            },
            "metrics": {name: vars(metric) for name, metric in self.metrics.items()},
            "aliases": dict(self.aliases),
            "revision": self.revision,
            "data": {name: dict(digests) for name, digests in self.data.items()},
            "trials_at_once": self.trials_at_once,
            "update_us": self.update_us,
            "remarks": list(self.remarks),
        }
        return json.dumps(content, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> PackedFamily:
        """Return the family declared by the JSON text of `to_json`.

        Raises:
            ValueError: if the text isn't the declaration of a task and its models.
        """
        try:
            content = json.loads(text)
            return cls(
                content["task"],
                {name: task_field(name, from_json(declared)) for name, declared in content["fields"].items()},
                {
                    model: {name: from_json(declared) for name, declared in arguments.items()}
                    for model, arguments in content["models"].items()
                },
                {name: Metric(**fields) for name, fields in content["metrics"].items()},
                content["code"],
                content["aliases"],
                content.get("revision", ""),
                content.get("data", {}),
                content.get("trials_at_once", MOST_IN_PACK),
                content.get("update_us", UPDATE_US),
                tuple(content.get("remarks", ())),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"these aren't the declarations of a task and its models: {error!r}") from None


def _ramp_mistakes(values: Values) -> Iterator[Mistake]:
    """Yield a mistake if λ is above 0 and its start and end are missing or not in order."""
    if not values.get("sparsity_strength"):
        return
    start, end = (values.get(name) for name in _SPARSITY)
    if start is None or end is None:
        yield (
            ("sparsity_strength",),
            "the regulariser of bounded weights needs sparsity_start and sparsity_end, the iterations between which it "
            "grows",
        )
    elif not start < end:
        yield _SPARSITY, f"sparsity_start < sparsity_end must hold, but got {start} and {end}"


def task_field(name: str, declared: Hyperparameter) -> Hyperparameter:
    """Return the hyperparameter of a task's field, set in the table `task` of a study file.

    Fields belong to the question, so they aren't searched. `batch_size` is an exception: it belongs to the method.
    """
    is_batch = name == "batch_size"
    return replace(declared, table="task", is_searchable=is_batch, is_method=is_batch)


def recipe_text(cell: Content) -> str:
    """Return the recipe of a cell's trials as JSON: task, model, their values, optimiser, code.

    Learning rate, schedule, warm-up, the protocol (`iterations`, `evaluate_every`, `best_step_window`) and values of
    None are left out. Only trials with equal recipes can train together in one array program.

    Example:
        >>> from types import SimpleNamespace
        >>> values = {"width": 8, "learning_rate": 0.1, "iterations": 10, "momentum": None}
        >>> recipe_text(SimpleNamespace(task="lab:Spirals", model="lab:mlp", values=values))
        '{"model": "lab:mlp", "task": "lab:Spirals", "values": {"width": 8}}'
    """
    excluded = (*_MEMBER_FIELDS, *_PROTOCOL)
    values = {name: value for name, value in cell.values.items() if value is not None and name not in excluded}
    return json.dumps({"task": cell.task, "model": cell.model, "values": values}, sort_keys=True)

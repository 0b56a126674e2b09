"""The trials of a task and models of one's own, as a study knows them: fields, arguments, training, code."""

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
"""What a cell of one's own task has besides hyperparameters."""

# What an update costs a pack beside what its trials do.
_STEP_US = 500.0

_SPARSITY = ("sparsity_start", "sparsity_end")

_Momentum = Annotated[float, Field(ge=0, lt=1), BeforeValidator(number)]


def _of_training(type_: Any, default: Any, meaning: str, otherwise: str, **more: Any) -> Hyperparameter:
    return Hyperparameter(
        type=type_, default=default, meaning=meaning, otherwise=otherwise, is_method=True, is_searchable=True, **more
    )


def _of_protocol(type_: Any, default: Any, meaning: str, otherwise: str) -> Hyperparameter:
    return Hyperparameter(type=type_, default=default, meaning=meaning, otherwise=otherwise, table="protocol")


TRAINING: Mapping[str, Hyperparameter] = {
    "optimizer": _of_training(
        choice(("adam", "adamw", "sgd", "momentum", "rmsprop")),
        "adam",
        "`adam`, `adamw`, `sgd`, `momentum`, `rmsprop`",
        "`adam`",
    ),
    "learning_rate": _of_training(Positive, 1e-3, "> 0", "1e-3"),
    "schedule": _of_training(
        choice(("constant", "linear", "cosine")),
        "constant",
        "how the learning rate falls to 0 at the last iteration: `linear` or `cosine`; or `constant`",
        "`constant`",
    ),
    "warmup": _of_training(Iteration, 0, "iterations over which the learning rate grows from 0 at first", "0"),
    "momentum": _of_training(_Momentum, 0.9, "in [0, 1), if the optimiser is `momentum`", "0.9"),
    "weight_decay": _of_training(NotNegative, 0.01, ">= 0, if the optimiser is `adamw`", "0.01"),
    "clip_norm": _of_training(Positive, None, "the largest norm of a trial's gradient, > 0", "no limit"),
    "sparsity_strength": _of_training(
        NotNegative, None, "λ̂ of the regulariser of bounded weights, >= 0; 0 is off", "off", title="λ̂", none="off"
    ),
    "sparsity_start": _of_training(
        Iteration, None, "iteration at which λ starts to grow", "given with λ̂", title="λ start"
    ),
    "sparsity_end": _of_training(
        Iteration, None, "iteration at which λ reaches λ̂, > `sparsity_start`", "given with λ̂", title="λ end"
    ),
    "l1_strength": _of_training(NotNegative, None, LAST_MEANING, "off", title="L1 strength", none="off"),
    "l1_first_strength": _of_training(Positive, None, FIRST_MEANING, "β₁", title="first L1 strength"),
    "iterations": _of_protocol(
        Iteration, REQUIRED, "the last iteration; updates are 0, 1, ..., `iterations`", "must be given"
    ),
    "evaluate_every": _of_protocol(Count, 100, "iterations between evaluations", "100"),
    "best_step_window": _of_protocol(
        Count, None, "the best step is sought among that many last evaluations", "all evaluations"
    ),
}
"""What every task of one's own is trained by. Without a window, the best step is sought among all evaluations."""

# A pack's trials may differ in these.
_OF_MEMBER = ("learning_rate", "schedule", "warmup")
_ONLY_OF = {"momentum": "momentum", "weight_decay": "adamw"}
_LENGTH = ("iterations", "evaluate_every")
_WARMUP = ("warmup", "iterations")
_PROTOCOL = tuple(name for name, one in TRAINING.items() if one.table == "protocol")


@dataclass(frozen=True, eq=False)
class PackedFamily(Family):
    """The trials of one task of one's own, and of models for it.

    Args:
        task: the task's import string.
        task_fields: what the task's class declares.
        arguments: of each model, by its import string, what its builder's signature declares.
        metrics: what the task measures; the first one chooses the best step.
        code: what stands for the source code in the ids of trials.
        aliases: import strings by the names under which installed packages offer them, as the study file has them.
        revision: what stands for the code of a task that comes along, and of the models that it knows by name.
        data: of each field that names data, the digests by the paths that the study's file has.
        trials_at_once: the most trials of a pack, if its size isn't given.
        update_us: microseconds that an update of one trial takes, roughly.
        remarks: sentences on the task's data that readers of the results must know.

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
        """The identity of the code in the ids of trials."""
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
        """The fields of the task, but for the batch size."""
        return tuple(name for name, one in self.task_fields.items() if not one.is_method)

    @property
    def hyperparameters(self) -> Mapping[str, Hyperparameter]:  # type: ignore[override]
        """Those of the task, of any model, and of training."""
        of_models = {name: one for arguments in self.arguments.values() for name, one in arguments.items()}
        return {**self.task_fields, **of_models, **TRAINING}

    def _of_model(self, model: str) -> dict[str, Hyperparameter]:
        return {**self.task_fields, **self.arguments[model], **TRAINING}

    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the values of a cell; None for arguments of other models, and for what its optimiser doesn't have.

        Raises:
            ValueError: if a value without a default is missing, or one isn't of its type.
        """
        declared = self._of_model(model)
        filled: dict[str, Any] = dict.fromkeys(self.hyperparameters)
        for name, one in declared.items():
            value = values.get(name)
            value = one.default if value is None and name not in values else value
            if value is REQUIRED:
                raise ValueError(self._missing(name, model))
            is_open = value is None and one.default is None
            filled[name] = None if is_open else canonical(one, value)
        for name, optimizer in _ONLY_OF.items():
            if filled["optimizer"] != optimizer:
                filled[name] = None
        if not filled["sparsity_strength"]:
            filled |= dict.fromkeys(("sparsity_strength", *_SPARSITY))
        filled |= l1_fields(filled["l1_strength"], filled["l1_first_strength"])
        evaluations = filled["iterations"] // filled["evaluate_every"] + 1
        filled["best_step_window"] = min(filled["best_step_window"] or evaluations, evaluations)
        return filled | {"code": self._code_of(model)}

    def _code_of(self, model: str) -> str:
        """Return what stands for the code that a model's trials run: not that of other models."""
        if not self.revision:
            return self.code
        return f"{self.revision};{self.code}" if ":" in model else self.revision

    @property
    def checks(self) -> Sequence[Check]:
        """What `mistakes` checks: that what has no default is given, and lengths."""
        required = [
            name
            for name in self.hyperparameters
            if any(name in of and of[name].default is REQUIRED for of in map(self._of_model, self.models))
        ]
        ramp = Check(("sparsity_strength", *_SPARSITY), may_be_chosen=True)
        steps = Check(L1, may_be_chosen=True)
        return [*(Check((name,)) for name in required), Check(_LENGTH), Check(_WARMUP), ramp, steps]

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Iterator[Mistake]:
        """Yield what a check finds wrong with some values."""
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
            declared = self._of_model(model).get(name)
            if declared is not None and declared.default is REQUIRED:
                yield (), self._missing(name, model)

    def _missing(self, name: str, model: str) -> str:
        if name in TRAINING:
            return f"{name} must be given, under {TRAINING[name].table or 'fixed, grid or zip'}"
        if name in self.task_fields:
            return f"{name} has no default in {self.task}, so it must be given, under task, fixed, grid or zip"
        return f"{name} has no default in {model}, so it must be given, under fixed, grid or zip"

    def why_without_effect(self, name: str, task: str, model: str, values: Mapping[str, Collection[Any]]) -> str | None:
        """Return why a hyperparameter has no effect, or None if it has one."""
        if name not in self._of_model(model):
            return f"{model} has no argument {name}"
        optimizer = _ONLY_OF.get(name)
        if optimizer is not None and optimizer not in values.get("optimizer", ()):
            return f"optimizer must be {optimizer} for that"
        if name in _SPARSITY and not any(values.get("sparsity_strength", ())):
            return "sparsity_strength must be above 0 for that"
        if name == "l1_first_strength" and not any(values.get("l1_strength", ())):
            return "l1_strength must be above 0 for that"
        return None

    def is_chosen(self, name: str, values: Values) -> bool:
        """Tell whether a hyperparameter has an effect, given the values that a search has chosen so far."""
        if name in _SPARSITY:
            return bool(values.get("sparsity_strength"))
        if name == "l1_first_strength":
            return bool(values.get("l1_strength"))
        return name not in _ONLY_OF or bool(values.get("optimizer") == _ONLY_OF[name])

    @property
    def search_order(self) -> Sequence[str]:
        """The hyperparameters that a search may choose, the optimiser before those that depend on it."""
        return [name for name, one in self.hyperparameters.items() if one.is_searchable]

    def shape(self, cell: Content) -> tuple[object, ...]:
        """Return what must be equal among the trials of a pack: all but the rate and its schedule."""
        return (recipe_text(cell), *(cell.values[name] for name in _PROTOCOL))

    def cost_us(self, cells: Sequence[Content], draws: int) -> float:
        """Estimate the microseconds that a pack takes on one core, from what the task says of an update."""
        return (int(cells[0].values["iterations"]) + 1) * (_STEP_US + len(cells) * self.update_us)

    def most_in_pack(self, cell: Content, trials: int, slots: int) -> int:
        """Return the most trials of a pack; more of them would train no faster."""
        return self.trials_at_once

    def to_json(self) -> str:
        """Write the declarations for the store, from which a study is read where its code isn't."""
        content = {
            "task": self.task,
            "code": self.code,
            "fields": {name: as_json(one) for name, one in self.task_fields.items()},
            "models": {model: {name: as_json(one) for name, one in of.items()} for model, of in self.arguments.items()},
            "metrics": {name: vars(one) for name, one in self.metrics.items()},
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
        """Read what `to_json` wrote.

        Raises:
            ValueError: if it isn't that.
        """
        try:
            content = json.loads(text)
            return cls(
                content["task"],
                {name: task_field(name, from_json(one)) for name, one in content["fields"].items()},
                {model: {name: from_json(one) for name, one in of.items()} for model, of in content["models"].items()},
                {name: Metric(**one) for name, one in content["metrics"].items()},
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
    """Return a field of a task as a hyperparameter, which a study file sets in its table `task`.

    The fields say what is asked, and so aren't searched, but for the size of a batch, which says how it is trained.
    """
    is_batch = name == "batch_size"
    return replace(declared, table="task", is_searchable=is_batch, is_method=is_batch)


def recipe_text(cell: Content) -> str:
    """Write what trials must have in common to be one array program: task, model, their values, optimiser, code.

    Example:
        >>> from types import SimpleNamespace
        >>> values = {"width": 8, "learning_rate": 0.1, "iterations": 10, "momentum": None}
        >>> recipe_text(SimpleNamespace(task="lab:Spirals", model="lab:mlp", values=values))
        '{"model": "lab:mlp", "task": "lab:Spirals", "values": {"width": 8}}'
    """
    others = (*_OF_MEMBER, *_PROTOCOL)
    values = {name: value for name, value in cell.values.items() if value is not None and name not in others}
    return json.dumps({"task": cell.task, "model": cell.model, "values": values}, sort_keys=True)

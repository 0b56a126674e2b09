"""Where and how a study runs: the options of its commands, listed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from study.addresses import absolute, absolute_database
from study.errors import PATIENCE_S, InputError, nearest


def _option(default: Any, description: str, **rules: Any) -> Any:
    """Make a field that is an option of the command line, too.

    Args:
        default: of both.
        description: what the command's help says.
        rules: its ``least`` value, or its ``choices``; ``is_local`` if a job of a cluster isn't given it.
    """
    return field(default=default, metadata={"help": description, **rules})


@dataclass(frozen=True)
class Options:
    """Where and how a study runs; nothing here changes a result.

    Fields with a description are options of the command line: what its help says isn't said again here.

    Args:
        root: the store's folder, or its URL.
        tracking_uri: of MLflow; None not to publish.
        patience_s: seconds that the store may be away, or the study gone from it.
        ray_at_once: whether Ray starts at once, also for own code that may be done before it has started.
    """

    root: str | Path
    tracking_uri: str | None
    engine: str = _option("auto", "auto, or an engine's name.")
    device: str = _option("auto", "Where packs train.", choices=("auto", "cpu", "cuda"))
    pack_size: int | None = _option(None, "Trials in a pack. Default: chosen to fit.", least=1)
    workers: int | None = _option(
        None,
        "Workers to ask a cluster for; one that grows on demand grows. Default: what it has room for now.",
        least=1,
    )
    packs_per_gpu: int = _option(1, "Packs that share one GPU.", least=1)
    checkpoint_every_s: float = _option(60.0, "Seconds of training between checkpoints.", least=0)
    silent_after_s: float = _option(
        300.0, "A worker not heard of for so long is ended, and its packs go on elsewhere.", least=1
    )
    keep_going: bool = _option(False, "Go on where the first ten trials, or those of a cell, fail for one reason.")
    cpus: int | None = _option(None, "Cores of this machine to use. Default: all.", least=1, is_local=True)
    local: bool = _option(False, "Run packs one after another in this process, for debuggers.", is_local=True)
    address: str | None = _option(None, "A running Ray cluster. Default: start Ray on this machine.", is_local=True)
    patience_s: float = PATIENCE_S
    ray_at_once: bool = False

    def __post_init__(self) -> None:
        """Make the addresses absolute, since a study's code may change the working directory."""
        object.__setattr__(self, "root", absolute(self.root))
        if self.tracking_uri is not None:
            object.__setattr__(self, "tracking_uri", absolute_database(self.tracking_uri))


def options_of(root: str | Path, tracking_uri: str | None, given: Mapping[str, Any]) -> Options:
    """Make options of those that a program gives.

    Args:
        root: the store's folder, or its URL.
        tracking_uri: of MLflow; None not to publish.
        given: fields of `Options` by name.

    Raises:
        InputError: if there is no such option, or it can't have that value.

    Example:
        >>> options_of("studies", None, {"cpus": 2}).cpus
        2
        >>> options_of("studies", None, {"cpu": 2})
        Traceback (most recent call last):
        ...
        study.errors.InputError: there is no option 'cpu'; did you mean 'cpus'?
    """
    rules = {one.name: one.metadata for one in fields(Options) if one.metadata}
    for name, value in given.items():
        if name not in rules:
            raise InputError(f"there is no option {name!r}{nearest(name, rules)}")
        choices, least = rules[name].get("choices"), rules[name].get("least")
        if choices is not None and value not in choices:
            raise InputError(f"{name} must be one of {', '.join(choices)}, but got {value!r}")
        is_enough = value is None or (isinstance(value, int | float) and least is not None and value >= least)
        if least is not None and not is_enough:
            raise InputError(f"{name} must be at least {least}, but got {value!r}")
    return Options(root=root, tracking_uri=tracking_uri, **given)


TRAINING_OPTIONS = tuple(one.name for one in fields(Options) if one.metadata and "is_local" not in one.metadata)
"""The options that say how a study is trained, here or by a job of a cluster."""

"""Options of a run, listed once for all commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from study.addresses import absolute, absolute_database
from study.errors import PATIENCE_S, InputError, nearest


def _option(default: Any, description: str, **rules: Any) -> Any:
    """Define a field that is also an option of the command line.

    Args:
        default: default of both.
        description: help text.
        rules: the ``least`` value or the ``choices``; ``is_local`` for options that jobs of a cluster don't get.
    """
    return field(default=default, metadata={"help": description, **rules})


@dataclass(frozen=True)
class Options:
    """Options of a run; none of them changes a result.

    Fields with a help text are options of the command line, too, and are documented there.

    Args:
        root: the store's folder or URL.
        tracking_uri: MLflow's address; None to publish nothing.
        patience_s: seconds that the store may be away, or the study gone from it.
        ray_at_once: start Ray at once, even for own code that may end before Ray has started.
    """

    root: str | Path
    tracking_uri: str | None
    engine: str = _option("auto", "auto, or an engine's name.")
    device: str = _option("auto", "Where packs train.", choices=("auto", "cpu", "cuda"))
    pack_size: int | None = _option(
        None, "Trials that train together. Default: by cores and memory; results don't depend on it.", least=1
    )
    workers: int | None = _option(
        None, "Workers to request; a cluster that scales may add nodes. Default: as many as have room now.", least=1
    )
    packs_per_gpu: int = _option(1, "Packs that share one GPU.", least=1)
    checkpoint_every_s: float = _option(60.0, "Seconds of training between checkpoints.", least=0)
    silent_after_s: float = _option(
        300.0, "Seconds without a heartbeat after which a worker is killed and its packs are reassigned.", least=1
    )
    keep_going: bool = _option(
        False, "Go on even if the first ten trials of the run, or of a cell, all fail for the same reason."
    )
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
    """Make options from their values by name.

    Args:
        root: the store's folder or URL.
        tracking_uri: MLflow's address; None to publish nothing.
        given: values of options by name; only the fields of `Options` with a help text are options.

    Raises:
        InputError: if an option doesn't exist, has the wrong type, isn't one of its choices, or is below its least
            value.

    Example:
        >>> options_of("studies", None, {"cpus": 2}).cpus
        2
        >>> options_of("studies", None, {"cpu": 2})
        Traceback (most recent call last):
        ...
        study.errors.InputError: no such option: 'cpu'; did you mean 'cpus'?
    """
    from pydantic import TypeAdapter, ValidationError  # slow to import, and other commands use only `Options`

    rules = {option.name: option.metadata for option in fields(Options) if option.metadata}
    types = get_type_hints(Options)
    for name, value in given.items():
        if name not in rules:
            raise InputError(f"no such option: {name!r}{nearest(name, rules)}")
        try:
            TypeAdapter(types[name]).validate_python(value, strict=True)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise InputError(f"{name}: {reason[0].lower()}{reason[1:]}, but got {value!r}") from None
        choices, least = rules[name].get("choices"), rules[name].get("least")
        if choices is not None and value not in choices:
            raise InputError(f"{name} must be one of {', '.join(choices)}, but got {value!r}")
        if least is not None and value is not None and not value >= least:
            raise InputError(f"{name} must be at least {least}, but got {value!r}")
    return Options(root=root, tracking_uri=tracking_uri, **given)


TRAINING_OPTIONS = tuple(
    option.name for option in fields(Options) if option.metadata and "is_local" not in option.metadata
)
"""Options that apply to training on this machine and in a job of a cluster."""

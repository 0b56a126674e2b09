"""Addresses of a study's store and of MLflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from study.addresses import absolute, absolute_database, shown_path
from study.errors import InputError

STORE = "studies"
"""Default folder of the store."""

_DENIALS = ("none", "no", "false", "null", "disabled")


@dataclass(frozen=True)
class Where:
    """Addresses of a store and of MLflow, made absolute, so that they don't depend on the working folder.

    Args:
        store: the store's folder or URL.
        tracking_uri: MLflow's address; None for a database in the store, if that is a folder; ``off`` for none.

    Example:
        >>> Where("s3://bucket/studies").tracking is None, Where("studies", "off").tracking is None
        (True, True)
        >>> Where("studies", "none").tracking
        Traceback (most recent call last):
        ...
        study.errors.InputError: --tracking-uri must be an address, or 'off' for none, but got 'none'
    """

    store: str = STORE
    tracking_uri: str | None = None

    def __post_init__(self) -> None:
        """Make the addresses absolute."""
        object.__setattr__(self, "store", absolute(self.store))
        if self.tracking_uri is not None:
            object.__setattr__(self, "tracking_uri", absolute_database(self.tracking_uri))

    @property
    def shown_store(self) -> str:
        """The store's address, for output."""
        return self.store if "://" in self.store else shown_path(Path(self.store))

    @property
    def tracking(self) -> str | None:
        """MLflow's address; None if nothing is published.

        Raises:
            InputError: if the value is a word such as ``none`` instead of ``off``.
        """
        from study.tracking import default_uri

        return self.view("--tracking-uri", self.tracking_uri, default_uri)

    def view(self, option: str, value: str | None, default: Callable[[Path], str]) -> str | None:
        """Return the address of MLflow's or Optuna's data, from an option or by default.

        Args:
            option: the command-line option, for the message.
            value: the option's value: an address, ``off``, or None or an empty text for the default.
            default: returns the default address in the store's folder.

        Returns:
            The address; None if the value is ``off``, or if it is None or empty and the store is a URL.

        Raises:
            InputError: if the value is a word such as ``none`` instead of ``off``.
        """
        from study.store import is_url

        if value is not None and value.lower() in _DENIALS:
            raise InputError(f"{option} must be an address, or 'off' for none, but got {value!r}")
        if value == "off" or (not value and is_url(self.store)):
            return None
        return absolute_database(value) if value else default(Path(self.store).resolve())

    def needed_tracking(self, command: str) -> str:
        """Return MLflow's address for a command that needs one.

        Args:
            command: the command's name, for the message.

        Raises:
            InputError: if nothing is published to MLflow, or the value is a word such as ``none`` instead of ``off``.
        """
        uri = self.tracking
        if uri is None:
            reason = (
                "--tracking-uri is 'off'"
                if self.tracking_uri == "off"
                else f"the store at {self.shown_store} has no database"
            )
            raise InputError(f"{command} needs a tracking server, but {reason}: give --tracking-uri")
        return uri

"""Trials as plain Python files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from study.errors import InputError


@dataclass(frozen=True)
class TrialScript:
    """A trial as a plain Python file.

    Args:
        trial_id: the trial's id.
        text: the file's content.
    """

    trial_id: str
    text: str

    def write(self, file: str | Path | None = None) -> Path:
        """Write the file and return its path.

        Args:
            file: its path; None or empty for ``trial-ID.py`` in the working folder.

        Raises:
            InputError: if the file exists already or can't be written.
        """
        path = Path(file or f"trial-{self.trial_id}.py")
        try:
            with path.open("x", encoding="utf-8") as stream:
                stream.write(self.text)
        except FileExistsError:
            raise InputError(f"there is a file {path} already; choose another name, or remove it") from None
        except OSError as error:
            raise InputError(f"{path} can't be written: {error.strerror or error}") from error
        return path

    def __str__(self) -> str:
        return self.text

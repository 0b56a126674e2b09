"""The code that an engine is sent with: unpacked and opened once a process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from study.source import CodeFolder, check_distributions, code_cache, unpacked


@dataclass(frozen=True, kw_only=True)
class OwnCode:
    """The code of a study, as data that workers are sent.

    Args:
        archive: the files, as `study.source.SourceCode.archive` returns them; empty if all of it is installed.
        digest: the digest that the files in the archive must have.
        distributions: installed packages that must be there, as ``name==1.2``.
    """

    archive: bytes = field(repr=False)
    digest: str
    distributions: Sequence[str] = ()

    def folder(self) -> CodeFolder:
        """Return the one folder of the code in this process, since it holds the modules that were imported from it.

        Raises:
            InputError: if a package isn't installed here in its version.
        """
        check_distributions(self.distributions)
        path = unpacked(self.archive, self.digest, code_cache()) if self.archive else None
        return _folders.setdefault(path, CodeFolder(path))


_folders: dict[Path | None, CodeFolder] = {}

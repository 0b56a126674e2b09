"""The code that is sent with an engine, unpacked and opened once per process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from study.source import CodeFolder, check_distributions, code_cache, unpacked


@dataclass(frozen=True, kw_only=True)
class OwnCode:
    """The code of a study, as data for workers.

    Args:
        archive: the files, as returned by `study.source.SourceCode.archive`; empty if all of it is installed.
        digest: the digest that the archive's files must have.
        distributions: installed packages that are required, as ``name==1.2``.
    """

    archive: bytes = field(repr=False)
    digest: str
    distributions: Sequence[str] = ()

    def folder(self) -> CodeFolder:
        """Return this process's only folder of the code; it holds the modules imported from it.

        Raises:
            InputError: if a required package isn't installed in its version, the archive or its copy was changed, or
                the cache of code isn't private.
            OSError: if the copy can't be written.
        """
        check_distributions(self.distributions)
        path = unpacked(self.archive, self.digest, code_cache()) if self.archive else None
        return _folders.setdefault(path, CodeFolder(path))


_folders: dict[Path | None, CodeFolder] = {}

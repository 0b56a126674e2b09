"""Changes of own code since a study's results were made, and adoption of these results."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from study.errors import InputError, StoreError
from study.results.adoptions import Adoption, add_adoption, adoption_of, adoptions_of
from study.results.stored_code import CodeCopy, copies, read_copy
from study.source import SourceCode, parsed_files
from study.spec import Spec
from study.store import StudyStore
from study.words import count_of, join_and

_MOST_NAMES = 5


@dataclass(frozen=True)
class CodeChange:
    """A change of a study's code since some of its results were made.

    Args:
        earlier: identity of the code that made these results.
        trials: number of trials with a result of that code.
        names: the files and installed packages that changed.
        command: the command that adopts the results.
    """

    earlier: str
    trials: int
    names: Sequence[str]
    command: str

    @property
    def sentence(self) -> str:
        """The warning for the user."""
        names = join_and([*self.names[:_MOST_NAMES], *(["others"] if len(self.names) > _MOST_NAMES else [])])
        was, it = ("was", "it doesn't") if self.trials == 1 else ("were", "they don't")
        return (
            f"{names or 'the code'} changed since {count_of(self.trials, 'trial')} of this study {was} run, so {it} "
            f"count any more. `{self.command}` keeps the results if you know that they are the same"
        )


def code_change(spec: Spec, folder: StudyStore) -> CodeChange | None:
    """Return the change from the code of a study's results to its current code.

    Args:
        spec: the study, with its code.
        folder: its folder of the store.

    Returns:
        The change from the code stored last, of all code with more results than the current one, except code that
        `version` identified; None without such code, if the study has no own code or sets `version`, or if its code
        wasn't imported.

    Raises:
        InputError: if a newer package wrote one of the results.
        StoreError: if the results, copies of code or the log of adoptions can't be read, or results contradict each
            other.
    """
    own_code, code, revision = spec.family.own_code, spec.source_code, spec.family.revision
    if own_code is None or code is None or own_code.startswith("version:"):
        return None
    counts = {
        identity.removeprefix(f"{revision};"): count
        for identity, count in folder.trials_by_code().items()
        if identity != revision
    }
    own = counts.pop(own_code, 0)
    others = [identity for identity in counts if counts[identity] > own and not identity.startswith("version:")]
    copies_of = {identity: _copies_of(identity, folder) for identity in others}
    if not others:
        return None
    latest = max(others, key=lambda identity: max((copy.stored_at for copy in copies_of[identity]), default=0.0))
    names = _changed_names(latest, copies_of[latest], code, folder)
    return CodeChange(latest, counts[latest], names, _command(spec))


def change_sentences(spec: Spec, folder: StudyStore) -> list[str]:
    """Return the warning that a code change discards results; empty without such a change.

    Raises:
        InputError: as for `code_change`.
        StoreError: as for `code_change`.
    """
    change = code_change(spec, folder)
    return [] if change is None else [change.sentence]


def adopt_results(spec: Spec, folder: StudyStore) -> Adoption:
    """Declare the results of earlier code valid for a study's current code, and return the entry of the log.

    The caller must hold the study's lock.

    Raises:
        InputError: if the study has no own code, sets `version`, or has no results that a change of its code discards;
            or if they are adopted already, or a newer package wrote one of them.
        StoreError: as for `code_change`, or if the log of adoptions can't be written.
        StudyError: if `folder.check` fails.
    """
    code = _own_code(spec)
    held = adoption_of(folder, code.identity())
    if held is not None:
        raise InputError(f"study {spec.study!r} has already adopted these results. {held.sentence}")
    change = code_change(spec, folder)
    if change is None:
        raise InputError(
            f"study {spec.study!r} has no results that a change of its code discards, so there is nothing to adopt; "
            "changed comments, docstrings and formatting keep results valid"
        )
    entry = Adoption(
        datetime.now(UTC).isoformat(timespec="seconds"),
        _user(),
        code.identity(),
        change.earlier,
        code.digest,
        change.names,
        change.trials,
    )
    add_adoption(entry, folder)
    return entry


def revoke_adoption(spec: Spec, folder: StudyStore) -> Adoption:
    """Revoke and return the adoption for a study's current code. The caller must hold the study's lock.

    Raises:
        InputError: if the study has no own code or sets `version`, or if its current code has no adoption.
        StoreError: if the log of adoptions can't be read or written.
        StudyError: if `folder.check` fails.
    """
    code = _own_code(spec)
    held = adoption_of(folder, code.identity())
    if held is None:
        raise InputError(f"study {spec.study!r} has adopted no results for its code, so there is nothing to revoke")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    add_adoption(Adoption(now, _user(), code.identity(), None, code.digest), folder)
    return held


def _own_code(spec: Spec) -> SourceCode:
    """Return a study's own code; raise InputError if it has none or sets `version`."""
    if spec.source_code is None:
        raise InputError(f"study {spec.study!r} runs no code of your own, so it has no results of other code to adopt")
    version = getattr(spec, "version", None)
    if version is not None:
        raise InputError(
            f"study {spec.study!r} sets version: {version}, which stands for its code: a change of the code discards "
            "no results, so there is nothing to adopt"
        )
    return spec.source_code


def _copies_of(identity: str, folder: StudyStore) -> list[CodeCopy]:
    """List the copies of the code that an identity stands for, the earliest first."""
    files = identity.partition(";")[0]
    later = {entry.digest for entry in adoptions_of(folder, identity)}
    return [copy for copy in copies(folder) if copy.identity == files or copy.digest in later]


def _changed_names(earlier: str, stored: Sequence[CodeCopy], code: SourceCode, folder: StudyStore) -> list[str]:
    """List the files and packages that differ between code and earlier code; no files without a readable copy."""
    files, _, packages = earlier.partition(";")
    before: dict[str, bytes] = {}
    if stored:
        with suppress(StoreError):  # a damaged copy: its changed files can't be named
            before = parsed_files(read_copy(folder, stored[-1].digest))
    now = parsed_files(code.files)
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name)) if before else []
    versions = (packages if files.startswith(("sha256:", "parsed:")) else earlier).split(";")
    return [*names, *(package for package in code.distributions if package not in versions)]


def _command(spec: Spec) -> str:
    """Return the command that adopts the results: by the study's name in its folder, else by its file."""
    is_here = spec.source_folder is None or spec.source_folder.resolve() == Path.cwd()
    return shlex.join(["study", "adopt", spec.study if is_here or spec.source_file is None else str(spec.source_file)])


def _user() -> str:
    """Return ``user@machine``, with the user's number if it has no name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        name = f"user {os.getuid()}"
    return f"{name}@{socket.gethostname()}"

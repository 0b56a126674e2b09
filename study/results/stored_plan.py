"""The plan of a stored study, made of what the store has of it; nothing of its own code is imported."""

from __future__ import annotations

from study.errors import StoreError
from study.plan.plan import Plan, make_plan
from study.spec import Spec, parse_spec
from study.spec.function_tables import FunctionSpec
from study.store import StudyStore
from tasks.function_family import FunctionFamily

DECLARED = "declared.json"
"""What the training function of a study declared when it was started."""


def stored_plan(folder: StudyStore) -> Plan:
    """Plan a study as it was when it was started last.

    Raises:
        SpecError: if its file has mistakes.
        StoreError: if it can't be read.
    """
    content = folder.read_file(DECLARED)
    try:
        declared = None if content is None else FunctionFamily.from_json(content)
    except ValueError as error:
        raise StoreError(
            f"{folder.file_address(DECLARED)} can't be read: {error}; `study run` with the study's file writes it anew"
        ) from None
    return make_plan(parse_spec(folder.read_spec(), source=folder.spec_where, declared=declared))


def keep_code(spec: Spec, folder: StudyStore) -> None:
    """Store what a study of a training function declares, and a copy of its code, each version of it once."""
    if not isinstance(spec, FunctionSpec) or not isinstance(spec.family, FunctionFamily):
        return
    code = spec.source_code
    if code is not None and code.files and folder.read_file(name := f"code/{code.digest}.zip") is None:
        folder.write_file(name, code.archive)
    folder.write_file(DECLARED, spec.family.to_json().encode())

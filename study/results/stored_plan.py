"""Plan of a stored study, made without importing the study's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError, StoreError
from study.plan.plan import Plan, make_plan
from study.plugins.families import declared_family
from study.results.claim_looks import read_looks
from study.results.layouts import keep_layouts
from study.results.stored_code import DECLARED, keep_copy
from study.spec import Spec, parse_spec
from study.spec.packed_tables import PackedSpec
from study.store import StudyStore


def stored_plan(folder: StudyStore) -> Plan:
    """Plan a study from its stored file.

    Raises:
        SpecError: if the file has mistakes.
        InputError: if the file can't be planned (`make_plan`), or a family of tasks can't be used.
        ValueError: as for `make_plan`.
        StoreError: if the study can't be read.
    """
    content = folder.read_file(DECLARED)
    try:
        declared = None if content is None else declared_family(content)
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{folder.file_address(DECLARED)} can't be read: {error}; `study run` with the study's file writes it anew"
        ) from None
    plan = make_plan(parse_spec(folder.read_spec(), source=folder.spec_where, declared=declared))
    return replace(plan, earlier_looks=read_looks(folder)) if plan.spec.claims else plan


def with_looks(plan: Plan, folder: StudyStore) -> Plan:
    """Return a plan with the earlier looks at its claims, made before the number of seeds changed.

    The plan is unchanged if it has no claims, or the study isn't stored yet.

    Args:
        plan: the plan of the study's current file.
        folder: the study's part of the store, with the file of the last run.

    Raises:
        InputError: if a newer package wrote these results.
        StoreError: if the stored looks, or the results that an earlier file planned, can't be read, or these contradict
            each other.
    """
    if not plan.spec.claims or not folder.exists:
        return plan
    looks = read_looks(folder)
    try:
        stored = None if folder.read_spec() == plan.spec.text else stored_plan(folder)
    except (InputError, StoreError):  # the study's file replaces it
        stored = None
    if stored is not None and stored.spec.claims:
        # imported late: statistics are slow to import, and a list of studies doesn't need them
        from study.plan.claims import final_looks
        from study.plan.until import extended
        from study.trials.table import TrialTable

        table = TrialTable(folder.judged_by(stored.criterion).read_results(), stored.metrics)
        final = final_looks(extended(stored, table), table)
        # Looks at a claim by the same seeds are one look.
        looks = tuple({(look.claim, tuple(look.seeds)): look for look in (*final, *looks)}.values())
    return replace(plan, earlier_looks=looks)


def keep_code(spec: Spec, folder: StudyStore, layouts: Mapping[str, str] | None = None) -> None:
    """Store the declarations of a study's code, a copy of the code, and proven layouts; no-op without own code.

    Args:
        spec: the study.
        folder: its folder of the store.
        layouts: proven layouts by recipe.

    Raises:
        StoreError: if the folder can't be read or written.
        StudyError: if `folder.check` fails.
    """
    own_code = spec.family.own_code
    if own_code is None:
        return
    code = spec.source_code
    if code is not None:
        keep_copy(code, own_code, folder)
    folder.write_file(DECLARED, spec.family.to_json().encode())
    if isinstance(spec, PackedSpec) and layouts:
        keep_layouts(layouts, spec, folder)


def rows_of_plan(table: pa.Table, plan: Plan) -> pa.Table:
    """Return the rows of planned trials; the store may have others, from earlier versions of the study's file.

    Args:
        table: has columns cell_id and seed.
        plan: the plan. It may have many more trials than the table, so its trials aren't listed.
    """
    if plan.own_seeds:
        seeds_of = {cell.id: set(plan.seeds(cell)) for cell in plan.cells}
        rows = zip(table["cell_id"].to_pylist(), table["seed"].to_pylist(), strict=True)
        return table.filter(pa.array([seed in seeds_of.get(cell, ()) for cell, seed in rows], pa.bool_()))
    cells = pa.array([cell.id for cell in plan.cells], pa.string())
    # Here every cell has the same seeds. Comparing the ids of a million trials would take a minute.
    planned = pc.and_(pc.is_in(table["cell_id"], value_set=cells), _are_in(table["seed"], plan.spec.first_seeds))
    return table if pc.all(planned).as_py() else table.filter(planned)


def _are_in(column: pa.ChunkedArray, seeds: Sequence[int]) -> pa.ChunkedArray:
    """Return a mask of the values that are among the seeds."""
    if isinstance(seeds, range):
        return pc.and_(pc.greater_equal(column, seeds.start), pc.less(column, seeds.stop))
    return pc.is_in(column, value_set=pa.array(list(seeds), pa.int64()))

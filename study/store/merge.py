"""Trials of the same study from another store, merged by their ids: nothing that is stored is replaced."""

from __future__ import annotations

import pyarrow.compute as pc

from study.errors import ConflictError
from study.store.deduplicate import one_a_trial
from study.store.study_store import StudyStore


def merge(study: StudyStore, other: StudyStore, source: str) -> int:
    """Copy the trials that a study lacks, with their learning curves and weights.

    A pack of which the study has no trial is copied as it is, failed trials included. Of other packs the missing
    trials are copied that have a result. Call it with the lock held. Interrupted and called again, it copies the rest.

    Args:
        study: the study's store.
        other: the other one, opened read-only; its files were checked.
        source: what the other one is called, in messages and in the provenance.

    Returns:
        How many trials have a result now that had none.

    Raises:
        ConflictError: if one engine and kind of device gave a trial two different results; nothing is copied.
    """
    before = study.read_results()
    try:
        one_a_trial([before, other.read_results()], [study.where, source])
    except ConflictError as error:
        raise ConflictError(f"nothing was imported: {error}") from error
    done, known = study.done(), before["trial_id"]
    for pack_id in sorted(other.pack_ids() - study.pack_ids()):
        ids = other.read_pack(pack_id, with_curves=False)[0]["trial_id"]
        if not pc.any(pc.is_in(ids, value_set=known)).as_py():
            for key, data in other.files_of(pack_id).items():
                study.write_file(key, data)
    study.adopt(source, other, other.done() - study.done())
    return len(study.done() - done)

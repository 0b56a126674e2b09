"""Import of trials of the same study from another store; stored results are never replaced."""

from __future__ import annotations

import pyarrow.compute as pc

from study.errors import ConflictError
from study.store.deduplicate import one_a_trial
from study.store.study_store import StudyStore


def merge(study: StudyStore, other: StudyStore, source: str) -> int:
    """Copy the trials that a study lacks, with their learning curves and weights.

    If the study has no trial of a pack, the pack is copied unchanged, with its failed trials, but without the files of
    its trials. Of other packs, only trials that were trained to their end are copied, with their files, if the study
    has no result or early stop of them. Call it with the lock held. If interrupted, call it again.

    Args:
        study: the study's store.
        other: the other study's store, opened read-only; its files were checked.
        source: name of the other store in messages and in the provenance.

    Returns:
        The number of trials that gained a result or an early stop.

    Raises:
        ConflictError: if one engine and kind of device gave a trial two different results; nothing is copied.
        InputError: if a newer package wrote one of the files, or a trial's file has a name that isn't valid on every
            system.
        StoreError: if a file can't be read or written.
        StudyError: if `study.check` fails.
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

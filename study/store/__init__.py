"""Results and checkpoints of packs, in a folder or an object store: the record of what is done.

    ROOT/<study>/spec.yaml
                 results/<pack>.parquet      one row a trial; its presence says that the pack is done
                 curves/<pack>.parquet       the same trials' whole learning curves
                 weights/<pack>.parquet      and their trained weights
                 checkpoints/<pack>.npz      a pack in mid-training
                 quarantine/                 files that failed their checks, each with the reason
                 report/  lock  attempt

A file appears whole or not at all, so a kill at any moment loses at most what wasn't written yet.
"""

from study.store.deduplicate import one_a_trial
from study.store.export import Export, unpack_export, write_export
from study.store.folder import StudyLock, is_url
from study.store.formats import SCHEMA_VERSION
from study.store.merge import merge
from study.store.store import Store, folder_at
from study.store.study_store import StudyStore

__all__ = [
    "SCHEMA_VERSION",
    "Export",
    "Store",
    "StudyLock",
    "StudyStore",
    "folder_at",
    "is_url",
    "merge",
    "one_a_trial",
    "unpack_export",
    "write_export",
]

"""Results and checkpoints of packs, in a folder or an object store: the record of completed work.

    ROOT/<study>/spec.yaml
                 results/<pack>.parquet      one row per trial; marks the pack as done
                 curves/<pack>.parquet       full learning curves of these trials
                 weights/<pack>.parquet      trained weights of these trials
                 checkpoints/<pack>.npz      state of a pack in mid-training
                 quarantine/                 files that failed a check, each with the reason
                 report/  lock  attempt

Files are written atomically, so a kill at any moment loses only unwritten data.
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

"""Resource limits of a trial in its own process."""

from __future__ import annotations

import os
from dataclasses import dataclass

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Resource limits of a trial's process.

    Args:
        cpus: threads of OpenMP, BLAS and torch; None for as many as this process may use.
        gpus: 0 to hide all GPUs; otherwise the process sees the same ones as this process.
        memory_gb: GiB of writable memory that it may allocate; None for no limit. macOS ignores it.
        time_limit_s: seconds from its start until it is killed; None for no limit.
    """

    cpus: int | None = None
    gpus: float | None = None
    memory_gb: float | None = None
    time_limit_s: float | None = None

    def environment(self) -> dict[str, str]:
        """Return this process's environment variables, changed for a trial.

        `cpus` limits threads, and `gpus` of 0 hides GPUs. Hashes of strings are the same in each process.
        """
        threads = {} if self.cpus is None else dict.fromkeys(_THREADS, str(self.cpus))
        gpus = {"CUDA_VISIBLE_DEVICES": ""} if self.gpus == 0 else {}
        return dict(os.environ) | {"PYTHONHASHSEED": "0"} | threads | gpus

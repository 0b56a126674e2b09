"""Limits of a trial in a process of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a trial's process.

    Args:
        cpus: threads of OpenMP, of BLAS and of torch; None for as many as this process may use.
        gpus: 0 hides them; otherwise it sees those that this process sees.
        memory_gb: GiB that it may allocate, of memory that it can write to; None for no limit. macOS has no such limit.
        time_limit_s: seconds after which it is killed, its start included; None for no limit.
    """

    cpus: int | None = None
    gpus: float | None = None
    memory_gb: float | None = None
    time_limit_s: float | None = None

    def environment(self) -> dict[str, str]:
        """Return the environment of the process: this one's, with threads, GPUs, and the same hashes of texts."""
        threads = {} if self.cpus is None else dict.fromkeys(_THREADS, str(self.cpus))
        gpus = {"CUDA_VISIBLE_DEVICES": ""} if self.gpus == 0 else {}
        return dict(os.environ) | {"PYTHONHASHSEED": "0"} | threads | gpus

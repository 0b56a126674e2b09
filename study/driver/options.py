"""Where and how a study runs, as asked for; known before engines and Ray are imported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from study.store.retry import PATIENCE_S


@dataclass(frozen=True)
class Options:
    """Where and how a study runs; nothing here changes a result.

    Args:
        root: the store's folder, or its URL.
        tracking_uri: of MLflow; None not to publish.
        engine: name in `ENGINES`, or ``auto``.
        device: ``cpu``, ``cuda`` or ``auto``.
        local: run packs one after another in this process.
        address: of a running Ray cluster; None to start one here.
        workers: to ask that cluster for; None for as many as it has room for now.
        cpus: cores of this machine to use; None for all.
        packs_per_gpu: packs that share one GPU.
        pack_size: trials in a pack; None to choose.
        checkpoint_every_s: seconds of training between checkpoints.
        silent_after_s: seconds without a word after which a worker is given up.
        patience_s: seconds that the store may be away, or the study gone from it.
    """

    root: str | Path
    tracking_uri: str | None
    engine: str = "auto"
    device: str = "auto"
    local: bool = False
    address: str | None = None
    workers: int | None = None
    cpus: int | None = None
    packs_per_gpu: int = 1
    pack_size: int | None = None
    checkpoint_every_s: float = 60.0
    silent_after_s: float = 300.0
    patience_s: float = PATIENCE_S

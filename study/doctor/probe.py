"""Probes of the store, MLflow and GPUs from the present machine."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path

from study.errors import StudyError
from study.store import folder_at, is_url


def probe_store(address: str) -> str | None:
    """Write a small file where studies are stored, read it back, and remove it.

    Args:
        address: a folder, or the URL of one in an object store. A missing folder is made and removed again; its missing
            parents are made, too, and stay.

    Returns:
        The problem; None without one.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     probe_store(f"{folder}/studies"), list(Path(folder).iterdir())
        (None, [])
        >>> probe_store("/dev/null/studies")
        "can't write in /dev/null/studies: Not a directory"
    """
    if is_url(address):
        return _probe_objects(address)
    folder = Path(address)
    probe = folder / f".study-probe-{uuid.uuid4().hex}"
    try:
        is_there = folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            probe.write_text(probe.name)
            read = probe.read_text()
        finally:
            probe.unlink(missing_ok=True)
            if not is_there:
                folder.rmdir()
    except OSError as error:
        return f"can't write in {address}: {error.strerror or error}"
    return None if read == probe.name else f"content that is written in {address} differs when it is read"


def _probe_objects(address: str) -> str | None:
    name = f"study-probe-{uuid.uuid4().hex}"
    try:
        folder = folder_at(address)
        folder.write(name, name.encode())
        read = folder.read(name)
        folder.remove(name)
    except StudyError as error:
        return str(error)
    return None if read == name.encode() else f"content that is written in {address} differs when it is read"


def probe_tracking(uri: str | None) -> str | None:
    """Ask MLflow for an experiment, with this machine's credentials; no-op for None or a missing database file.

    Args:
        uri: MLflow's address; None if nothing is published.

    Returns:
        The problem; None without one, or if nothing was asked.
    """
    from study.tracking import check_reachable

    try:
        if uri is not None:
            check_reachable(uri)
    except StudyError as error:
        return str(error)
    return None


def gpus_seen() -> list[str]:
    """Return the names of the GPUs that torch can use; empty without any."""
    import torch

    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def free_bytes() -> int:
    """Return the free bytes in the folder for temporary files.

    Raises:
        OSError: if there is no such folder.
    """
    return shutil.disk_usage(tempfile.gettempdir()).free

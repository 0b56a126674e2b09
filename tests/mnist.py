"""A minimal folder of IDX files with random images, so that no test needs MNIST."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from study.source.source_data import DATA_FOLDER
from tasks.shared.images import IDX_FILES

SIZES = {"train": 1200, "t10k": 1000}


def idx(array: npt.NDArray[np.uint8]) -> bytes:
    """Return the bytes of an IDX file with an array."""
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_images(folder: Path) -> Path:
    """Write the four files, always with the same content."""
    folder.mkdir(parents=True)
    generator = np.random.Generator(np.random.PCG64(0))
    for name in IDX_FILES:
        size = SIZES[name.partition("-")[0]]
        shape, below = ((size, 28, 28), 256) if "images" in name else ((size,), 10)
        (folder / name).write_bytes(idx(generator.integers(0, below, shape, dtype=np.uint8)))
    return folder


@pytest.fixture(scope="session")
def mnist_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the folder ``mnist`` once."""
    return write_images(tmp_path_factory.mktemp("data") / "mnist")


@pytest.fixture
def mnist(mnist_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder ``mnist``, where study files look for it."""
    monkeypatch.setenv(DATA_FOLDER, str(mnist_folder.parent))
    return mnist_folder

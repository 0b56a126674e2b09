"""Labelled images of handwritten digits: scikit-learn's, and IDX files such as MNIST's."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.interface.data import DataFile, data_path
from study.stream.device import on_device

IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
"""Names of the files in a folder of images."""

ImageData = Annotated[
    str,
    DataFile(
        files=IDX_FILES, known=("digits",), where="those of MNIST are at https://ossci-datasets.s3.amazonaws.com/mnist/"
    ),
]
"""Type of a task's field for images: ``digits``, or a folder of IDX files."""

_UNSIGNED_BYTES = 8
_VALIDATION_SHARE = 12  # the last 5,000 of MNIST's 60,000 training images
_DIGITS_PARTS = (1200, 1400)
_DIGITS_LARGEST = 16.0
_IDX_SIZE = (28, 28)
_MNIST_MEAN, _MNIST_SD = 0.1307, 0.3081


@dataclass(frozen=True)
class Images:
    """Images of one part of a data set.

    Args:
        pixels: standardised, float32 [images, height, width].
        labels: digits, int64 [images].
    """

    pixels: Tensor
    labels: Tensor

    def on_device(self) -> Images:
        """Return the images on the current device, see `study.stream.device`."""
        return Images(on_device(self.pixels), on_device(self.labels))


@cache
def digits() -> dict[str, Images]:
    """Load scikit-learn's 1,797 digits of 8 x 8, in the parts ``train``, ``validation`` and ``test``.

    In the order of the file, 1,200 are for training, 200 for validation and 397 for the test. Pixels are standardised
    by the mean and the standard deviation of the training images.

    Source: Alpaydin & Kaynak, "Optical recognition of handwritten digits", UCI machine learning repository, 1998.

    Example:
        >>> {part: len(images.labels) for part, images in digits().items()}
        {'train': 1200, 'validation': 200, 'test': 397}
    """
    from sklearn.datasets import load_digits  # imported here, since it takes a second

    loaded = load_digits()
    pixels, labels = loaded.images / _DIGITS_LARGEST, loaded.target
    train = pixels[: _DIGITS_PARTS[0]]
    pixels = (pixels - train.mean()) / train.std()
    parts = zip(np.split(pixels, _DIGITS_PARTS), np.split(labels, _DIGITS_PARTS), strict=True)
    return {name: _images(*part) for name, part in zip(("train", "validation", "test"), parts, strict=True)}


@cache
def images_of(data: str) -> dict[str, Images]:
    """Load the images named in a task's field, in the parts ``train``, ``validation`` and ``test``.

    Args:
        data: ``digits``, or the digest of a folder of IDX files.

    Raises:
        ValueError: if this process has no data with this digest, or as for `idx_images`.
        OSError: if a file can't be read.
    """
    return digits() if data == "digits" else idx_images(data_path(data))


def idx_images(folder: Path) -> dict[str, Images]:
    """Load a folder of IDX files, in the parts ``train``, ``validation`` and ``test``.

    The last twelfth of the training images, rounded down, is for validation: 5,000 images of MNIST. Pixels are
    standardised by MNIST's mean, .1307, and standard deviation, .3081.

    Source: LeCun et al., "Gradient-based learning applied to document recognition", 1998, for MNIST and the format.

    Args:
        folder: folder with the four files of `IDX_FILES`.

    Raises:
        ValueError: if a file is partial or damaged, images and labels differ in number, images aren't of 28 x 28, or
            a label isn't a digit.
        OSError: if a file can't be read.
    """
    train_pixels, train_labels, test_pixels, test_labels = (
        read_idx(folder / name, dimensions=3 if "images" in name else 1) for name in IDX_FILES
    )
    for pixels, labels, prefix in ((train_pixels, train_labels, "train"), (test_pixels, test_labels, "t10k")):
        if pixels.shape[1:] != _IDX_SIZE:
            raise ValueError(
                f"images must have 28 x 28 pixels, but those of {prefix} have {' x '.join(map(str, pixels.shape[1:]))}"
            )
        if len(pixels) != len(labels):
            raise ValueError(
                f"there must be a label for each image, but {prefix} has {len(pixels):,} images "
                f"and {len(labels):,} labels"
            )
        if labels.max(initial=0) > 9:
            raise ValueError(f"labels must be digits, 0 ... 9, but {prefix} has {labels.max()}")
    trained = len(train_labels) - len(train_labels) // _VALIDATION_SHARE
    return {
        "train": _images(_standardised(train_pixels[:trained]), train_labels[:trained]),
        "validation": _images(_standardised(train_pixels[trained:]), train_labels[trained:]),
        "test": _images(_standardised(test_pixels), test_labels),
    }


def read_idx(path: Path, *, dimensions: int) -> npt.NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes.

    Args:
        path: path of the file.
        dimensions: required number of dimensions of the array.

    Returns:
        The array, uint8 and read-only, of the shape in the file's header.

    Raises:
        ValueError: if it isn't such a file, or has the wrong length.
        OSError: if it can't be read.
    """
    content = path.read_bytes()
    header = 4 + 4 * dimensions
    magic = bytes((0, 0, _UNSIGNED_BYTES, dimensions))
    if content[:4] != magic or len(content) < header:
        raise ValueError(
            f"{path.name} must be an IDX file of unsigned bytes with {dimensions} dimensions, which begins with the "
            f"bytes {magic.hex(' ')}, but begins with {content[:4].hex(' ') or 'nothing'}"
        )
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected, actual = math.prod(shape), len(content) - header
    if actual != expected:
        raise ValueError(
            f"{path.name} must have {expected:,} bytes after its header, for {' x '.join(map(str, shape))}, but has "
            f"{actual:,}: copy it again"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _standardised(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    return (pixels.astype(np.float32) / np.float32(255) - np.float32(_MNIST_MEAN)) / np.float32(_MNIST_SD)


def _images(pixels: npt.NDArray[np.floating], labels: npt.NDArray[np.integer]) -> Images:
    return Images(torch.from_numpy(pixels.astype(np.float32)), torch.from_numpy(labels.astype(np.int64)))

"""Images of handwritten digits with their labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_DIGITS_PARTS = (1200, 1400)
_DIGITS_LARGEST = 16.0


@dataclass(frozen=True)
class Images:
    """Images of one part of a data set.

    Args:
        pixels: standardised, float32 [images, height, width].
        labels: the digits, int64 [images].
    """

    pixels: Tensor
    labels: Tensor


@cache
def digits() -> dict[str, Images]:
    """Load the 1,797 digits of 8 x 8 that come with scikit-learn, in the parts ``train``, ``validation`` and ``test``.

    In the order of the file, 1,200 are trained, 200 are for validation, and 397 are tested. Pixels are standardised by
    the mean and the standard deviation of those that are trained.

    Source: Alpaydin & Kaynak, "Optical recognition of handwritten digits", UCI machine learning repository, 1998.

    Example:
        >>> {part: len(images.labels) for part, images in digits().items()}
        {'train': 1200, 'validation': 200, 'test': 397}
    """
    from sklearn.datasets import load_digits  # only here: it takes a second to import

    loaded = load_digits()
    pixels, labels = loaded.images / _DIGITS_LARGEST, loaded.target
    train = pixels[: _DIGITS_PARTS[0]]
    pixels = (pixels - train.mean()) / train.std()
    parts = zip(np.split(pixels, _DIGITS_PARTS), np.split(labels, _DIGITS_PARTS), strict=True)
    return {name: _images(*part) for name, part in zip(("train", "validation", "test"), parts, strict=True)}


def _images(pixels: npt.NDArray[np.float64], labels: npt.NDArray[np.integer]) -> Images:
    return Images(torch.from_numpy(pixels.astype(np.float32)), torch.from_numpy(labels.astype(np.int64)))

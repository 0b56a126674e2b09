"""IDX files: exact reading, and one-line refusals of invalid files."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tasks.sequential.task import ConvolutionalNetwork, SequenceOfImages, reference_network
from tasks.shared.images import IDX_FILES, idx_images, read_idx
from tests.mnist import SIZES, idx, mnist_folder

__all__ = ["mnist_folder"]


@pytest.fixture
def folder(mnist_folder: Path, tmp_path: Path) -> Path:
    """Return a copy of the folder of images that a test may damage."""
    return Path(shutil.copytree(mnist_folder, tmp_path / "copy"))


def test_parts_and_pixels_are_those_of_the_files(mnist_folder: Path):
    """The last twelfth of the training images is for validation; pixels are standardised as MNIST's are."""
    parts = idx_images(mnist_folder)
    assert {name: len(part.labels) for name, part in parts.items()} == {"train": 1100, "validation": 100, "test": 1000}
    images = read_idx(mnist_folder / "train-images-idx3-ubyte", dimensions=3)
    labels = read_idx(mnist_folder / "train-labels-idx1-ubyte", dimensions=1)
    assert images.shape == (SIZES["train"], 28, 28)
    pixels = torch.cat([parts["train"].pixels, parts["validation"].pixels])
    np.testing.assert_allclose(pixels.numpy(), (images / 255 - 0.1307) / 0.3081, rtol=1e-6, atol=1e-6)
    assert torch.cat([parts["train"].labels, parts["validation"].labels]).tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-7], "must have 940,800 bytes after its header, for 1200 x 28 x 28, but has 940,793"),
        (lambda content: content + b"\0", "but has 940,801: copy it again"),
        (lambda content: content[:9], "with 3 dimensions, which begins with the bytes 00 00 08 03"),
        (lambda _: b"<html>", "but begins with 3c 68 74 6d"),
        (lambda _: b"", "but begins with nothing"),
        (lambda content: content[:3] + b"\1" + content[4:], "but begins with 00 00 08 01"),
        (
            lambda _: idx(np.zeros((1200, 27, 28), np.uint8)),
            "must have 28 x 28 pixels, but those of train have 27 x 28",
        ),
        (lambda _: idx(np.zeros((7, 28, 28), np.uint8)), "train has 7 images and 1,200 labels"),
        (lambda _: bytes((0, 0, 8, 3)) + struct.pack(">3I", 2**31, 2**31, 2**31), "has 0: copy it again"),
    ],
)
def test_damaged_images_are_refused(folder: Path, damage, message: str):
    """A damaged file is refused with its name, the rule, and its content."""
    path = folder / IDX_FILES[0]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        idx_images(folder)
    assert "\n" not in str(caught.value)


def test_labels_above_9_are_refused(folder: Path):
    """Labels above 9, such as those of letters, are refused."""
    (folder / IDX_FILES[3]).write_bytes(idx(np.full(SIZES["t10k"], 12, np.uint8)))
    with pytest.raises(ValueError, match=r"labels must be digits, 0 ... 9, but t10k has 12"):
        idx_images(folder)


def test_the_convolutional_network_is_the_published_one():
    """Torch's own modules with the same layers give the same outputs, and weights begin within 1 / sqrt(fan_in)."""
    network = ConvolutionalNetwork()
    first, second = nn.Sequential(network.first, nn.ReLU(), nn.MaxPool2d(2)), nn.Sequential(network.second, nn.ReLU())
    plain = nn.Sequential(
        nn.Unflatten(0, (-1, 1)),
        first,
        second,
        nn.MaxPool2d(2),
        nn.Flatten(),
        network.hidden,
        nn.ReLU(),
        network.output,
    )
    images = torch.randn(3, 28, 28)
    torch.testing.assert_close(network(images), plain(images))
    for layer, fan_in in ((network.first, 25), (network.second, 500), (network.hidden, 800), (network.output, 500)):
        for parameter in (layer.weight, layer.bias):
            largest = parameter.abs().max() * fan_in**0.5
            assert (0.5 if parameter.numel() >= 20 else 0) < largest <= 1  # a small parameter may be near 0 by chance


def test_many_images_are_read_in_parts():
    """The output for an image doesn't depend on the number of images."""
    network = reference_network(ConvolutionalNetwork, "sum")
    assert isinstance(network, SequenceOfImages)
    images, windows = torch.randn(1003, 28, 28), torch.tensor([[0, 999], [1000, 1002]])
    with torch.no_grad():
        (outputs,), _ = network(images, windows)
        alone = network.images(images[[0, 999, 1000, 1002]]).reshape(2, 2).cumsum(-1)
    torch.testing.assert_close(outputs, alone)

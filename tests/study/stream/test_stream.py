"""The stream's words are Philox's, and all implementations give the same bits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from study.stream.stream import Purpose, inputs, philox, uniforms, words
from study.stream.stream_simd import fill_inputs

ROOT = Path(__file__).parents[3]

# From the known-answer file of the Random123 library, philox4x32-10: counter, key, words.
KNOWN_ANSWERS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]
RANGES = {"one": ((1.0, 1.0), 1.0), "two": ((-6.0, 2.0), 4.0), "inexact": ((1.1, 1.1), 0.1)}


def fast(seeds: list[int], low: tuple[float, float], width: float, features: int, rows: int, iteration: int):
    out = np.full((len(seeds), features, rows), np.nan, np.float32)
    lows = np.tile(np.float32(low), (len(seeds), 1))
    widths = np.full(len(seeds), width, np.float32)
    fill_inputs(out, np.array(seeds, np.uint64), lows, widths, iteration, Purpose.TRAIN)
    return out


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_known_answers(counter, key, expected):
    """The words equal those published by the generator's authors."""
    words_ = philox(tuple(map(torch.tensor, counter)), tuple(map(torch.tensor, key)))
    assert [int(word) for word in words_] == expected


@pytest.mark.parametrize("features", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize("range_", RANGES)
def test_compiled_equals_reference(features, range_):
    """The compiled and the portable stream agree bit by bit, for every range and odd sizes."""
    (low, width), seeds = RANGES[range_], [0, 1, 2**32, 2**63 - 1]
    drawn = fast(seeds, low, width, features, 37, 4_999_999)
    expected = inputs(
        torch.tensor(seeds),
        torch.tensor(low).expand(4, 2),
        torch.tensor(width).expand(4),
        features,
        37,
        4_999_999,
        Purpose.TRAIN,
    )
    assert np.array_equal(drawn.view(np.int32), expected.numpy().view(np.int32))


def test_a_number_depends_on_nothing_but_its_place():
    """More rows, features or trials change no existing number."""
    small = fast([5], (1.0, 1.0), 1.0, 8, 16, 3)
    large = fast([4, 5, 6], (1.0, 1.0), 1.0, 12, 64, 3)
    assert np.array_equal(small[0], large[1, :8, :16])


def test_streams_differ():
    """Another seed, iteration or purpose gives other words."""
    base = words(torch.tensor([1]), 4, 8, 0, Purpose.TRAIN)
    others = [
        words(torch.tensor([2]), 4, 8, 0, Purpose.TRAIN),
        words(torch.tensor([1 + 2**32]), 4, 8, 0, Purpose.TRAIN),
        words(torch.tensor([1]), 4, 8, 1, Purpose.TRAIN),
        words(torch.tensor([1]), 4, 8, 0, Purpose.TEST),
    ]
    assert not any(torch.equal(base, other) for other in others)


def test_inputs_are_uniform():
    """Over many iterations the inputs pass a Kolmogorov-Smirnov test, and interval choices a binomial one."""
    x = np.concatenate([fast([11], (-6.0, 2.0), 4.0, 100, 128, i).ravel() for i in range(20)])
    negative = x < 0
    assert stats.binomtest(int(negative.sum()), x.size).pvalue > 1e-4
    assert stats.kstest(np.where(negative, x + 8, x), stats.uniform(2, 4).cdf).pvalue > 1e-4


def test_uniforms_are_open():
    """Numbers for initial weights lie strictly between 0 and 1, and differ between parameters."""
    first, second = (uniforms(np.array([3], np.uint64), 1000, index, Purpose.INITIAL)[0] for index in (0, 1))
    assert 0 < first.min() < first.max() < 1
    assert not np.array_equal(first, second)


_DRAW = """
import numpy as np
from study.stream.stream import Purpose
from study.stream.stream_simd import fill_inputs
out = np.empty((1, 4, 16), np.float32)
one = np.ones((1, 2), np.float32)
fill_inputs(out, np.array([7], np.uint64), one, one[:, 0], 0, Purpose.TRAIN)
print(out.sum())
"""


def test_a_changed_constant_invalidates_compiled_code(tmp_path):
    """A compiled stream on disk isn't used after an edit of the file that defines Philox."""
    copy = tmp_path / "study"
    shutil.copytree(ROOT / "study", copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / "stream" / "stream.py"
    drawn = []
    for text in (
        path.read_text(encoding="utf-8"),
        path.read_text(encoding="utf-8").replace("ROUNDS = 10", "ROUNDS = 7"),
    ):
        path.write_text(text, encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", _DRAW]
        drawn.append(subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True).stdout)
    assert list((tmp_path / "cache").rglob("*draw*.nbc"))
    assert drawn[0] != drawn[1]

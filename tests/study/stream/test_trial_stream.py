"""A trial's numbers don't depend on its pack, and have their nominal distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from study.stream.stream import EVALUATION_SEED, Purpose, inputs
from study.stream.trial_stream import Dropout, Stream, evaluation_stream, noise, noise_from

SEEDS = [3, 2**40 + 1, 2**63 - 1, 0, 7]
DRAWS = {
    "uniform": lambda stream: stream.uniform(5, 3),
    "normal": lambda stream: stream.normal(4, 2, 3),
    "integers": lambda stream: stream.integers(10, 6),
    "permutation": lambda stream: stream.permutation(9),
    "sobol": lambda stream: stream.sobol(5, 3, 2),
    "scalar": lambda stream: stream.uniform(),
    "second call": lambda stream: (stream.uniform(2), stream.normal(33))[1],
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_a_trial_draws_the_same_numbers_in_a_pack(draw):
    """Inside vmap, each trial of a pack has the same bits as alone."""

    def of_pack(place):
        return draw(Stream(SEEDS, 4, Purpose.NOISE, trial=place))

    together = torch.func.vmap(of_pack)(torch.arange(len(SEEDS)))
    for row, seed in zip(together, SEEDS, strict=True):
        assert torch.equal(row, draw(Stream([seed], 4, Purpose.NOISE)))


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_a_larger_batch_only_adds_rows(name):
    """The first rows of a larger batch equal those of a smaller one."""
    small, large = (getattr(Stream([7], 1, Purpose.TRAIN), name)(rows, 3) for rows in (8, 50))
    assert torch.equal(small, large[:8])


def test_the_first_call_has_the_bits_of_the_stream():
    """An iteration's first call has the numbers of an engine's inputs."""
    drawn = Stream([7, 9], 5, Purpose.TRAIN, trial=torch.tensor(1)).uniform(16, 3)
    ones = torch.ones(1)
    expected = inputs(torch.tensor([9]), torch.zeros(1, 2), ones, 3, 16, 5, Purpose.TRAIN)[0].T
    assert torch.equal(drawn, expected)


def test_streams_differ():
    """Another seed, iteration, purpose or call gives other numbers."""
    base = Stream([7], 0, Purpose.TRAIN)
    numbers = [base.uniform(4), base.uniform(4)] + [
        stream.uniform(4)
        for stream in (
            Stream([8], 0, Purpose.TRAIN),
            Stream([7], 1, Purpose.TRAIN),
            Stream([7], 0, Purpose.NOISE),
            evaluation_stream(Purpose.TRAIN),
        )
    ]
    assert len({tuple(number.tolist()) for number in numbers}) == len(numbers)
    assert torch.equal(numbers[-1], Stream([EVALUATION_SEED], 0, Purpose.TRAIN).uniform(4))


def test_distributions():
    """100,000 numbers are compatible with their nominal distribution."""
    rows = 100_000
    stream = Stream([1], 0, Purpose.TRAIN)
    uniform, normal, integers = stream.uniform(rows), stream.normal(rows), stream.integers(7, rows)
    assert stats.kstest(uniform.numpy(), "uniform").pvalue > 0.01
    assert stats.kstest(normal.numpy(), "norm").pvalue > 0.01
    assert stats.chisquare(np.bincount(integers.numpy(), minlength=7)).pvalue > 0.01
    assert stream.integers(2**32, 1000).max() < 2**32
    first = [tuple(Stream([seed], 0, Purpose.TRAIN).permutation(3).tolist()) for seed in range(3000)]
    assert stats.chisquare(np.unique(first, axis=0, return_counts=True)[1]).pvalue > 0.01
    assert len(set(first)) == 6


def test_sobol_points_fill_the_cube_evenly():
    """In every iteration, each coordinate of 128 aligned points has one point in each of 128 equal intervals."""
    for seed, iteration in ((1, 0), (2, 0), (2, 7), (3, 100_000)):
        points = Stream([seed], iteration, Purpose.TRAIN).sobol(128, 100)
        assert points.dtype == torch.float32
        assert (torch.sort((points * 128).long(), 0).values == torch.arange(128)[:, None]).all()
    pairs = (Stream([2], 3, Purpose.TRAIN).sobol(256, 2) * 16).long()
    assert len({tuple(pair) for pair in pairs.tolist()}) == 256  # one point in each square of the first two coordinates


def test_a_seed_moves_sobol_points_by_one_shift():
    """Iterations continue one sequence; two seeds, or two calls, differ by the same shift in all iterations."""

    def whole(seed: int, iteration: int, purpose: Purpose = Purpose.TRAIN, calls: int = 1) -> torch.Tensor:
        stream = Stream([seed], iteration, purpose)
        return [(stream.sobol(8, 3) * 2**24).int() for _ in range(calls)][-1]

    shift = whole(1, 0) ^ whole(2, 0)
    assert (shift == shift[0]).all()
    assert len(set(shift[0].tolist())) == 3
    assert torch.equal(whole(1, 9) ^ whole(2, 9), shift)
    long = (Stream([1], 0, Purpose.TRAIN).sobol(40, 3) * 2**24).int()
    assert torch.equal(torch.cat([whole(1, iteration) for iteration in range(5)]), long)
    others = (whole(1, 0, Purpose.NOISE), whole(1, 0, calls=2))
    assert all((other ^ whole(1, 0) != 0).all() for other in others)


def test_refused_draws():
    """An empty range and a negative size are refused with a message."""
    with pytest.raises(ValueError, match=r"1 <= high <= 2\*\*32 must hold, but got 0"):
        Stream([1], 0, Purpose.TRAIN).integers(0, 3)
    with pytest.raises(ValueError, match=r"every size of a shape must be 0 or more, but got \(2, -1\)"):
        Stream([1], 0, Purpose.TRAIN).uniform(2, -1)
    with pytest.raises(ValueError, match=r"start \+ points <= 2\*\*30 must hold, but got start 1,073,741,824 and 256"):
        Stream([1], 2**22, Purpose.TRAIN).sobol(256, 3)


def test_dropout():
    """Dropout drops a share p and keeps the mean; it draws from the active stream, or else torch's generator."""
    layer, x = Dropout(0.25), torch.ones(100_000)
    with noise_from(Stream([1], 0, Purpose.NOISE)):
        y = layer(x)
        assert not torch.equal(layer(x), y)  # each call draws other numbers
    assert noise() is None
    assert set(y.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    assert abs((y == 0).float().mean() - 0.25) < 0.01
    with noise_from(Stream([1], 0, Purpose.NOISE)):
        assert torch.equal(layer(x), y)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        alone = layer(x)
        torch.manual_seed(0)
        assert torch.equal(alone, torch.nn.functional.dropout(x, 0.25))
    assert torch.equal(layer.eval()(x), x)
    with pytest.raises(ValueError, match="0 <= p < 1 must hold, but got 1"):
        Dropout(1)

"""Layout of a block: every row, weight and sum has one owner, and memory doesn't overlap."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.arithmetic import MODELS, SINGLE_MODULE, model_of
from tasks.arithmetic.engine.compiled.codes import CODES, NO_LAYER
from tasks.arithmetic.engine.gpu.engine import GpuEngine
from tasks.arithmetic.engine.gpu.layout import MOST_HIDDEN, MOST_INPUTS, MOST_TOGETHER, Layout, new_layout, refusal
from tasks.arithmetic.engine.gpu.shape import Shape
from tasks.arithmetic.models import SINGLE_LAYERS
from tests.study.builders import small_pack

_MODELS = [m for m in MODELS.values() if m.first in CODES and m.second in CODES]

_SIZES = st.integers(1, MOST_INPUTS), st.integers(1, MOST_HIDDEN), st.integers(1, 300), st.integers(1, 4)
_TWO_LAYERS = st.builds(
    lambda inputs, hidden, batch, subsets, model: Shape(
        inputs, hidden, batch, subsets, CODES[model.first], CODES[model.second], ()
    ),
    *_SIZES,
    st.sampled_from(_MODELS),
)
_ONE_LAYER = st.builds(
    lambda inputs, _, batch, subsets, unit: Shape(inputs, 1, batch, subsets, CODES[unit], NO_LAYER, ()),
    *_SIZES,
    st.sampled_from(sorted(CODES)),
)
SHAPES = st.one_of(_TWO_LAYERS, _ONE_LAYER).filter(lambda shape: refusal(shape) is None)


@given(SHAPES)
def test_each_piece_of_work_is_done_by_one_thread(shape):
    """Slices cover each feature of a row, groups each output, and owners each weight, exactly once."""
    layout = new_layout(shape)
    threads, quads = layout.threads, layout.quads
    drawn = [
        (t % layout.rows, quad)
        for t in range(threads)
        for quad in range(
            t // layout.rows * layout.slice_quads, min((t // layout.rows + 1) * layout.slice_quads, quads)
        )
    ]
    assert sorted(drawn) == list(itertools.product(range(layout.rows), range(quads)))
    assert layout.rows * layout.passes >= shape.batch > layout.rows * (layout.passes - 1)
    assert layout.groups * layout.parts * quads <= threads
    assert layout.groups * layout.outputs >= layout.log_slopes + shape.hidden * layout.logs
    assert layout.rounds * threads >= shape.hidden * layout.features > (layout.rounds - 1) * threads
    assert 2 * shape.hidden + 1 <= threads  # weights of the second layer, its bias, and the first layer's biases


@given(SHAPES)
def test_a_block_fits_and_its_parts_do_not_overlap(shape):
    """Offsets ascend in multiples of four numbers; one trial fits on each device of capability 7.0 or later."""
    layout = new_layout(shape)
    common = [layout.at_subsets, layout.at_subset_sums, layout.at_inputs]
    own = [
        layout.at_weights, layout.at_factors, layout.at_slopes, layout.at_partial, layout.at_products,
        layout.at_product_sums, layout.at_row_sums, layout.at_second, layout.at_second_bias, layout.at_first_bias,
        layout.own,
    ]  # fmt: skip
    for places in (common, own):
        assert places == sorted(places)
        assert all(place % 4 == 0 for place in places)
    assert 4 * layout.compact <= 48 * 1024
    assert 4 * layout.size(1) <= 64 * 1024
    assert layout.plane * layout.planes <= layout.input_room
    assert layout.parts * layout.groups * layout.outputs * layout.features == layout.part_sums
    assert layout.stride % 8 == 4
    assert layout.stride >= layout.features
    for trials in range(1, MOST_TOGETHER + 1):
        at = [layout.at_trial(trial, trials) for trial in range(trials)] + [layout.size(trials)]
        assert [after - before for before, after in itertools.pairwise(at)] == [layout.own] * trials
        assert at[0] >= layout.at_inputs + max(layout.input_room, trials * layout.part_sums)
        assert at[0] % 4 == 0


@given(SHAPES, st.integers(1, MOST_TOGETHER))
def test_sums_of_subsets_are_shared_out_among_the_trials_of_a_block(shape, trials):
    """Each warp's part of the sums belongs to the threads of one trial, as in the phase `subsets`."""
    warps = new_layout(shape).threads // 32
    of_trial = [warp * trials // warps for warp in range(warps)]
    assert set(of_trial) == set(range(trials))


def test_a_block_trains_as_many_trials_as_have_room():
    """A block has one to four trials, limited by shared memory and registers."""
    layout = new_layout(Shape(100, 10, 128, 2, CODES["NAU"], CODES["NMU"], ()))
    assert layout.most_together(227 * 1024, 512) == MOST_TOGETHER == 4
    assert layout.most_together(64 * 1024, 512) == 2
    assert layout.most_together(227 * 1024, 3 * layout.threads) == 3
    assert layout.most_together(1024, 1) == 1


@pytest.mark.parametrize("model", _MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("hidden", [2, 10])
def test_the_published_shapes_are_taken(model, hidden):
    """All models of the published study fit, with 100 inputs and up to ten hidden units."""
    shape = Shape(100, hidden, 128, 2, CODES[model.first], CODES[model.second], ())
    assert refusal(shape) is None


@pytest.mark.parametrize("model", SINGLE_LAYERS)
@pytest.mark.parametrize("inputs", [2, 10, 100])
def test_one_layer_is_taken(model, inputs):
    """Every unit of the single-module task that the fused engines support fits, with each number of inputs."""
    unit = model_of(SINGLE_MODULE, model).first
    if unit in CODES:
        assert refusal(Shape(inputs, 1, 128, 2, CODES[unit], NO_LAYER, ())) is None


@pytest.mark.parametrize(
    ("inputs", "hidden", "first", "words"),
    [(MOST_INPUTS + 1, 2, "NAU", "513 "), (4, MOST_HIDDEN + 1, "NAU", "64"), (400, 40, "NALU", "shared memory")],
)
def test_too_large_shapes_are_refused(inputs, hidden, first, words):
    """A shape that is too large is refused with the reason."""
    reason = refusal(Shape(inputs, hidden, 128, 2, CODES[first], CODES["NMU"], ()))
    assert reason is not None
    assert words.strip() in reason


def test_rows_per_pass_do_not_exceed_a_small_batch():
    """A small batch is processed in one pass of as many rows, rounded up to a power of two."""
    shape = Shape(4, 2, 13, 2, CODES["NAU"], CODES["NMU"], ())
    assert Layout(shape, 16).slices == 8
    assert new_layout(shape).rows == 16
    assert math.ceil(13 / new_layout(shape).rows) == 1


def test_memory_covers_the_trials_and_their_rows():
    """The estimate of memory grows by three numbers per parameter and by each trial's tables."""
    engine = GpuEngine(emulated=True)
    first, second = (engine.memory_mb(small_pack(*range(n), hidden_size=10)) for n in (1, 2))
    assert second - first == pytest.approx(4 * (3 * (4 * 10 + 10) + 64) / 2**20)

"""A state round-trips as arrays without pickle; unsupported values are refused."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from study.interface.function import state_arrays, state_of
from study.interface.function.messages import packed, unpacked

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
KEYS = st.text() | st.integers()
STATES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner), max_leaves=12
)


@given(STATES)
def test_states_round_trip(state):
    """Nested values keep their types in a round trip through bytes without pickle."""
    assert repr(state_of(unpacked(packed(state_arrays(state))))) == repr(state)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bool", "<U3", "S2"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_arrays_round_trip(dtype, shape):
    """Arrays and numpy scalars keep dtype, shape and bits."""
    array = np.ones(shape, dtype)
    for value in (array, array.ravel()[:1].astype(dtype)[0] if array.size else array):
        restored = state_of(state_arrays([value]))[0]
        assert (type(restored), restored.dtype, restored.shape) == (type(value), value.dtype, value.shape)
        assert restored.tobytes() == value.tobytes()


def test_a_network_and_its_optimiser_round_trip():
    """States of torch modules and optimisers are stored unchanged, including integer keys."""
    network = torch.nn.Linear(2, 2)
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.ones(2)).sum().backward()
    optimiser.step()
    restored = state_of(state_arrays({"network": network.state_dict(), "optimiser": optimiser.state_dict()}))
    other = torch.nn.Linear(2, 2)
    other.load_state_dict(restored["network"])
    torch.optim.Adam(other.parameters()).load_state_dict(restored["optimiser"])
    assert all(map(torch.equal, other.parameters(), network.parameters()))
    assert torch.equal(restored["optimiser"]["state"][0]["exp_avg"], optimiser.state_dict()["state"][0]["exp_avg"])


def test_states_of_generators_round_trip():
    """A function can store the states of its own generators."""
    rng, own = np.random.default_rng(1), random.Random(1)
    state = state_of(state_arrays({"rng": rng.bit_generator.state, "own": own.getstate()}))
    other, another = np.random.default_rng(2), random.Random(2)
    other.bit_generator.state = state["rng"]
    another.setstate(state["own"])
    assert (other.random(), another.random()) == (rng.random(), own.random())


def test_a_state_is_a_copy():
    """Later changes in place don't affect the copy."""
    weights = {"numpy": np.zeros(2), "torch": torch.zeros(2)}
    arrays = state_arrays(weights)
    for array in weights.values():
        array += 1
    assert all(float(array.sum()) == 0 for array in state_of(arrays).values())


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": [1, object()]}, r"state\['a'\]\[1\] is of type object, but a state can hold only numbers"),
        ({"a": {(1, 2): 3}}, r"a key of state\['a'\] must be a text or a whole number, but is \(1, 2\)"),
        ({True: 1}, "a key of state must be a text or a whole number, but is True"),
        (np.array([object()]), "state is of type ndarray"),
        ({1, 2}, "state is of type set"),
        (torch.ones(2, dtype=torch.bfloat16), "state is a tensor that numpy can't hold"),
    ],
)
def test_values_that_need_pickle_are_refused(state, message):
    """A value that would need pickle is named with its place."""
    with pytest.raises(ValueError, match=message):
        state_arrays(state)


def test_arrays_that_need_pickle_are_not_read():
    """Bytes with an object array are refused, since reading it would run code."""
    buffer = io.BytesIO()
    np.savez(buffer, tree=np.array([object()]))
    with pytest.raises(ValueError, match="allow_pickle"):
        unpacked(buffer.getvalue())

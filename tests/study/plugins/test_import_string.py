"""Import strings: valid ones, and corrections of invalid ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.errors import InputError
from study.source import ImportString, is_import_string, parse_import_string

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}z", fullmatch=True)  # no keyword ends with a z


@given(st.lists(NAMES, min_size=1, max_size=4), NAMES)
def test_import_strings_round_trip(modules, name):
    """A dotted name, one colon and an object's name form an import string; it round-trips."""
    import_string = ImportString(".".join(modules), name)
    assert parse_import_string(str(import_string)) == import_string
    assert is_import_string(str(import_string))
    assert import_string.package == modules[0]


@pytest.mark.parametrize(
    "text",
    [
        "mylab/spirals.py:train", "./mylab/spirals.py:train", "mylab\\spirals.py:train", "mylab.spirals.py:train",
        "mylab.spirals:train()", "mylab.spirals::train", " mylab.spirals : train ", ".mylab.spirals:train",
    ],
)  # fmt: skip
def test_corrections_are_suggested(text):
    """A path, a call, a second colon, spaces and a leading dot are invalid, and the message gives the correction."""
    with pytest.raises(InputError, match=r"must be package\.module:object.*did you mean 'mylab\.spirals:train'"):
        parse_import_string(text)


@pytest.mark.parametrize(
    "text",
    ["", ":", "mylab:", ":train", "mylab.spirals", "a..b:c", "my-lab:train", "mylab.class:train", "mylab:a.b", "1a:b"],
)
def test_anything_else_is_refused(text):
    """Anything else is refused by a message that explains import strings."""
    with pytest.raises(InputError, match=r"must be package\.module:object"):
        parse_import_string(text)

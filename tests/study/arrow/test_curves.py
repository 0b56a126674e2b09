"""Tables of learning curves, with each metric in its own precision."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from study.arrow import EMPTY_CURVES, curves_table, metrics_of, table_curves, unified
from study.records import Curve


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    """Draw a curve of one or two metrics, in either precision."""
    length = draw(st.integers(0, 4))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    names = draw(st.lists(st.sampled_from(["loss", "accuracy", "iteration"]), min_size=1, max_size=2, unique=True))
    metrics = {name: draw(arrays.arrays(kind, length)) for name in names}
    return Curve(str(draw(st.integers(0, 9))), np.arange(length) * 10, metrics)


@given(st.lists(st.lists(curves(), max_size=3), min_size=1, max_size=3))
def test_tables_joined_are_their_curves(files: list[list[Curve]]) -> None:
    """Every curve comes back with its own metrics, bit for bit, even if others have more metrics or precision."""
    table = unified([curves_table(file_curves) for file_curves in files])
    expected = [curve for file_curves in files for curve in file_curves]
    back = table_curves(table)
    assert [curve.trial_id for curve in back] == [curve.trial_id for curve in expected]
    for curve, own in zip(back, expected, strict=True):
        assert curve.iteration.tolist() == own.iteration.tolist()
        assert set(curve.metrics) == set(own.metrics)
        for name, values in own.metrics.items():
            assert curve.metrics[name].astype(values.dtype).tobytes() == values.tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_column_has_the_precision_of_its_arrays(kind: type[np.floating]) -> None:
    """A column of 32-bit values is stored in 32 bits."""
    table = curves_table([Curve("a", np.arange(2), {"loss": np.zeros(2, kind)})])
    assert table.schema.field("loss").type == pa.list_(pa.from_numpy_dtype(kind))
    assert table_curves(table)[0].metrics["loss"].dtype == kind
    assert metrics_of(table) == ["loss"]
    assert unified([EMPTY_CURVES, table]).equals(table)

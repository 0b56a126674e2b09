"""Errors of exact weights near zero."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch

from benchmarks.near_zero import EXACT, SPACING, exact, floors, main, rows
from benchmarks.tables import RESULTS


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("exponents", [(-1,), (-1, 0), (1, -1), (1, 1, -1)])
def test_exact_units_are_exact_where_numbers_are_large(name: str, exponents: tuple[int, ...]) -> None:
    """Far from zero, each unit gives the product of powers up to rounding."""
    x = 1 + 4 * torch.rand(100, len(exponents), generator=torch.Generator().manual_seed(0))
    expected = (x.double() ** torch.tensor(exponents)).prod(-1)
    torch.testing.assert_close(exact(name, exponents)(x).squeeze(-1).double(), expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("power", [0, 4])
def test_rows_are_near_zero_and_not_zero(power: int) -> None:
    """Rows fill the range, without 0."""
    x = rows(power, 2)
    assert float(x.min()) > 0
    assert float(x.max()) == pytest.approx(10.0**-power, rel=1e-2)
    assert float(x.mean()) == pytest.approx(10.0**-power / 2, rel=0.05)


def test_the_stored_floors_are_computed_again(tmp_path: Path) -> None:
    """The stored table is reproduced up to the last bits of powers."""
    main(["--out", str(tmp_path / "floors.csv")])
    texts = [(folder / name).read_text() for folder, name in ((tmp_path, "floors.csv"), (RESULTS, "near_zero.csv"))]
    for now, stored in zip(*(csv.DictReader(text.splitlines()) for text in texts), strict=True):
        assert [now[name] for name in ("target", "power", "unit")] == [
            stored[name] for name in ("target", "power", "unit")
        ]
        assert float(now["floor"]) == pytest.approx(float(stored["floor"]), rel=0.2)


def test_the_epsilon_of_a_divisor_makes_the_floor() -> None:
    """The RealNPU's floor is far above the NRU's, by the effect of 2^-23 on the smallest divisors."""
    floor_of = {(row["target"], row["power"], row["unit"]): float(row["floor"]) for row in floors()}
    assert min(floor_of.values()) >= SPACING
    for power in range(5):
        a = rows(power, 1).double()
        added = (1 / (a + SPACING) - 1 / a).square().mean()
        assert floor_of["1/a from a", power, "RealNPU"] == pytest.approx(float(added), rel=0.05)
        assert floor_of["1/a from a", power, "NRU"] < 1e-6 * floor_of["1/a from a", power, "RealNPU"]
        assert floor_of["a/b", power, "NRU"] < 2 * SPACING

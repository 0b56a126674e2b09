"""The programs behind docs/theory.md run on a small size, give the same numbers again, and agree with the formulas."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import curvature, moments, tables
from units.variance import nac_reach

RESULTS = Path(tables.__file__).parent / "results"


def rows_in(file: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def stored_moments() -> list[dict[str, str]]:
    """Give the rows of equation 9 and 10 that the document shows."""
    return [row for row in rows_in(RESULTS / "moments.csv") if row["equation"] != "8"]


def test_moments_are_simulated_again_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case has a line for each mean and quantity; the same seed gives the same file, and another another."""
    monkeypatch.setattr(moments, "CASES", moments.CASES[::4])
    monkeypatch.setattr(moments, "MEANS", (0.0, 1.5))
    monkeypatch.setattr(moments, "plot", lambda rows, path: None)
    texts = []
    for number, seed in enumerate("778"):
        out = tmp_path / f"{number}.csv"
        moments.main(["--samples", "500", "--seed", seed, "--out", str(out)])
        texts.append(out.read_text(encoding="utf-8"))
    assert texts[0] == texts[1] != texts[2]
    rows = rows_in(tmp_path / "0.csv")
    assert len(rows) == len(moments.FANS) + len(moments.CASES) * 2 * 5
    assert json.loads((tmp_path / "0.json").read_text())["settings"] == {"samples": 500, "seed": 7}


def test_the_figure_of_moments_is_drawn(tmp_path: Path, stored_moments: list[dict[str, str]]) -> None:
    """The rows of the stored file are drawn, and the picture in the results is small enough for a page."""
    moments.plot(stored_moments, tmp_path / "moments.png")
    assert (tmp_path / "moments.png").stat().st_size > 10_000
    assert all(file.stat().st_size < 300_000 for file in RESULTS.glob("*.png"))


def test_what_is_exact_agrees_with_the_simulation(stored_moments: list[dict[str, str]]) -> None:
    """At m = 0 equation 10 is within five standard errors of what is stored, and for H = 2 its extension at any m.

    With ten inputs, away from 0, few samples make the variance, so that its standard error is itself uncertain.
    """
    for row in stored_moments:
        if row["unit"] == "NMU" and (row["hidden"] == "2" or row["input_mean"] == "0"):
            simulated, error, extended = (float(row[name]) for name in ("simulated", "standard_error", "extended"))
            assert abs(simulated - extended) < 5 * error, row


def test_few_inputs_near_0_make_the_variance_there(stored_moments: list[dict[str, str]]) -> None:
    """At m = 0 an integral over the input gives NAC• the stored mean, and several times the stored variance."""
    weight = moments.sigmoid_weights(np.random.default_rng(2), nac_reach(0.1), (1_000_000,))

    def power(exponent: np.ndarray) -> float:
        """Return the mean of (|z| + ε)^exponent over z uniform on [-1/2, 1/2] and over the weights."""
        ends = (0.5 + 1e-7) ** (exponent + 1) - 1e-7 ** (exponent + 1)
        return float((ends / (0.5 * (exponent + 1))).mean())

    case = {"weights": "tanh σ", "hidden": "2", "weight_variance": "0.1", "input_variance": "0.0833333"}
    stored = {
        row["quantity"]: float(row["simulated"])
        for row in stored_moments
        if row["input_mean"] == "0" and all(row[name] == value for name, value in case.items())
    }
    assert stored["E[z]"] == pytest.approx(power(weight) ** 2, rel=0.03)
    assert power(2 * weight) ** 2 - power(weight) ** 4 > 5 * stored["Var[z]"]


def test_the_simulated_passes_are_those_of_the_units() -> None:
    """Outputs are those of the units' formulas, and derivatives those of finite differences."""
    rng, step = np.random.default_rng(1), 1e-6
    z, weight = rng.uniform(0.5, 2, (3, 40)), rng.uniform(0, 1, (3, 40))
    for through, product in (
        (moments.nmu_pass, lambda z: (weight * z + 1 - weight).prod(axis=0)),
        (moments.nac_mul_pass, lambda z: ((abs(z) + 1e-7) ** weight).prod(axis=0)),
    ):
        out, slope = through(z, weight)
        moved = z + np.array([[step], [0], [0]])
        assert out == pytest.approx(product(z))
        assert slope == pytest.approx((product(moved) - product(z)) / step, rel=1e-4)
    assert (moments.nac_mul_pass(-z, weight)[1] == -moments.nac_mul_pass(z, weight)[1]).all()


def test_the_curvature_is_computed_and_drawn(tmp_path: Path) -> None:
    """Both observations have a figure and all rows; on a coarse grid only the grid's extremes may differ."""
    out = tmp_path / "curvature.csv"
    curvature.main(["--grid", "21", "--out", str(out)])
    rows: list[dict[str, Any]] = rows_in(out)
    stored = rows_in(RESULTS / "curvature.csv")
    assert [row for row in rows if not row["what"].startswith(("largest", "least"))] == [
        row for row in stored if not row["what"].startswith(("largest", "least"))
    ]
    assert sorted(file.name for file in tmp_path.glob("*.png")) == ["curvature-draft.png", "curvature-final.png"]
    assert tables.curvature_table(rows).count("\n") == 13

"""Small runs of the programs of tasks/docs/theory.md: reproducibility, and agreement with the formulas."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import barrier, curvature, moments, starts, tables
from benchmarks.starts import read_trials

RESULTS = Path(tables.__file__).parent / "results"


def rows_in(file: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def stored_moments() -> list[dict[str, str]]:
    """Return the rows of equations 9 and 10 in the document."""
    return [row for row in rows_in(RESULTS / "moments.csv") if row["equation"] != "8"]


def test_moments_are_reproducible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case has a line for each mean and quantity; equal seeds give equal files, other seeds other files."""
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
    """The rows of the stored file are drawn, and the stored picture is small enough for a page."""
    moments.plot(stored_moments, tmp_path / "moments.png")
    assert (tmp_path / "moments.png").stat().st_size > 10_000
    assert all(file.stat().st_size < 300_000 for file in RESULTS.glob("*.png"))


def test_exact_moments_agree_with_the_simulation(stored_moments: list[dict[str, str]]) -> None:
    """Exact moments are within five standard errors of the stored ones, where many samples determine them.

    Few samples determine the variance of an NMU with ten inputs away from 0, and that of a NAC• with an input near 0.
    """
    compared = 0
    for row in stored_moments:
        mean, width = abs(float(row["input_mean"])), np.sqrt(3 * float(row["input_variance"]))
        is_near_0 = mean < width + 0.2
        if (row["unit"] == "NMU" and (row["hidden"] == "2" or mean == 0)) or (row["unit"] != "NMU" and not is_near_0):
            simulated, error, exact = (float(row[name]) for name in ("simulated", "standard_error", "exact"))
            assert abs(simulated - exact) < 5 * error, row
            compared += 1
    assert compared > 700


def test_few_inputs_near_0_cause_most_of_the_variance(stored_moments: list[dict[str, str]]) -> None:
    """With inputs around 0, a simulation has NAC•'s mean, and misses most of its variance."""
    case = {"weights": "tanh σ", "hidden": "2", "weight_variance": "0.1", "input_variance": "0.0833333"}
    stored = {
        row["quantity"]: (float(row["simulated"]), float(row["exact"]))
        for row in stored_moments
        if row["input_mean"] == "0" and all(row[name] == value for name, value in case.items())
    }
    assert stored["E[z]"][0] == pytest.approx(stored["E[z]"][1], rel=0.03)
    assert stored["Var[z]"][1] > 5 * stored["Var[z]"][0]


def test_integrals_equal_sums_over_a_fine_grid() -> None:
    """A NAC•'s exact moments equal sums over a fine grid of inputs and weights, on both sides of 0."""
    case, mean = moments.Case("NAC-mul", moments.UNIFORM, 2, 0.05, 1.0), 0.5
    sizes = np.concatenate([[0.0], np.logspace(-12, np.log10(np.sqrt(3) + mean), 4001)])
    edges = np.unique(np.concatenate([-sizes, sizes]))
    edges = edges[np.abs(edges - mean) <= np.sqrt(3)]
    middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    weights = np.linspace(-1, 1, 401) * np.sqrt(0.15)
    powers = (np.abs(middle) + moments.EPSILON) ** weights[:, None]
    first, second = ((powers**k) @ width / width.sum() for k in (1, 2))
    ends = np.full(401, 1 / 400)
    ends[[0, -1]] /= 2
    exact = moments.nac_mul_exact(case, mean)
    assert exact["E[z]"] == pytest.approx((ends @ first) ** 2, rel=5e-3)
    assert exact["Var[z]"] == pytest.approx((ends @ second) ** 2 - (ends @ first) ** 4, rel=5e-3)


def test_the_simulated_passes_equal_the_units() -> None:
    """Outputs equal the units' formulas, and derivatives equal finite differences."""
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
    """Both observations have a figure and all rows; on a coarse grid only the extremes may differ."""
    out = tmp_path / "curvature.csv"
    curvature.main(["--grid", "21", "--out", str(out)])
    rows: list[dict[str, Any]] = rows_in(out)
    stored = rows_in(RESULTS / "curvature.csv")
    assert [row for row in rows if not row["what"].startswith(("largest", "least"))] == [
        row for row in stored if not row["what"].startswith(("largest", "least"))
    ]
    assert sorted(file.name for file in tmp_path.glob("*.png")) == ["curvature-draft.png", "curvature-final.png"]
    assert tables.curvature_table(rows).count("\n") == 13


def test_factors_of_negative_inputs_are_0_at_the_barrier(tmp_path: Path) -> None:
    """At the barrier, the loss doesn't depend on the other weight; the file and the figure are written."""
    weight, loss, by_first, by_second = barrier.loss_and_slopes(2.25)
    at = int(np.argmin(abs(weight - barrier.barrier(barrier.INPUT))))
    assert np.ptp(loss[:, at]) == pytest.approx(0, abs=1e-12)
    assert by_second[:, at] == pytest.approx(0, abs=1e-12)
    assert by_first[-1, at] < 0 < by_first[0, at]  # towards the solution if the other weight is 1, away if it is 0
    barrier.main(["--out", str(tmp_path / "barrier.csv")])
    assert [row["beyond"] for row in rows_in(tmp_path / "barrier.csv")] == ["1", "0.7", "0.5698", "0"]
    assert (tmp_path / "barrier.png").stat().st_size > 10_000


def test_the_first_updates_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 1,000 updates, stored trials have their final number of negative factors, an even number."""
    monkeypatch.setattr(starts, "SIZES", (2,))
    monkeypatch.setattr(starts, "read_trials", lambda: read_trials()[:12])
    starts.main(["--seeds", "5", "--out", str(tmp_path / "starts.csv")])
    rows = rows_in(tmp_path / "starts.csv")
    trials = [row for row in rows if row["of"] == "negative at the start"]
    assert sum(int(row["trials"]) for row in trials) == 12
    assert all(row["as_at_the_end"] == row["trials"] for row in trials)
    assert tables.TABLES["starts"](rows).count("\n") == 1 + len(trials)
    assert tables.TABLES["starts:sizes"](rows).count("\n") == 2
    assert (tmp_path / "starts.png").stat().st_size > 10_000
    by_seed = rows_in(tmp_path / "starts-by-seed.csv")
    assert [row["seed"] for row in by_seed] == [str(starts.FIRST_SEED + place) for place in range(5)]
    assert sum(row["negative_factors"] == "2" for row in by_seed) == int(rows[-1]["then_2"])

"""Draws and counts of the simulation of tuned methods."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy import stats

from benchmarks import tables, tuned

APART = [law for law in tuned.LAWS if isinstance(law, tuned.Rates) or not law.diverging]
NORMAL = [law for law in APART if isinstance(law, tuned.Law) and law.noise is tuned.Law.noise and law.scale == 1]


@pytest.mark.parametrize("law", APART, ids=lambda law: law.name)
def test_best_values_have_the_declared_distance(law):
    """The methods' best means differ by the law's declared distance, since the noise has a mean of 0."""
    first, second = law.draw(np.random.default_rng(0), 100, 400, law.apart(400))
    best = [values.mean(axis=(0, 1)).max() for values in (first, second)]
    assert best[0] - best[1] == pytest.approx(law.apart(400), abs=0.03)


@pytest.mark.parametrize("law", NORMAL, ids=lambda law: law.name)
def test_outcomes_of_a_seed_have_the_declared_correlations(law):
    """Outcomes of a seed have the law's declared correlations, between methods and within a method."""
    first, second = law.draw(np.random.default_rng(0), 1, 40_000, 0.0)
    assert first[0].var(axis=0) == pytest.approx(1, abs=0.05)
    assert np.corrcoef(first[0, :, 0], second[0, :, 0])[0, 1] == pytest.approx(law.shared, abs=0.02)
    assert np.corrcoef(first[0, :, 0], first[0, :, -1])[0, 1] == pytest.approx(law.shared + law.alike, abs=0.02)


def test_tests_of_one_value_are_sign_flips():
    """With one value per method, each test is a sign-flip test, or near it if all seeds are permuted."""
    first, second = (np.random.default_rng(seed).normal(size=(3, 12, 1)) for seed in (1, 2))
    expected = [stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
                for d in (first - second)[..., 0]]  # fmt: skip
    for name in (tuned.OWN, tuned.USUAL, "each seed where the others are best", "pseudo-values, ends not moved"):
        assert tuned.WAYS[name](first, second)[2] == pytest.approx(np.array(expected), abs=1e-9)
    for name in ("seeds exchanged, chosen again", "all values at once"):
        assert tuned.WAYS[name](first, second)[2] == pytest.approx(np.array(expected), abs=0.1)


def test_winners_count_as_found_or_false():
    """A winner counts as found if it is better; of equal methods any winner is false."""
    result = (
        np.array([1.0, 1, -1, 1]),
        np.array([[0.5, 1.5], [2, 3], [-2, -1], [-1, 3]]),
        np.array([0.01, 0.01, 0.01, 1]),
    )
    assert tuned.counted(result, 1.0) == {"found": "0.5000", "false": "0.2500", "coverage": "0.5000", "width": "1.7500"}
    assert tuned.counted(result, 0.0)["false"] == "0.7500"


@pytest.mark.slow
def test_tuned_methods_are_reproducible(tmp_path, monkeypatch):
    """Each law has a row for each truth, size and test; equal seeds give equal files, other seeds other files."""
    monkeypatch.setattr(tuned, "SIZES", (10, 12))
    files = []
    for number, seed in enumerate("778"):
        out = tmp_path / f"{number}.csv"
        tuned.main(["--studies", "8", "--seed", seed, "--out", str(out)])
        files.append(out.read_text())
    assert files[0] == files[1] != files[2]
    rows = list(csv.DictReader(files[0].splitlines()))
    assert {row["distribution"] for row in rows} == {law.name for law in tuned.LAWS}
    assert {row["way"] for row in rows} == set(tuned.WAYS)
    cases = sum(len(list(tuned.cases(law, 10))) for law in tuned.LAWS)
    assert tables.tuned_table(rows).count("\n") == 1 + cases
    ways = list(csv.DictReader((tmp_path / "ways.csv").read_text().splitlines()))
    assert len(ways) == 2 * len(tuned.WAYS)
    assert tables.tuned_ways_table(ways).count("\n") == 1 + len(tuned.WAYS)

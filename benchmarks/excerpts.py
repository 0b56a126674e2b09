"""Rows that a document shows of a long table: values of its columns. The table's CSV file has all rows."""

from __future__ import annotations

EXCERPTS: dict[str, dict[str, tuple[str, ...]]] = {
    "centres": {
        "distribution": (
            "normal", "log-normal, σ 1", "accuracies: beta, 8 and 0.5", "10% about 0.2, 90% about 0.96",
        ),
        "n": ("5", "10", "20", "50", "100"),
        "interval": (
            "mean_intervals", "mean, BCa", "mean, Student's t",
            "interquartile_mean_intervals", "interquartile mean, BCa", "median_intervals",
        ),
    },
    "claims/errors": {
        "law": (
            "a rate of 0.5, at its bound", "a rate of 0.95, just above", "0.5 and 0.5, by 0",
            "0.95 and 0.85, just above 0.1", "times with 20% unsolved, at their bound",
            "times with 1% unsolved, at their bound", "5 cells, 1 at the bound, 4 far above", "5 cells, all just above",
        ),
    },
    "claims/peers": {
        "law": ("0.5 and 0.5, φ 0.5", "0.6 and 0.4, φ 0", "0.95 and 0.85, φ 0.3", "0.9 and 0.5, φ 0.3"),
    },
    "claims/power": {
        "law": (
            "0.55 and 0.45, by 0, φ 0", "0.55 and 0.45, by 0, φ 0.5", "0.9 and 0.5, by 0", "0.7 and 0.5, by 0.1",
            "0.9 and 0.5, by 0.1", "a rate of 0.95, above 0.9", "times 10% below their bound, 20% unsolved",
            "times 30% below their bound, 20% unsolved",
        ),
    },
    "looks": {
        "of": (
            "0.05", "0.09", "0.2", "0.5", "least",
            "0.1 and 0.1", "0.3 and 0.3", "0.55 and 0.45", "0.95 and 0.85", "0.9 and 0.5",
        ),
    },
    "overlap/crossed": {
        "distribution": (
            "normal; 1 0 0", "normal; 0.5 0.5 0", "normal; 0.1 0.8 0.1", "success, rates 0.05; 0.3 0.3 0.4",
            "normal, 1 apart; 0.5 0.5 0", "normal, 1 apart; 0.1 0.8 0.1", "success, rates 0.8 and 0.3; 0.5 0.5 0",
        ),
    },
    "overlap/partial": {
        "distribution": (
            "rates 0.5 and 0.5, φ 0.5", "rates 0.8 and 0.4, φ 0.4", "normal, ρ 0.8", "normal, 0.8 apart, ρ 0.8",
            "times, 2.5 times, ρ 0.7",
        ),
        "test": ("all trials", "pairs alone"),
    },
    "pairing/intervals": {
        "distribution": (
            "rates 0.7 and 0.5, φ 0.4", "rates 0.98 and 0.04, φ 0", "normal, ρ 0.8", "log-normal, 1.5 times, ρ 0.5",
            "normal, an exponential more",
        ),
        "interval": (
            "mcnemar_interval", "Tango's score", "sign_flip", "Student's t of differences", "BCa of differences",
        ),
    },
    "pairing/tests": {
        "distribution": (
            "rates 0.5 and 0.5, φ 0", "rates 0.5 and 0.5, φ 0.5", "rates 0.7 and 0.5, φ 0.4", "normal, ρ 0.8",
            "normal, 0.5 apart, ρ 0.8", "times, 1.5 times, ρ 0.7", "success at four values, falling, ρ 0.7",
        ),
    },
    "precision": {
        "of": tuple(
            f"{law}, ±{width} deviations"
            for law in ("normal", "0 or 1, 10% ones", "log-normal, σ 1") for width in ("0.4", "0.2", "0.1")
        ),
        "way": ("Student's, first look at 20", "Student's, first look at 40"),
    },
    "restricted": {
        "distribution": (
            "90% within 2% of `until`, 10% never", "exponential, 90% solved", "gamma, shape 3, 50% solved",
            "log-normal, σ 2.5, 95% solved", "12% at 1%, 88% at once", "exponential, 90% solved; ended at random",
            "the hardest of all distributions with three values, computed",
        ),
    },
    "shared_rates": {"rate": ("0.05", "0.1", "0.5", "0.95")},
    "standardised": {"seeds": ("12", "25", "100")},
    "standardised:more": {"seeds": ("12", "25", "100")},
    "tuned/laws": {
        "distribution": (
            "10 and 1, all equal", "10 and 10, all equal", "1 good of 10 each",
            "1 good of 10, others 2 errors worse, and 1", "the same, the 1 with a fifth of the noise",
            "a tenth fails, 10 and 1, all equal",
        ),
        "n": ("10", "20"),
    },
}  # fmt: skip

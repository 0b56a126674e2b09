"""Agreement of the tables on other fields' results pages with the stored files."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from study.words import change, rate
from tests.commands import invoke

RESULTS = Path(__file__).resolve().parents[2] / "tasks" / "docs" / "results"
_INTERVAL = r"\d\.\d+ \[\d\.\d+, \d\.\d+\]"
_CELL = re.compile(rf"\d+/\d+, {_INTERVAL}; [\d,–]+")


def rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def interval(row: dict[str, str], name: str) -> str:
    """Format a row's rate with its interval."""
    value, low, high = (float(row[name + end]) for end in ("", "_lower", "_upper"))
    return rate(value, (low, high))


@pytest.mark.parametrize("field", ["rl", "parity"])
def test_rates_and_times_are_those_of_the_cells(field: str) -> None:
    """A page has each cell's solved trials, rate with interval and median time, in the order of cells.csv."""
    shown = _CELL.findall((RESULTS / field / "README.md").read_text(encoding="utf-8"))
    stored = []
    for row in rows(RESULTS / field / "cells.csv"):
        median = row["solved_at_median"]
        time = f"{float(median):,.0f}" if median else "–"
        stored.append(f"{row['solved']}/{row['seeds']}, {interval(row, 'success_rate')}; {time}")
    assert shown == stored


def test_shares_are_those_of_the_sources() -> None:
    """The page on parity has each source's share of the variance of success, in the order of sources.csv."""
    text = (RESULTS / "parity" / "README.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| \d+ \| \d+ of 400 \|.*$", text, re.MULTILINE)
    shares = [row for row in rows(RESULTS / "parity" / "sources.csv") if row["quantity"] == "success"]
    assert re.findall(_INTERVAL, "\n".join(table)) == [interval(row, "share") for row in shares]


def test_standardised_rates_are_those_of_the_trials(tmp_path: Path) -> None:
    """The page on hidden units has the rates that `study report --standardise` computes."""
    folder = RESULTS / "hidden-size"
    text = (folder / "README.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| \d+ \| \d\.\d+ \[.*$", text, re.MULTILINE)
    starts = RESULTS.parents[2] / "benchmarks" / "results" / "starts-by-seed.csv"
    columns = []
    for covariate in ("negative_factors", "foreseen"):
        words = ["--by", "hidden_size", "--standardise", covariate, "--starts", str(starts), "--format", "csv"]
        result = invoke("report", str(folder / "trials.csv"), *words, "--out", str(tmp_path))
        assert result.exit_code == 0, result.output
        standardised = rows(tmp_path / "standardised.csv")
        if not columns:
            columns.append([interval(row, "success_rate") for row in standardised])
            pairs = rows(tmp_path / "standardised-differences.csv")
            pair = next(row for row in pairs if (row["first"], row["second"]) == ("hidden units 8", "hidden units 10"))
            for name in ("difference", "standardised"):
                value, low, high = (float(pair[name + end]) for end in ("", "_lower", "_upper"))
                assert change(value, (low, high)) in text
        columns.append([interval(row, "standardised") for row in standardised])
    assert [re.findall(_INTERVAL, line) for line in table] == [list(line) for line in zip(*columns, strict=True)]


def test_rates_with_two_negative_factors_are_those_of_the_cells() -> None:
    """The page on small networks has the rates of ten hidden units, with both starts and operations."""
    folder = RESULTS / "hidden-units"
    text = (folder / "README.md").read_text(encoding="utf-8")
    shown = re.findall(_INTERVAL, text)
    assert shown == [
        interval(row, "success_rate")
        for operation in ("mul", "sub")
        for signs in ("two_negative", "")
        for row in rows(folder / "signs.csv")
        if (row["operation"], row["init_signs"], row["hidden_size"]) == (operation, signs, "10")
    ]

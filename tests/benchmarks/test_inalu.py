"""iNALU's own experiment, on a small size: rows are those of the protocol, and the table counts what was trained."""

from __future__ import annotations

import csv
import doctest
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks import inalu, inalu_data, inalu_losses, inalu_table, inalu_trials, inalu_units, inalu_updates, tables
from benchmarks.inalu_data import DISTRIBUTIONS, OPERATIONS, Key, all_keys, numbers_of, rows_of
from benchmarks.inalu_trials import mse_of_rows
from benchmarks.inalu_units import ARMS, exact_unit
from study.statistics import wilson

RESULTS = Path(inalu.__file__).parents[1] / "docs" / "results" / "inalu"


@pytest.mark.parametrize("module", [inalu_data, inalu_losses, inalu_table, inalu_trials, inalu_units, inalu_updates])
def test_examples_run(module: ModuleType) -> None:
    """The examples in docstrings are true."""
    run = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert run.attempted > 0
    assert run.failed == 0


# --- rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [(-3, 3), (-2, 4), (-4, 2), (8, 10)])
def test_truncated_normals_are_within_bounds(interval: tuple[int, int]) -> None:
    """They have scipy's quantiles of a normal distribution cut at three standard deviations, and end at the bounds."""
    low, high = interval
    uniform = np.array([2.0**-33, 1e-6, 0.1, 0.5, 0.77, 1 - 1e-6, 1 - 2.0**-33])
    values = inalu_data.truncated_normal(uniform, low, high)
    law = stats.truncnorm(-3, 3, (low + high) / 2, (high - low) / 6)
    assert values == pytest.approx(law.ppf(uniform), abs=1e-9)
    assert values.min() >= low
    assert values.max() <= high
    assert values[[0, -1]] == pytest.approx([low, high], abs=1e-6)


@pytest.mark.parametrize("is_test", [False, True])
def test_numbers_have_the_distributions_of_the_protocol(is_test: bool) -> None:
    """Both numbers of a row pass the test of Kolmogorov and Smirnov, and don't depend on each other."""
    laws = {
        "N": lambda low, high: stats.truncnorm(-3, 3, (low + high) / 2, (high - low) / 6),
        "U": lambda low, high: stats.uniform(low, high - low),
        "E": lambda scale: stats.expon(scale=scale),
    }
    numbers = numbers_of(all_keys(1), is_test=is_test, rows=6_400)
    for (name, distribution), both in zip(DISTRIBUTIONS.items(), numbers, strict=True):
        law = laws[name[0]](*(distribution.test if is_test else distribution.train))
        assert all(stats.kstest(one, law.cdf).pvalue > 1e-4 for one in both), name
        assert abs(np.corrcoef(both)[0, 1]) < 0.06


def test_trials_of_a_key_see_the_same_rows() -> None:
    """Rows depend on the key alone: another seed, distribution or use has others, more rows only add to them."""
    keys = [Key("U(-1, 1)", 3), Key("U(-1, 1)", 4), Key("U(-5, 5)", 3)]
    numbers = numbers_of(keys, rows=128)
    assert (numbers_of(keys[1:2], rows=640)[0, :, :128] == numbers[1]).all()
    unit_scale = numbers / np.array([1, 1, 5])[:, None, None]
    flat = unit_scale.reshape(3, -1)
    assert all(abs(np.corrcoef(flat[a], flat[b])[0, 1]) < 0.3 for a, b in ((0, 1), (0, 2), (1, 2)))
    assert not np.intersect1d(numbers, numbers_of(keys, is_test=True, rows=128)).size


@pytest.mark.parametrize("operation", OPERATIONS)
def test_batches_are_the_rows_in_their_order(operation: str) -> None:
    """Batch k of every epoch has rows 64k to 64k + 63, and the operation of its two numbers as their targets."""
    numbers = numbers_of(all_keys(2), rows=192)
    rows = rows_of(numbers, operation)
    first, second = numbers[:, 0], numbers[:, 1]
    targets = {"add": first + second, "sub": first - second, "mul": first * second, "div": first / second}[operation]
    for number, start in ((1, 64), (2, 128), (3, 0), (4, 64)):
        x, y = rows.batch(number)
        part = slice(start, start + 64)
        assert torch.equal(x, torch.from_numpy(numbers[:, :, part].transpose(0, 2, 1).astype(np.float32)))
        assert torch.equal(y[..., 0], torch.from_numpy(targets[:, part].astype(np.float32)))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_exact_weights_are_below_the_cut(operation: str) -> None:
    """A trial can solve every distribution: what float32 leaves of an error is below 1e-5."""
    keys = all_keys(2)
    rows = rows_of(numbers_of(keys, is_test=True, rows=6_400), operation)
    assert (mse_of_rows(exact_unit([operation] * len(keys)), rows) < inalu.LARGEST_MSE).all()


# --- the table --------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few rows."""
    monkeypatch.setattr(inalu, "numbers_of", lambda keys, is_test: numbers_of(keys, is_test=is_test, rows=640))


@pytest.mark.usefixtures("small")
def test_the_same_command_gives_the_same_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice the same file, with a line for all distributions and for each, and a note of what was asked."""
    options = ["--seeds", "2", "--iterations", "30", "--operations", "sub", "mul", "--arms", "shared", "NALU", "--out"]
    texts = []
    for name in ("a", "b"):
        inalu.main([*options, str(tmp_path / f"{name}.csv")])
        texts.append((tmp_path / f"{name}.csv").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    rows = list(csv.DictReader(texts[0].splitlines()))
    assert [(row["arm"], row["operation"]) for row in rows[::8]] == [
        (arm, operation) for arm in ("shared", "NALU") for operation in ("sub", "mul")
    ]
    assert [row["distribution"] for row in rows[:8]] == ["all", *DISTRIBUTIONS]
    assert {row["trials"] for row in rows[::8]} == {"14"}
    settings = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["settings"]
    assert settings == {"arms": ["shared", "NALU"], "operations": ["sub", "mul"], "seeds": 2, "iterations": 30}
    assert "shared: iteration 0 of 30" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_one_operation_alone_has_the_same_numbers(tmp_path: Path) -> None:
    """Operations that train beside an operation don't change its rows in the table."""
    options = ["--seeds", "1", "--iterations", "30", "--arms", "separate", "--out"]
    inalu.main([*options, str(tmp_path / "all.csv")])
    inalu.main([*options, str(tmp_path / "one.csv"), "--operations", "mul"])
    whole, one = ((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines() for name in ("all", "one"))
    assert [line for line in whole if ",mul," in line] == one[1:]
    assert len(one) == 9


@pytest.mark.usefixtures("small")
def test_ctrl_c_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is complete is printed, no file is written, and the exit code is that of Ctrl-C."""
    train = inalu_trials.train

    def interrupted(arm: str, *rest) -> inalu_trials.Trained:
        if arm == "NALU":
            raise KeyboardInterrupt
        return train(arm, *rest)

    monkeypatch.setattr(inalu, "train", interrupted)
    with pytest.raises(SystemExit) as ending:
        inalu.main(["--seeds", "1", "--iterations", "3", "--operations", "add", "--out", str(tmp_path / "cells.csv")])
    assert ending.value.code == 130
    printed = capsys.readouterr()
    assert "Interrupted" in printed.err
    assert printed.out.count("separate") == printed.out.count("shared") == 8
    assert list(tmp_path.iterdir()) == []


def test_a_trial_is_solved_below_the_cut() -> None:
    """At 1e-5 it isn't, and one that has diverged isn't; rates by distribution are of its trials alone."""
    mse = np.full((7, 2), 1.0)
    mse[0], mse[3], mse[5] = (1e-5, 0.99e-5), (1e-9, 1e-15), (np.nan, 0.0)
    trained = inalu_trials.Trained(mse.ravel(), np.arange(14))
    total, *parts = inalu.cells("shared", "div", trained, np.zeros(14))
    assert [row["solved"] for row in (total, *parts)] == [4, 1, 0, 0, 2, 0, 1, 0]
    assert [row["published_solved"] for row in (total, *parts)] == [24, 4, 6, 1, 4, 4, 0, 5]
    assert (total["diverged"], parts[5]["diverged"], parts[1]["mean_restarts"]) == (1, 1, "2.50")


def test_published_counts_are_those_of_the_paper() -> None:
    """The counts by distribution add up to the published ones."""
    sums = {arm: [sum(inalu.PUBLISHED[arm, operation]) for operation in OPERATIONS] for arm in ARMS}
    assert sums == {"separate": [70, 70, 50, 24], "shared": [60, 53, 34, 24], "NALU": [30, 0, 33, 0]}


def test_the_stored_table_is_whole() -> None:
    """All arms and operations have ten trials of each distribution, which add up, with Wilson's intervals."""
    with (RESULTS / "cells.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(ARMS) * len(OPERATIONS) * 8
    for place in range(0, len(rows), 8):
        total, *parts = rows[place : place + 8]
        assert [part["trials"] for part in parts] == ["10"] * 7
        for name in ("trials", "solved", "published_trials", "published_solved", "diverged"):
            assert int(total[name]) == sum(int(part[name]) for part in parts)
    for row in rows:
        low, high = wilson(int(row["solved"]), int(row["trials"]))
        assert (row["low"], row["high"]) == (f"{low:.4f}", f"{high:.4f}")
        assert float(row["largest_exact_mse"]) < inalu.LARGEST_MSE
    assert tables.inalu_table(rows) in (RESULTS.parent / "README.md").read_text(encoding="utf-8")

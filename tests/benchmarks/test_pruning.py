"""Replays of pruned trials: counts, and equal inputs of all rules."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks import pruning
from benchmarks.pruning import RULES, STEPS, Never, Replay, replay


class OneOf:
    """A rule that stops some trials at a step."""

    def __init__(self, trials: set[int], step: int) -> None:
        self._trials, self._step = trials, step

    def stops(self, trial: int, step: int, value: float) -> bool:
        return trial in self._trials and step == self._step


CURVES = [[float(worth)] * STEPS for worth in (3, 1, 2, 4)]


def test_a_replay_counts_steps_and_losses() -> None:
    assert replay(CURVES, Never()) == Replay(saved=0.0, stopped_winner=False, share_better=0.0)
    assert replay(CURVES, OneOf({0, 3}, 9)) == Replay(pytest.approx((STEPS - 9) / STEPS / 2), False, 0.0)
    assert replay(CURVES, OneOf({1}, 1)).share_better == 0.25
    assert replay(CURVES, OneOf({1}, 1)).stopped_winner
    assert replay(CURVES, OneOf({0, 1, 2, 3}, 1)).share_better == 0.75


@pytest.mark.parametrize("rule", [name for name in RULES if name != "none"])
def test_each_rule_keeps_the_best_of_constant_trials(rule: str) -> None:
    """Each rule stops some trials, and keeps the best if it comes first."""
    curves = [[float(worth)] * STEPS for worth in range(40)]
    replayed = replay(curves, RULES[rule]())
    assert replayed.saved > 0
    assert (replayed.stopped_winner, replayed.share_better) == (False, 0.0)


@pytest.mark.long
def test_the_functions_are_trained_and_all_rules_measured(tmp_path: Path) -> None:
    """Equal seeds give equal measurements of all functions and rules."""
    files = []
    for name in ("first.csv", "second.csv"):
        pruning.main(["--pool", "4", "--trials", "4", "--repetitions", "2", "--out", str(tmp_path / name)])
        files.append((tmp_path / name).read_text())
    assert files[0] == files[1]
    assert len(list(csv.DictReader(files[0].splitlines()))) == 3 * len(RULES)

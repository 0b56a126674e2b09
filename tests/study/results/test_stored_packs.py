"""From the store to MLflow: each trial is in one pack, and a bad file loses none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from study.records import Curve, Outcome, Pack, Result
from study.results.stored_packs import StoredPacks
from study.store import Store, StudyStore
from study.store.validated import FAILED
from tests.study.builders import small_pack
from tests.study.tracking.made import curve


def stored(folder: StudyStore, name: str, pack: Pack, outcome: Outcome = Outcome.UNSOLVED) -> None:
    results = [Result(trial=trial, outcome=outcome, iterations=1) for trial in pack.trials]
    curves = [Curve(trial.id, *_values()) for trial in pack.trials]
    folder.write_pack(name, results, curves, [], {"created_at": "never"})


def _values() -> tuple:  # type: ignore[type-arg]
    made = curve(1)
    return made.iteration, made.metrics


def seeds(packs: StoredPacks) -> dict[str, list[int]]:
    return {name: [result.trial.seed for result in packs.results(name)] for name in packs.names()}


def test_each_trial_is_in_the_first_pack_that_has_it(tmp_path: Path) -> None:
    """A trial in two packs is published once, and a failed pack isn't published."""
    folder = Store(tmp_path).study("demo")
    for name, pack in (("a", small_pack(0, 1)), ("b", small_pack(1, 2)), ("c", small_pack(1, 2, 3))):
        stored(folder, name, pack)
    stored(folder, f"d{FAILED}", small_pack(4), Outcome.FAILED)
    assert seeds(StoredPacks(folder)) == {"a": [0, 1], "b": [2], "c": [3]}
    assert len(StoredPacks(folder).curves("b")) == 2


def test_only_some_metrics_have_curves(tmp_path: Path) -> None:
    """Curves of the metrics in `without_curves` are left out; the others keep their steps."""
    folder = Store(tmp_path).study("demo")
    stored(folder, "a", small_pack(0, 1))
    every = StoredPacks(folder).curves("a")
    thinned = StoredPacks(folder, without_curves=every[0].metrics.keys() - {"test_mse"}).curves("a")
    assert all({"test_mse"} < set(curve.metrics) for curve in every)
    assert [(c.trial_id, list(c.metrics), list(c.iteration)) for c in thinned] == [
        (c.trial_id, ["test_mse"], list(c.iteration)) for c in every
    ]


def test_rows_are_taken_as_given(tmp_path: Path) -> None:
    """All given rows are published, failures too if nothing better is there; unplanned trials aren't."""
    folder = Store(tmp_path).study("demo")
    stored(folder, f"a{FAILED}", small_pack(0, 1), Outcome.FAILED)
    stored(folder, "b", small_pack(1, 2))
    rows = folder.read_results()
    assert seeds(StoredPacks(folder, rows)) == {"b": [1, 2], f"a{FAILED}": [0]}
    assert seeds(StoredPacks(folder, rows.slice(0, 2))) == {"b": [1], f"a{FAILED}": [0]}


def test_a_torn_pack_is_left_out(tmp_path: Path) -> None:
    """A torn pack is skipped, and the other packs are still published."""
    folder = Store(tmp_path).study("demo")
    stored(folder, "a", small_pack(0))
    stored(folder, "b", small_pack(1))
    (tmp_path / "demo" / "results" / "a.parquet").write_bytes(b"PAR1")
    assert seeds(StoredPacks(Store(tmp_path, read_only=True).study("demo"))) == {"b": [1]}


def test_trials_are_published_as_they_are_judged(tmp_path: Path) -> None:
    """Rows judged together replace a pack's own; trials stored later aren't included."""
    folder = Store(tmp_path).study("demo")
    stored(folder, "a", small_pack(0, 1))
    packs = StoredPacks(folder)
    rows = folder.read_results()
    solved = pa.array([str(Outcome.SOLVED)] * len(rows))
    packs.judge(rows.set_column(rows.column_names.index("outcome"), "outcome", solved))
    stored(folder, "b", small_pack(1, 2))
    assert seeds(packs) == {"a": [0, 1], "b": [2]}
    outcomes = {name: [result.outcome for result in packs.results(name)] for name in packs.names()}
    assert outcomes == {"a": [Outcome.SOLVED, Outcome.SOLVED], "b": [Outcome.UNSOLVED]}

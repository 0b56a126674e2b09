"""Trials judged by their study's references: by all of them, updated on changes, never in a stored file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from study.interface.criterion import Bound
from study.interface.references import ReferenceCriterion, reference_bound
from study.records import Cell, Curve, Outcome, Result, Trial
from study.store import Store, StudyStore
from study.store.judgements import FILE

CELLS = {
    (model, size): Cell("lab:Products", model, {"size": size}) for model in ("exact", "learner") for size in (2, 3)
}
BOUNDS = {size: reference_bound([size + 0.0, size + 0.1, size + 0.2], "prediction", 0.99) for size in (2, 3)}


def trial(model: str, size: int, seed: int, loss: float, *, outcome: Outcome = Outcome.FINISHED) -> Result:
    return Result(
        trial=Trial(CELLS[model, size], seed),
        outcome=outcome,
        best_iteration=20,
        metrics={"loss": loss} if outcome is not Outcome.DIVERGED else {},
        iterations=20,
        training_s=1.0 + seed,
        engine="torch",
        device="cpu",
    )


def curve(result: Result) -> Curve:
    """Make a curve that falls to the result's loss at iteration 10, and stays there."""
    loss = result.metrics.get("loss", np.nan)
    return Curve(result.trial.id, np.array([0, 10, 20]), {"loss": np.array([loss + 100, loss, loss])})


def write(folder: StudyStore, name: str, results: Sequence[Result]) -> None:
    folder.write_pack(name, results, [curve(result) for result in results], [], {"created_at": "never"})


def criterion(seeds: int = 3, **changes: object) -> ReferenceCriterion:
    """Return the criterion of a study of two questions, each with a reference cell."""
    made = ReferenceCriterion(
        model="exact",
        higher_is_better={"loss": False},
        reference_of={cell.id: CELLS["exact", size].id for (_, size), cell in CELLS.items()},
        seeds={CELLS["exact", size].id: range(seeds) for size in (2, 3)},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> StudyStore:
    """Store three references of each question, and learners around their bounds."""
    study = Store(tmp_path).study("products")
    study.write_spec("study: products\n")
    for size, bound in BOUNDS.items():
        assert bound is not None
        write(study, f"r{size}", [trial("exact", size, seed, size + seed / 10) for seed in range(3)])
        losses = (bound - 0.01, bound, bound + 0.01)
        write(study, f"l{size}", [trial("learner", size, seed, loss) for seed, loss in enumerate(losses)])
    return study


def rows(table: pa.Table, model: str, size: int) -> list[dict[str, object]]:
    return [row for row in table.to_pylist() if (row["model"], row["size"]) == (model, size)]


def test_each_question_has_its_own_bound(folder: StudyStore) -> None:
    """The bound itself is sufficient, and a trial is solved when its curve first reaches it."""
    table = folder.judged_by(criterion()).read_results()
    for size, bound in BOUNDS.items():
        learners = rows(table, "learner", size)
        assert [row["outcome"] for row in learners] == ["solved", "solved", "unsolved"]
        assert [row["solved_at_iteration"] for row in learners] == [10, 10, None]
        assert {row["criterion"] for row in learners} == {f"loss <= {bound!r} (99% prediction bound of 3 references)"}
        assert {row["outcome"] for row in rows(table, "exact", size)} == {"solved"}


def test_the_stored_rows_stay_as_they_are(folder: StudyStore) -> None:
    """Judgements aren't written to results files; trials of a pack that is read alone are finished."""
    judged = folder.judged_by(criterion())
    assert set(judged.read_results()["outcome"].to_pylist()) == {"solved", "unsolved"}
    assert set(folder.read_results()["outcome"].to_pylist()) == {"finished"}
    assert set(judged.read_pack("l2")[0]["outcome"].to_pylist()) == {"finished"}
    assert set(judged.outcomes()["outcome"].to_pylist()) == {"finished"}


def test_trials_that_are_not_planned_set_no_bound_and_are_not_judged(folder: StudyStore) -> None:
    """References with unplanned seeds set no bound, and trials of unplanned cells aren't judged."""
    before = folder.judged_by(criterion()).read_results()
    write(folder, "more", [trial("exact", 2, 3, 50.0), trial("exact", 2, 4, 90.0)])
    after = folder.judged_by(criterion()).read_results()
    assert rows(after, "learner", 2) == rows(before, "learner", 2)
    known = criterion().reference_of
    one_question = criterion(reference_of={CELLS["learner", 2].id: known[CELLS["learner", 2].id]})
    by_bound = trial("learner", 3, 0, 2.0, outcome=Outcome.SOLVED)
    unsolved = [trial("learner", 3, seed, 99.0) for seed in (1, 2)]
    write(folder, "l3", [replace(by_bound, criterion="loss < 9", solved_at_iteration=20), *unsolved])
    left_out = rows(folder.judged_by(one_question).read_results(), "learner", 3)
    assert {(row["outcome"], row["criterion"]) for row in left_out} == {("finished", None)}


def test_one_reference_judges_nothing_of_its_question(folder: StudyStore) -> None:
    """A question with a single finished reference isn't judged; others are. Diverged references stay diverged."""
    lost = [trial("exact", 2, seed, np.nan, outcome=Outcome.DIVERGED) for seed in (1, 2)]
    write(folder, "r2", [trial("exact", 2, 0, 2.0), *lost])
    table = folder.judged_by(criterion()).read_results()
    assert {(row["outcome"], row["criterion"]) for row in rows(table, "learner", 2)} == {("finished", None)}
    assert [row["outcome"] for row in rows(table, "exact", 2)] == ["finished", "diverged", "diverged"]
    assert [row["outcome"] for row in rows(table, "learner", 3)] == ["solved", "solved", "unsolved"]


def test_a_changed_criterion_judges_trials_again(folder: StudyStore) -> None:
    """A study that gains or loses references discards its trials' earlier judgements."""
    before = folder.judged_by(criterion()).read_results()
    by_bound = trial("learner", 2, 0, 2.0, outcome=Outcome.SOLVED)
    unsolved = [trial("learner", 2, seed, 99.0) for seed in (1, 2)]
    write(folder, "l2", [replace(by_bound, criterion="loss < 9", solved_at_iteration=20), *unsolved])
    first = rows(folder.judged_by(criterion()).read_results(), "learner", 2)[0]
    assert (first["solved_at_iteration"], first["criterion"]) == (10, rows(before, "learner", 2)[0]["criterion"])
    assert rows(folder.judged_by({"loss": Bound(below=9)}).read_results(), "learner", 2)[0]["criterion"] == "loss < 9"


@pytest.fixture
def curves_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of curves of each read."""
    counts: list[int] = []
    read = StudyStore.read_curves

    def counting(self: StudyStore, trial_ids: Collection[str] | None = None) -> pa.Table:
        table = read(self, trial_ids)
        counts.append(len(table))
        return table

    monkeypatch.setattr(StudyStore, "read_curves", counting)
    return counts


def test_cached_judgements_are_read_without_curves(folder: StudyStore, curves_read: list[int]) -> None:
    """A file caches when trials were solved; curves are read again only if the bound has moved."""
    judged = folder.judged_by(criterion())
    table = judged.read_results()
    judged.write_judgements(table)
    assert judged.read_results().equals(table)
    assert curves_read == [10]  # the six references, and the four solved learners
    write(folder, "r3", [trial("exact", 3, seed, 3 + seed / 5) for seed in range(3)])
    assert [row["outcome"] for row in rows(judged.read_results(), "learner", 3)] == ["solved"] * 3
    assert curves_read == [10, 6]


def test_a_trial_that_was_trained_again_is_read_again(folder: StudyStore, curves_read: list[int]) -> None:
    """The cache identifies the judged training, not only the trial's id."""
    judged = folder.judged_by(criterion())
    judged.write_judgements(judged.read_results())
    retrained = [replace(trial("learner", 2, seed, 2.0), training_s=7.25) for seed in range(3)]
    folder.write_pack(
        "l2", retrained, [replace(curve(result), iteration=np.array([0, 15, 20])) for result in retrained], [], {}
    )
    assert [row["solved_at_iteration"] for row in rows(judged.read_results(), "learner", 2)] == [15] * 3
    assert curves_read == [10, 3]


@pytest.mark.parametrize("data", [b"", b"PAR1", None])
def test_a_torn_file_of_judgements_costs_no_result(folder: StudyStore, data: bytes | None) -> None:
    """With a torn or foreign file of judgements, curves are read as without the file."""
    judged = folder.judged_by(criterion())
    table = judged.read_results()
    judged.write_judgements(table)
    content = folder.read_file(FILE)
    assert content is not None
    folder.write_file(FILE, content[:-20] if data is None else data)
    assert judged.read_results().equals(table)

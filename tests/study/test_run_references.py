"""Runs of studies with references as the success criterion."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from study.console import Console
from study.driver.options import Options
from study.interface.references import reference_bound
from study.plan.plan import make_plan
from study.results.load import load_results
from study.results.study import assemble_report, sync
from study.run import Ending, run
from study.spec import Spec
from study.store import Store
from study.tracking import published
from tests.study.lab import reference_study

EXACT = "mylab.models:Exact"


def trained(spec: Spec, store: Path, uri: str | None = None) -> str:
    """Run a study in this process, and return its output."""
    console = Console(file=StringIO(), width=200)
    assert run(make_plan(spec), Options(store, uri, local=True, pack_size=4), console) is Ending.FINISHED
    return console.file.getvalue()


def test_trials_are_judged_by_the_references_of_their_study(packed_lab: Path, tmp_path: Path) -> None:
    """Each question has its own references' bound, named in its trials; stored trials have the outcome finished."""
    store = tmp_path / "studies"
    spec = reference_study(packed_lab, grid={"size": [2, 3]}, seeds=4)
    text = trained(spec, store)
    assert "0 diverged" in text
    assert "solved ·" not in text  # unknown during the run
    results = load_results("products", store)
    rows = results.table.to_pylist()
    assert "Exact" not in results.headline  # references aren't compared
    assert results.headline.endswith("references are not counted.")
    assert results.contrasts.pairs == ()  # each size is a question with one method
    assert {summary.cell.model for summary in results.summaries} == {EXACT, "NMU"}
    for size in (2, 3):
        of_size = [row for row in rows if row["size"] == size]
        bound = reference_bound([r["test_loss"] for r in of_size if r["model"] == EXACT], "prediction", 0.99)
        assert bound is not None
        assert {r["criterion"] for r in of_size} == {f"test_loss <= {bound!r} (99% prediction bound of 4 references)"}
        assert [r["outcome"] == "solved" for r in of_size] == [r["test_loss"] <= bound for r in of_size]
        assert all((r["solved_at_iteration"] is None) == (r["outcome"] != "solved") for r in of_size)
    assert {row["outcome"] for row in rows} == {"solved", "unsolved"}
    stored = Store(store).study("products").read_results()
    assert set(stored["outcome"].to_pylist()) == {"finished"}
    assert set(stored["criterion"].to_pylist()) == {None}


def test_added_references_judge_all_trials_again(packed_lab: Path, tmp_path: Path) -> None:
    """Added seeds train only the new trials; the bound uses all references, and metrics keep their bits."""
    store = tmp_path / "studies"
    trained(reference_study(packed_lab), store)
    before = {row["trial_id"]: row for row in load_results("products", store).table.to_pylist()}
    trained(reference_study(packed_lab, seeds=6), store)
    after = {row["trial_id"]: row for row in load_results("products", store).table.to_pylist()}
    assert len(after) == 12
    assert {row["criterion"].partition("(")[2] for row in before.values()} == {"99% prediction bound of 3 references)"}
    assert {row["criterion"].partition("(")[2] for row in after.values()} == {"99% prediction bound of 6 references)"}
    for trial, row in before.items():
        assert (row["test_loss"], row["training_s"]) == (after[trial]["test_loss"], after[trial]["training_s"])
    trained(reference_study(packed_lab), store)  # with the earlier file, unplanned references are ignored
    assert {row["trial_id"]: row for row in load_results("products", store).table.to_pylist()} == before


def test_one_reference_judges_nothing(packed_lab: Path, tmp_path: Path) -> None:
    """With one reference, trials are finished, and output and report give the reason."""
    store = tmp_path / "studies"
    text = trained(reference_study(packed_lab, seeds=1), store)
    assert set(load_results("products", store).table["outcome"].to_pylist()) == {"finished"}
    assert "at least 2 references" in " ".join(text.split())


def test_references_that_do_not_count_are_dropped(packed_lab: Path, tmp_path: Path) -> None:
    """`keep` selects references; the dropped ones are counted in a note, and judged like other trials."""
    store = tmp_path / "studies"
    trained(reference_study(packed_lab, seeds=5), store)
    losses = [
        row["validation_loss"] for row in load_results("products", store).table.to_pylist() if row["model"] == EXACT
    ]
    middle = float(np.median(losses))
    references = {"model": EXACT, "keep": {"validation_loss": {"at_least": middle}}, "bound": "mean", "level": 0.9}
    text = trained(reference_study(packed_lab, seeds=5, references=references), store)
    criteria = set(load_results("products", store).table["criterion"].to_pylist())
    assert len(criteria) == 1
    assert next(iter(criteria)).endswith("(90% mean bound of 3 references)")
    assert "2 of 5 were dropped" in " ".join(text.split())


def test_learning_curves_have_the_bound_of_their_question(packed_lab: Path, tmp_path: Path) -> None:
    """Each row's figure shows the bound of its trials."""
    store = tmp_path / "studies"
    success = {"validation_loss": "below_references"}
    trained(reference_study(packed_lab, grid={"size": [2, 3]}, success=success, seeds=2), store)
    results = load_results("products", store)
    ends = [results.bounds(summary.cell_id)["validation_loss"].at_most for summary in results.summaries]
    assert [curve.threshold for curve in assemble_report(results).learning] == ends
    assert len(set(ends)) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Deprecations of MLflow and its dependencies are theirs to fix.
def test_mlflow_and_report_show_the_same_outcomes(packed_lab: Path, tmp_path: Path) -> None:
    """Trials are published as finished during the run; at its end, MLflow has their outcomes by the bounds."""
    store, uri = tmp_path / "studies", f"sqlite:///{tmp_path / 'mlflow.db'}"
    for seeds in (2, 3):
        trained(reference_study(packed_lab, seeds=seeds), store, uri)
        ours, theirs = load_results("products", store), load_results("products", store, tracking_uri=uri)
        assert set(theirs.table["outcome"].to_pylist()) == {"solved", "unsolved"}
        columns = ["trial_id", "outcome", "criterion", "solved_at_iteration", "test_loss"]
        assert theirs.table.select(columns).equals(ours.table.select(columns))
        assert theirs.counts == ours.counts
        assert sync(ours, uri) == 0
    assert len(published(uri, "products")) == 6
    trained(reference_study(packed_lab, seeds=3), store, uri)  # trains and publishes nothing
    assert len(published(uri, "products")) == 6

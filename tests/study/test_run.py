"""Runs in one process, from study file to report, with MLflow, and with packs that crash."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import obstore
import pytest
import torch

from study.cluster import Capacity
from study.console import Console
from study.driver.engines import resolve_to_estimate
from study.driver.options import Options
from study.driver.resources import Slots, slots_of_cluster
from study.engine import Training
from study.errors import BusyError, ClusterError, InputError, StudyError, StudyGoneError
from study.plan.plan import Plan, make_plan
from study.records import Pack
from study.results.load import load_results
from study.results.study import sync, write_study_report
from study.run import Ending, Extend, run, until_sure
from study.spec import parse_spec
from study.store import Store
from study.tracking import published
from tasks.arithmetic.engine.torch.engine import TorchEngine
from tests.engines import ENGINES, use_engines
from tests.study.cluster.crashing import Crashing

# Warnings of MLflow and its dependencies are theirs to fix.
pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = """
study: whole
question: Does the whole path work?
task: {name: simple}
models: [NMU, linear]
zip:
  schedule:
    - {label: "off", sparsity_strength: 0}
    - {label: "on", sparsity_strength: 10, sparsity_start: 10, sparsity_end: 50}
seeds: 3
fixed: {batch_size: 16}
protocol: {iterations: 100, evaluate_every: 20, evaluation_rows: 50}
success: {threshold: 1.0e6}
"""


def planned(text: str = SPEC) -> Plan:
    return make_plan(parse_spec(text, source="test"))


def run_here(
    plan: Plan, root: Path, tracking_uri: str | None = None, grow: Extend = until_sure, **options_: Any
) -> tuple[Ending, str]:
    output = io.StringIO()
    options = Options(root=root, tracking_uri=tracking_uri, local=True, **options_)
    ending = run(plan, options, Console(file=output, width=150), grow)
    return ending, output.getvalue()


def test_the_report_is_the_same_from_store_and_from_mlflow(tmp_path, uri, figures):
    """Results from MLflow give the store's cells to the last bit, and the same report, byte for byte."""
    plan = planned()
    ending, output = run_here(plan, tmp_path, uri)
    assert ending == Ending.FINISHED, output
    ours, theirs = load_results("whole", tmp_path), load_results("whole", tmp_path, tracking_uri=uri)
    assert ours.summaries == theirs.summaries
    assert [s.solved for s in ours.summaries] == [3, 3, 3]  # the linear model has one cell, since it has no schedule
    pages = [{path.name: path.read_bytes() for path in write_study_report(results)} for results in (ours, theirs)]
    assert pages[0] == pages[1]
    assert "report.html" in pages[0]
    assert published(uri, "whole") == {trial.id for trial in plan.trials}
    assert sync(ours, uri) == 0


def test_more_seeds_and_adopted_trials_are_published(tmp_path, uri):
    """A study whose trials another study has trains nothing, and publishes all trials."""
    run_here(planned(), tmp_path)
    other = planned(SPEC.replace("study: whole", "study: other"))
    ending, output = run_here(other, tmp_path, uri)
    assert ending == Ending.FINISHED
    assert "9 trials are done already" in output
    assert published(uri, "other") == {trial.id for trial in other.trials}


def test_trials_of_an_unpublished_run_are_published_later(tmp_path, uri):
    """Trials trained without publishing are published by the next run."""
    plan = planned()
    run_here(plan, tmp_path)
    ending, output = run_here(plan, tmp_path, uri)
    assert ending == Ending.FINISHED, output
    assert published(uri, "whole") == {trial.id for trial in plan.trials}


def test_mlflow_down_costs_nothing(tmp_path, uri):
    """Without MLflow the study finishes and reports its unpublished trials; sync publishes them."""
    plan = planned()
    ending, output = run_here(plan, tmp_path, "http://127.0.0.1:9")
    assert ending == Ending.FINISHED
    assert "study sync whole" in output
    results = load_results("whole", tmp_path)
    assert sync(results, uri) == len(plan.trials)
    assert published(uri, "whole") == {trial.id for trial in plan.trials}


def test_crashed_packs_are_failed_trials_and_are_tried_again(tmp_path, uri, monkeypatch):
    """A crashed pack's trials are shown and counted as failed; a second run gives their results."""
    plan = planned()
    use_engines(monkeypatch, {"crashing": Crashing()})
    ending, output = run_here(plan, tmp_path, uri, keep_going=True)
    assert ending == Ending.FAILURES
    assert "no NMU today" in output
    results = load_results("whole", tmp_path)
    assert [(s.failed, s.solved, s.complete) for s in results.summaries] == [(3, 0, False), (3, 0, False), (0, 3, True)]

    use_engines(monkeypatch, ENGINES)
    ending, output = run_here(plan, tmp_path, uri)
    assert ending == Ending.FINISHED
    assert load_results("whole", tmp_path, tracking_uri=uri).counts == load_results("whole", tmp_path).counts
    assert [(s.failed, s.solved) for s in load_results("whole", tmp_path).summaries] == [(0, 3), (0, 3), (0, 3)]


def test_a_checkpoint_of_another_engine_is_ignored(tmp_path):
    """A pack with a checkpoint of another engine starts afresh, and is stored once."""
    plan = planned()
    folder = Store(tmp_path).study("whole")
    pack = Pack(plan.trials[:3])
    folder.save_checkpoint(ENGINES["torch"].start(pack, device="cpu").checkpoint())
    ending, _ = run_here(plan, tmp_path)
    assert ending == Ending.FINISHED
    assert {trial.id for trial in plan.trials} == folder.done()
    assert not folder.checkpoints()


def test_a_smaller_plan_reports_its_own_trials_only(tmp_path):
    """Trials that the file no longer requests stay in the store, but not in the report."""
    run_here(planned(), tmp_path)
    fewer = planned(SPEC.replace("seeds: 3", "seeds: [1]"))
    _, output = run_here(fewer, tmp_path)
    assert "stored trials that aren't in this file any more: 6" in output
    assert [s.seeds for s in load_results("whole", tmp_path).summaries] == [1, 1, 1]
    assert len(Store(tmp_path).study("whole").done()) == 9


@pytest.mark.parametrize("pack_size", [1, 100])
def test_pack_size_changes_no_result(tmp_path, pack_size):
    """Any pack size gives the same cells."""
    plan = planned()
    expected = tmp_path / "expected"
    run_here(plan, expected)
    console = Console(file=io.StringIO())
    options = Options(root=tmp_path / "packed", tracking_uri=None, local=True, pack_size=pack_size)
    assert run(plan, options, console) == Ending.FINISHED

    def bits(root: Path) -> list[object]:
        return [replace(s, training_s_mean=None) for s in load_results("whole", root).summaries]

    assert bits(tmp_path / "packed") == bits(expected)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here that torch can use")
@pytest.mark.parametrize("has_driver", [True, False])
def test_a_gpu_that_torch_cannot_use_is_reported(tmp_path, monkeypatch, has_driver):
    """A line warns if the machine has a GPU driver but trains on the CPU; without a driver the line is missing."""
    driver = tmp_path / "nvidiactl"
    if has_driver:
        driver.touch()
    monkeypatch.setattr("study.driver.engines._GPU_DRIVER", driver)
    _, output = run_here(planned(), tmp_path / "store")
    assert ("there is an NVIDIA GPU here that torch can't use" in output) == has_driver


def test_a_model_that_a_slower_engine_trains_is_reported(tmp_path):
    """A model that no fused engine trains is named, with the reason, before training starts."""
    _, output = run_here(planned(SPEC.replace("[NMU, linear]", "[NMU-normalized]")), tmp_path)
    assert "NMU-normalized is trained by the torch engine, not by fused: it has no gradient" in output


def slots(has: Capacity, **options: object) -> Slots:
    engines = resolve_to_estimate(planned(), Options(Path("nowhere"), None, **options))  # type: ignore[arg-type]
    return slots_of_cluster(engines, has)


def test_slots_of_a_cluster():
    """Slots are the GPUs, the cores of machines without GPUs, and the requested number on a growing cluster."""
    cores = Capacity(cpus=8, gpus=0, cpus_without_gpu=8)
    mixed = Capacity(cpus=24, gpus=2, cpus_without_gpu=8)
    assert slots(cores) == {"cpu": 8}
    assert slots(cores, workers=64) == {"cpu": 64}
    assert slots(mixed) == {"cuda": 2, "cpu": 8}
    assert slots(mixed, packs_per_gpu=4) == {"cuda": 8, "cpu": 8}
    assert slots(mixed, workers=2) == {"cuda": 2}
    assert slots(mixed, device="cuda") == {"cuda": 2}
    assert slots(mixed, device="cpu") == {"cpu": 24}
    assert slots(mixed, engine="fused") == {"cpu": 24}  # the fused engine doesn't use GPUs
    empty = Capacity(cpus=0, gpus=0, cpus_without_gpu=0)
    assert slots(empty, workers=16) == {"cpu": 16}
    with pytest.raises(ClusterError, match=r"the cluster has 0 CPU and 0 GPU; .* --workers"):
        slots(empty)
    with pytest.raises(ClusterError, match="1 CPU and a GPU"):
        slots(cores, device="cuda")
    with pytest.raises(InputError, match="fused"):
        slots(mixed, device="cuda", engine="fused")


def renamed(root: Path) -> None:
    (root / "whole").rename(root / "elsewhere")


def removed(root: Path) -> None:
    shutil.rmtree(root / "whole")


def unmounted(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    root.mkdir()


def striking_second(monkeypatch: pytest.MonkeyPatch, strike: Callable[[], None]) -> list[str]:
    """Call `strike` when the second pack begins; return a list that collects the packs that have begun."""
    started: list[str] = []

    class Striking(TorchEngine):
        def start(self, pack: Pack, **given: Any) -> Training:
            started.append(pack.id)
            if len(started) == 2:
                strike()
            return super().start(pack, **given)

        def prepare(self, cell: object) -> None:
            """Do nothing."""

    use_engines(monkeypatch, {"torch": Striking()})
    return started


def run_pack_by_pack(root: str | Path) -> Ending:
    options = Options(root=root, tracking_uri=None, local=True, pack_size=1, patience_s=0.0)
    return run(planned(), options, Console(file=io.StringIO()))


@pytest.mark.parametrize("strike", [renamed, removed, unmounted])
def test_a_run_ends_if_its_folder_vanishes(tmp_path, monkeypatch, strike):
    """If its folder vanishes, a run ends after its patience with a message; it trains and writes nothing more."""
    root = tmp_path / "studies"
    started = striking_second(monkeypatch, partial(strike, root))
    with pytest.raises(StudyGoneError, match=r"'whole' is not in the store at .* just now: it was removed"):
        run_pack_by_pack(root)
    assert len(started) == 2
    assert not (root / "whole").exists()
    assert {path.name for path in root.iterdir()} == ({"elsewhere"} if strike is renamed else set())
    stored = [path.stem for path in tmp_path.rglob("results/*")]
    assert stored == ([] if strike is removed else started[:1])


def test_a_run_ends_if_its_objects_vanish(s3, monkeypatch):
    """If its objects vanish from an object store, a run ends with a message, and writes no object again."""
    url = f"{s3.bucket()}/studies"
    folder = Store(url).study("whole")._folder

    def objects() -> list[str]:
        return [entry["path"] for entries in obstore.list(folder._store) for entry in entries]

    def strike() -> None:
        assert objects()
        obstore.delete(folder._store, objects())

    started = striking_second(monkeypatch, strike)
    with pytest.raises(StudyGoneError, match=r"'whole' is not in the store at s3://"):
        run_pack_by_pack(url)
    assert len(started) == 2
    assert objects() == []


def test_a_report_does_not_recreate_a_renamed_study(tmp_path):
    """A study that is renamed while its report is drawn gets no folder at its old place."""
    run_here(planned(), tmp_path)
    results = load_results("whole", tmp_path)
    renamed(tmp_path)
    with pytest.raises(StudyError, match="can't write the report"):
        write_study_report(results, formats=["csv"])
    assert not (tmp_path / "whole").exists()


def test_a_replaced_driver_stops_with_a_message(tmp_path, monkeypatch):
    """A driver that was replaced by another stores no failures, and ends with a message."""
    folder = Store(tmp_path).study("whole")
    started = striking_second(monkeypatch, folder.begin_attempt)
    with pytest.raises(BusyError, match="'whole' was taken over by another run: this run of it stops"):
        run_pack_by_pack(tmp_path)
    assert len(started) == 2
    assert folder.pack_ids() == {started[0]}

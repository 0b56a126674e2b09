"""Devices of a study of tasks and models in packs: the CPU by default, GPUs on request."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
import torch

from study.cluster import Capacity
from study.console import Console
from study.driver.engines import resolve_to_estimate
from study.driver.options import Options
from study.driver.resources import Resources, slots_of_cluster
from study.errors import DeviceError
from study.plan.packs import make_bundles
from study.plan.plan import Plan, make_plan
from study.run import run
from study.store import Store
from tests.study.lab import packed_study

MIXED = Capacity(cpus=24, gpus=2, cpus_without_gpu=8)


def planned(folder: Path, models: Sequence[str] = ("mylab.models:mlp",)) -> Plan:
    return make_plan(packed_study(folder, models=list(models), seeds=2))


@pytest.mark.parametrize(
    ("device", "packs_per_gpu", "expected"),
    [("auto", 1, {"cpu": 24}), ("cpu", 1, {"cpu": 24}), ("cuda", 1, {"cuda": 2}), ("cuda", 4, {"cuda": 8})],
)
def test_gpus_train_user_packs_only_on_request(
    packed_lab: Path, tmp_path: Path, device: str, packs_per_gpu: int, expected: dict[str, int]
) -> None:
    """`auto` selects the CPU of any cluster; a worker on a GPU takes all of it, or its share."""
    plan = planned(packed_lab)
    engines = resolve_to_estimate(plan, Options(tmp_path, None, device=device, packs_per_gpu=packs_per_gpu))
    assert slots_of_cluster(engines, MIXED) == expected


def test_a_gpu_trains_one_user_pack_at_a_time(packed_lab: Path, tmp_path: Path) -> None:
    """A pack has at most as many trials as fit, and shares the GPU with no other, unlike built-in packs."""
    plan = planned(packed_lab, models=["mylab.models:mlp", "mylab.models:dropping"])
    engines = resolve_to_estimate(plan, Options(tmp_path, None, device="cuda"))
    resources = Resources(engines, {"cuda": 1}, lambda cell: 12, plan)
    folder, console = Store(tmp_path).study("spirals"), Console(file=StringIO())
    formed = resources.form(plan.trials, folder, console)
    assert {trial.id for pack in formed.packs for trial in pack.trials} == {trial.id for trial in plan.trials}
    assert all(len(pack.trials) <= 12 for pack in formed.packs)
    assert list(formed.bundles) == [(pack,) for pack in formed.packs]
    beside = make_bundles(formed.packs, slots=1, at_once=resources.at_once)
    assert len(beside) < len(formed.bundles)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_missing_gpu_is_an_error_before_anything_is_written(packed_lab: Path, tmp_path: Path) -> None:
    store = tmp_path / "studies"
    with pytest.raises(DeviceError, match="torch sees no GPU here"):
        run(planned(packed_lab), Options(store, None, device="cuda"), Console(file=StringIO()))
    assert not store.exists()

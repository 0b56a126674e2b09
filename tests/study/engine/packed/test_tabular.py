"""Trials that learn a user's table: their ids and their bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from study.driver.own_engine import own_engine, proven, training_notices
from study.errors import SpecError
from study.plan.plan import Plan, make_plan, study_cells
from study.spec import Spec, parse_spec
from tests.study.engine.packed.test_engine import trained

STUDY: dict[str, Any] = {
    "study": "ingots",
    "task": {"name": "tabular", "file": "ingots.csv", "outputs": ["strength", "impact"], "batch_size": 16},
    "models": ["mlp-NALU"],
    "grid": {"learning_rate": [0.01, 0.001]},
    "seeds": 3,
    "protocol": {"iterations": 6, "evaluate_every": 2},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file of 60 rows."""
    x = np.random.Generator(np.random.PCG64(0)).uniform(1, 2, (60, 3))
    rows = [f"{a:.6f},{b:.6f},{c:.6f},{a * b:.6f},{a + c:.6f}\n" for a, b, c in x]
    (tmp_path / "ingots.csv").write_text("sulphur,nitrogen,weight,strength,impact\n" + "".join(rows))
    return tmp_path


def spec(folder: Path, **task: Any) -> Spec:
    text = yaml.safe_dump(STUDY | {"task": STUDY["task"] | task}, sort_keys=False)
    return parse_spec(text, source="ingots.yaml", folder=folder)


def planned(folder: Path, **task: Any) -> Plan:
    return make_plan(spec(folder, **task))


def test_ids_depend_on_the_content_of_the_file(folder: Path) -> None:
    """A renamed file keeps the ids; changed content changes them."""
    before = [cell.id for cell in study_cells(spec(folder))]
    (folder / "other.csv").write_bytes((folder / "ingots.csv").read_bytes())
    assert [cell.id for cell in study_cells(spec(folder, file="other.csv"))] == before
    with (folder / "ingots.csv").open("a") as file:
        file.write("1,1,1,1,2\n")
    assert not set(before) & {cell.id for cell in study_cells(spec(folder))}


def test_a_result_does_not_depend_on_the_pack(folder: Path) -> None:
    """Trials of a table train side by side, with the bits that they have alone and in any slices."""
    plan = planned(folder, split="extrapolate", split_column="sulphur", constant=True)
    engine = proven(own_engine(plan.spec), plan, folder / "store")
    assert not training_notices(plan.cells, engine)
    packed = trained(engine, plan.trials)
    assert trained(engine, plan.trials, for_s=0.0) == packed
    assert trained(engine, plan.trials[::-1]) == packed[::-1]
    assert trained(engine, plan.trials[4:5]) == [packed[4]]
    for result, *_ in packed:
        assert {f"test_{name}_strength" for name in ("mae", "rmse", "relative_mae", "r2")} < set(result.metrics)
        assert result.metrics["test_rmse_impact"] >= result.metrics["test_mae_impact"] > 0


def test_a_wrong_file_is_refused_with_the_line_of_the_study(folder: Path) -> None:
    """The message has the lines of both files."""
    with (folder / "ingots.csv").open("a") as file:
        file.write("1,2,3\n")
    message = "line 4: task.file: ingots.csv, line 62: must have 5 fields"
    with pytest.raises(SpecError, match=message):
        spec(folder)

"""Hydra's multiruns as study files, and their jobs as trials.

The folder multirun was written by Hydra 1.3; its last job of eight was removed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import study
from study.driver.sweeps import sweep_of_hydra
from study.records import IMPORTED
from study.spec import load_spec
from tests.commands import invoke

# MLflow and its imports must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

JOBS = Path("multirun/2026-01-31/12-00-00")
# It computes the jobs' results from the overrides.
PROGRAM = """
import json, random, sys
given = dict(word.lstrip("+").split("=", 1) for word in sys.argv[1:])
assert given["note"] == "'a b'"
lr = {"sgd": 0.1, "adam": 0.01}[given["optimizer"]]
loss = random.Random(int(given["seed"])).random() / int(given["model.width"]) + lr
with open(given["hydra.run.dir"] + "/metrics.json", "w") as file:
    json.dump({"loss": loss, "accuracy": 1 / (1 + loss)}, file)
"""


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(__file__).parent / "multirun", "multirun")
    Path("train.py").write_text(PROGRAM)
    Path("conf").mkdir()
    Path("conf/config.yaml").write_text("seed: 0\n")


def test_the_jobs_of_a_product_are_a_grid_that_runs():
    """Overrides, seeds, program, configurations and results are those of the jobs."""
    made = invoke("new", "mine", "--from-hydra", "multirun")
    assert made.exit_code == 0, made.output
    assert "the jobs are 7 of the 8 trials of all seeds" in made.stderr
    spec = load_spec("mine.yaml")
    overrides = "optimizer={optimizer} model.width={model.width} +note={note} seed={seed} hydra.run.dir={folder}"
    assert spec.command == f"python train.py {overrides}"
    assert spec.grid.explicit == {"optimizer": ["sgd", "adam"], "model.width": [8, 16]}
    assert spec.fixed.explicit == {"note": "'a b'"}
    assert (list(spec.first_seeds), spec.include) == ([0, 1], ("conf",))
    assert {name: metric.better for name, metric in spec.metrics.items()} == {"loss": "lower", "accuracy": "higher"}
    ran = invoke("run", "mine.yaml", "--local", "--tracking-uri", "off")
    assert "8/8 trials" in ran.output, ran.output


def test_a_program_without_results_is_run_once():
    """A program whose jobs left no results runs with the overrides and configurations of the first job."""
    for file in JOBS.glob("*/metrics.json"):
        file.unlink()
    with Path("train.py").open("a") as file:
        file.write("open(__file__.replace('train.py', 'conf/config.yaml')).close()\n")
    made = invoke("new", "mine", "--from-hydra", "multirun")
    assert "can't be tried" not in made.stderr
    assert list(load_spec("mine.yaml").metrics) == ["accuracy", "loss"]


def test_finished_jobs_are_trials():
    """Imported jobs have the bits of this package's runs, and only missing trials are run."""
    assert invoke("new", "mine", "--from-hydra", "multirun").exit_code == 0
    refused = invoke("import", "hydra", "multirun", "mine.yaml")
    assert refused.exit_code == 2
    assert "must have a version" in refused.output
    with Path("mine.yaml").open("a") as file:
        file.write("version: 1\n")
    (JOBS / "0" / "metrics.json").unlink()
    imported = invoke("import", "hydra", "multirun", "mine.yaml")
    assert "mine: 6 trials imported from Hydra's multirun multirun" in imported.output
    assert "1 run that have no" in imported.output
    assert invoke("run", "mine.yaml", "--local", "--tracking-uri", "off").exit_code == 0
    assert sorted(study.open("mine").trials()["engine"]) == [IMPORTED] * 6 + ["program"] * 2
    assert "6 of 8 trials ran elsewhere" in invoke("show", "mine").output.replace("\n", " ")
    Path("other.yaml").write_text(Path("mine.yaml").read_text().replace("study: mine", "study: other"))
    adopted = invoke("run", "other.yaml", "--local", "--tracking-uri", "off").output.replace("\n", " ")
    assert "6 of 8 trials ran elsewhere and were imported from Hydra's multirun multirun" in adopted
    verified = invoke("verify", "mine.yaml", "--share", "100%")
    assert "8 of 8 trials" in verified.output
    assert "all have the stored bits" in verified.output


def test_the_seed_comes_from_the_configuration():
    """Without a seed override, the command gets one, and the jobs have the seed of their configuration."""
    for job in ("1", "3", "5"):  # the jobs of seed 1
        shutil.rmtree(JOBS / job)
    for file in JOBS.glob("*/.hydra/overrides.yaml"):
        file.write_text(file.read_text().replace("- seed=0\n", ""))
    assert invoke("new", "mine", "--from-hydra", "multirun").exit_code == 0
    with Path("mine.yaml").open("a") as file:
        file.write("version: 1\n")
    assert "seed={seed}" in load_spec("mine.yaml").command
    imported = invoke("import", "hydra", "multirun", "mine.yaml")
    assert "mine: 4 trials imported" in imported.output, imported.output


def test_incomplete_products_become_points():
    """If the product of overrides is incomplete, each job's combination becomes a point."""
    for job in ("6",):  # adam with a width of 16
        shutil.rmtree(JOBS / job)
    sweep = sweep_of_hydra(JOBS, Path())
    assert sweep.grid == {}
    assert sweep.points == [
        {"optimizer": "sgd", "model.width": 8},
        {"optimizer": "sgd", "model.width": 16},
        {"optimizer": "adam", "model.width": 8},
    ]


def test_points_of_jobs_run():
    """The file runs the jobs' points with each seed."""
    shutil.rmtree(JOBS / "6")
    assert invoke("new", "mine", "--from-hydra", "multirun").exit_code == 0
    ran = invoke("run", "mine.yaml", "--local", "--tracking-uri", "off")
    assert "6/6 trials" in ran.output, ran.output


def test_jobs_of_another_program_or_with_other_overrides_are_not_imported():
    """A job is a trial only if the command has exactly its overrides."""
    assert invoke("new", "mine", "--from-hydra", "multirun").exit_code == 0
    text = Path("mine.yaml").read_text() + "version: 1\n"
    Path("mine.yaml").write_text(text.replace("+note={note}", "note={note}"))
    refused = invoke("import", "hydra", "multirun", "mine.yaml")
    assert "nothing was imported: 7 runs that match no planned trial" in refused.output
    Path("train2.py").write_text(PROGRAM)
    Path("mine.yaml").write_text(text.replace("train.py", "train2.py"))
    refused = invoke("import", "hydra", "multirun", "mine.yaml")
    assert "the jobs ran train.py with overrides alone" in refused.output


def test_a_folder_without_a_multirun_is_an_error():
    """The error has the given value and the rule; nothing is written."""

    def refusal(folder: str) -> str:
        refused = invoke("new", "mine", "--from-hydra", folder)
        assert refused.exit_code == 2
        assert not Path("mine.yaml").exists()
        return refused.output

    assert "no such folder: nothing" in refusal("nothing")
    assert "conf has no multirun.yaml" in refusal("conf")
    shutil.copytree(JOBS, JOBS.parent / "13-00-00")
    assert "has 2 multiruns" in refusal("multirun")
    for seed in ("x", "-1"):
        (JOBS / "0/.hydra/overrides.yaml").write_text(f"- seed={seed}\n")
        for job in "123456":
            shutil.rmtree(JOBS / job, ignore_errors=True)
        assert "seed must be a whole number of at least 0 in each job" in refusal(str(JOBS))
    (JOBS / "0/.hydra/hydra.yaml").write_text("hydra: 3")
    assert "must have hydra.job and hydra.runtime" in refusal(str(JOBS))
    for job in JOBS.glob("*/.hydra"):
        shutil.rmtree(job)
    assert "has no jobs" in refusal(str(JOBS))

"""The Python interface of a study: the command line's operations, and results as DataFrames."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import study
from study.api import frames
from study.errors import InputError, UnknownStudyError
from tests.commands import invoke

# MLflow and its imports must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

LITTLE = {
    "study": "little",
    "question": "Does it learn to multiply?",
    "task": {"name": "simple"},
    "models": ["NMU", "NAC-mul"],
    "grid": {"hidden_size": [2, 3]},
    "seeds": 3,
    "fixed": {"batch_size": 16},
    "protocol": {"iterations": 40, "evaluate_every": 10, "evaluation_rows": 50},
}


@pytest.fixture(scope="module", name="store")
def _store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a little study, and a second one with another learning rate; return their store."""
    store = tmp_path_factory.mktemp("api") / "studies"
    for name, rate in (("little", 1e-3), ("faster", 1e-2)):
        fixed = {"fixed": {"batch_size": 16, "learning_rate": rate}, "study": name}
        loaded = study.load(LITTLE | fixed, store=store, tracking_uri="off")
        assert loaded.run(local=True, engine="torch") is loaded
    return store


@pytest.fixture(name="little")
def _little(store: Path) -> study.Study:
    return study.open("little", store=store, tracking_uri="off")


def test_importing_the_package_imports_nothing_else() -> None:
    """Names are available at once; their dependencies are imported on first use."""
    heavy = "{'torch', 'numpy', 'pyarrow', 'pandas', 'ray', 'mlflow', 'rich', 'pydantic', 'study.api'}"
    code = (
        f"import sys, study; assert {{'load', 'open', 'report'}} <= set(dir(study)); print(set(sys.modules) & {heavy})"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "set()"
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        study.lod  # noqa: B018


def test_user_code_imports_its_names_from_the_package() -> None:
    """Each name of the package can be imported; those for training functions import neither torch nor pydantic."""
    for name in study.__all__:
        assert getattr(study, name).__name__ in (name, f"{name}_study")
    code = (
        "import sys; from study import Hyperparameter, Metric, seeded; print({'torch', 'pydantic'} & set(sys.modules))"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "set()"


def test_a_study_is_loaded_from_a_file_a_preset_or_a_mapping(tmp_path: Path) -> None:
    """A file and a mapping make the same study; mistakes are reported as for a file."""
    import yaml

    (tmp_path / "little.yaml").write_text(yaml.safe_dump(LITTLE))
    from_file, from_mapping = study.load(tmp_path / "little.yaml"), study.load(LITTLE)
    assert [cell.id for cell in from_file.planned.cells] == [cell.id for cell in from_mapping.planned.cells]
    assert repr(study.load("demo")) == "<Study demo: 400 trials in 20 cells>"
    with pytest.raises(InputError, match="did you mean 'NMU'"):
        study.load(LITTLE | {"models": ["NMUU"]})
    with pytest.raises(UnknownStudyError, match="nothing"):
        study.open("nothing", store=tmp_path)


def test_the_plan_equals_the_output_of_the_command(tmp_path: Path) -> None:
    """The plan has the command's output as text, and an HTML form."""
    plan = study.load("demo", store=tmp_path / "none").plan(quick=True)
    printed = invoke("plan", "demo", "--quick", "--store", str(tmp_path / "none")).output
    assert str(plan).split() == printed.split()
    assert "400 trials" in plan._repr_html_()


def test_trials_have_the_documented_columns(little: study.Study) -> None:
    """Each trial is a row with its axes, hyperparameters, outcome and metrics; integers stay integers."""
    trials = little.trials()
    assert len(trials) == 12
    assert trials.groupby(["model", "hidden_size"], observed=True).size().tolist() == [3] * 4
    assert set(trials["outcome"]) <= {"solved", "unsolved"}
    own = {*frames.TRIAL_COLUMNS, "sparsity_error", "test_mse", "validation_mse"}
    hyperparameters = set(little.results().plan.cells[0].names)
    assert set(trials.columns) <= own | hyperparameters
    assert trials["trained_iterations"].dtype == pd.Int64Dtype()
    assert trials["trained_iterations"].tolist() == [40] * 12
    assert trials["test_mse"].notna().all()


def test_the_page_lists_the_columns() -> None:
    """docs/reference/python.md has each column of trials and its meaning."""
    page = Path("docs/reference/python.md").read_text()
    assert all(f"| `{name}` | {meaning} |" in page for name, meaning in frames.TRIAL_COLUMNS.items())
    assert all(f"`{name}`" in page.partition("`s.curves(trials=None")[2] for name in frames.CURVE_COLUMNS)


def test_cells_are_those_of_the_report(little: study.Study, tmp_path: Path) -> None:
    """The frame has the columns and numbers of cells.csv."""
    frame = little.cells()
    (path,) = (path for path in little.report(tmp_path / "report", ["csv"]) if path.name == "cells.csv")
    stored_cells = pd.read_csv(path, float_precision="round_trip")
    assert list(frame.columns) == list(stored_cells.columns)
    for name in ("success_rate", "success_rate_upper", "sparsity_error_mean", "training_s_mean"):
        np.testing.assert_array_equal(frame[name].to_numpy(float), stored_cells[name].to_numpy(float))


def test_curves_have_a_row_for_each_evaluation(little: study.Study) -> None:
    """Curves hold all trials and metrics, or selected ones; a trial's metric is that of its best step."""
    trials, curves = little.trials(), little.curves()
    assert list(curves.columns)[:4] == list(frames.CURVE_COLUMNS)
    assert len(curves) == 12 * 5
    trial = trials.iloc[4]
    selected = little.curves([trial["trial_id"]], ["validation_mse"])
    assert list(selected.columns) == [*frames.CURVE_COLUMNS, "validation_mse"]
    assert selected["iteration"].tolist() == [0, 10, 20, 30, 40]
    at_best = selected.loc[selected["iteration"] == trial["best_iteration"], "validation_mse"].item()
    assert at_best == pytest.approx(trial["validation_mse"], rel=1e-6)


def test_weights_are_a_state_dict(little: study.Study) -> None:
    """Weights of a trial load into its network; the trial is found by its id or a unique prefix of it."""
    trials = little.trials()
    trial = trials[(trials["model"] == "NMU") & (trials["hidden_size"] == 3)].iloc[0]["trial_id"]
    weights = little.weights(trial[:9])
    assert all(isinstance(weight, torch.Tensor) for weight in weights.values())
    assert sorted(tuple(weight.shape) for weight in weights.values()) == [(1, 3), (3, 4)]
    with pytest.raises(InputError, match="no trial of this study has that id"):
        little.weights("zz")


@pytest.mark.usefixtures("figures")
def test_figures_are_those_of_the_report(little: study.Study) -> None:
    """A figure is drawn by its name; an unknown or empty one is an error that lists the names."""
    assert little.figure().axes[0].get_ylabel() == "success rate"
    with pytest.raises(InputError, match=r"must be one of .*survival.* but got 'survive'"):
        little.figure("survive")
    with pytest.raises(InputError, match="has nothing for 'search-front'; it has figure"):
        little.figure("search-front")


def test_studies_are_compared(little: study.Study, store: Path) -> None:
    """The comparison has one row per cell, as in comparison.csv."""
    compared = little.compare(study.open("faster", store=store))
    assert len(compared) == 4
    assert {"difference", "p_value", "verdict"} <= set(compared.columns)
    pd.testing.assert_frame_equal(compared, little.compare("faster"))


def test_a_notebook_shows_table_and_finding(little: study.Study, tmp_path: Path) -> None:
    """A study is shown by its table, or by its size if it hasn't run; text is escaped."""
    page = little._repr_html_()
    assert page.count("<tr>") == 5
    assert "Does it learn to multiply?" in page
    assert "NAC•" in page
    assert str(little.table()).split() == invoke("show", "little", "--store", str(little.where.store)).output.split()
    new = study.load(LITTLE | {"question": "<script>"}, store=tmp_path)
    assert "12 trials in 4 cells" in new._repr_html_()
    assert "<script>" not in new._repr_html_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpu": 2}, "no such option: 'cpu'; did you mean 'cpus'"),
        ({"device": "gpu"}, "device must be one of auto, cpu, cuda, but got 'gpu'"),
        ({"cpus": 0}, "cpus must be at least 1, but got 0"),
        ({"cpus": "two"}, "cpus: input should be a valid integer, but got 'two'"),
        ({"workers": 2.5}, "workers: input should be a valid integer, but got 2.5"),
        ({"local": "no"}, "local: input should be a valid boolean, but got 'no'"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict[str, object], message: str) -> None:
    """An invalid option is an error before anything starts."""
    with pytest.raises(InputError, match=message):
        study.load(LITTLE, store=tmp_path).run(**options)
    with pytest.raises(InputError, match=message):
        study.load(LITTLE, store=tmp_path).plan(**options)


def test_a_plan_has_the_power_of_its_comparisons(tmp_path: Path) -> None:
    """The full plan has, as text and as data, the power of its comparisons and the seeds to detect a difference."""
    loaded = study.load(LITTLE, store=tmp_path)
    planned = loaded.plan(difference=0.25, engine="torch")
    assert "a difference of 0.25 takes" in " ".join(str(planned).split())
    design = planned.data["design"]
    assert (design["wanted"], design["seeds"]) == (0.25, 3)
    assert design["wanted_seeds"] > 60
    for wrong in (0.0, 1.5):
        with pytest.raises(InputError, match=rf"difference must be in \(0, 1\], but got {wrong:g}"):
            loaded.plan(difference=wrong)
    with pytest.raises(InputError, match="difference can't be combined with quick"):
        loaded.plan(difference=0.5, quick=True)


def test_an_opened_study_is_read_only(little: study.Study) -> None:
    """A study that was opened without its file can't be run."""
    with pytest.raises(InputError, match="was opened to be read"):
        little.run(local=True)


def test_a_study_runs_in_a_thread_and_in_an_event_loop(tmp_path: Path) -> None:
    """A study runs outside the main thread, and within a running event loop."""
    in_thread = study.load(LITTLE | {"study": "thread", "seeds": 1}, store=tmp_path / "studies", tracking_uri="off")
    thread = threading.Thread(target=in_thread.run, kwargs={"local": True, "engine": "torch"})
    thread.start()
    thread.join()
    assert len(in_thread.trials()) == 4

    async def train() -> int:
        in_loop = study.load(LITTLE | {"study": "loop", "seeds": 2}, store=tmp_path / "studies", tracking_uri="off")
        return len(in_loop.run(local=True, engine="torch").trials())

    assert asyncio.run(train()) == 8

"""A job uses the submitted code and data, even if the user's folder is deleted."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from study.driver.heartbeat import IN_JOB
from study.jobs import Order
from study.jobs.rows import Job
from study.jobs.submit import order_of
from study.results.submitted_files import submitted_files
from study.spec import Spec, load_spec
from study.store import Store
from tests.commands import invoke
from tests.study.lab import STUDY

TABLE = {
    "study": "mine",
    "task": {"name": "tabular", "file": "data/rows.csv", "outputs": ["product"], "batch_size": 8},
    "models": ["mlp"],
    "seeds": 2,
    "protocol": {"iterations": 2, "evaluate_every": 1},
}


def own_code(folder: Path) -> dict[str, object]:
    """Return a study of the function in the folder; the study also includes a file."""
    (folder / "notes.txt").write_text("read by nobody")
    return STUDY | {"seeds": 2, "include": ["notes.txt"]}


def own_data(folder: Path) -> dict[str, object]:
    """Write a table into the folder, and return its study."""
    (folder / "data").mkdir()
    rows = [f"{a},{b},{a * b}\n" for a in range(6) for b in range(6)]
    (folder / "data" / "rows.csv").write_text("a,b,product\n" + "".join(rows))
    return TABLE


def run_job(order: Order, folder: Path) -> str:
    """Run a job's command in its folder, without the cluster, and return its output."""
    folder.mkdir()
    (folder / "study.yaml").write_text(order.spec)
    for name, content in order.code.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    words = shlex.split(order.entrypoint.partition(" -- ")[2].replace("--address auto", "--local"))
    done = invoke(*(str(folder / word) if word == "study.yaml" else word for word in words))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(name="submitted")
def _submitted(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Order, Spec]]:
    """Return a function that submits a study from the user's folder and deletes the folder."""
    monkeypatch.setenv(IN_JOB, "1")

    def submit(content: Callable[[Path], dict[str, object]]) -> tuple[Order, Spec]:
        file = lab / "mine.yaml"
        file.write_text(yaml.safe_dump(content(lab), sort_keys=False))
        spec = load_spec(file)
        options = {"tracking_uri": "off", "pack_size": 1}
        order = Order(spec.study, spec.text, str(tmp_path / "studies"), options, submitted_files(spec))
        shutil.rmtree(lab)
        return order, spec

    return submit


def resumed(order: Order) -> Order:
    """Return the command of `study resume` for a job."""
    return order_of(Job("study-mine-0", "STOPPED", order.metadata, "", None, 0.0, None, None))


@pytest.mark.parametrize(("content", "trials"), [(own_code, 4), (own_data, 2)])
def test_a_resumed_job_trains_what_is_missing(
    submitted: Callable[..., tuple[Order, Spec]],
    tmp_path: Path,
    content: Callable[[Path], dict[str, object]],
    trials: int,
) -> None:
    """Lost results are trained again by the stored copy; existing ones are kept."""
    order, _ = submitted(content)
    run_job(order, tmp_path / "first")
    store = Path(order.store)
    done = Store(store).study("mine").done()
    assert len(done) == trials
    lost = sorted((store / "mine" / "results").iterdir())[0]
    lost.unlink()
    assert len(Store(store).study("mine").done()) == trials - 1
    resumed_order = resumed(order)
    assert not resumed_order.code
    run_job(resumed_order, tmp_path / "second")
    assert Store(store).study("mine").done() == done


def test_only_submitted_code_is_run(submitted: Callable[..., tuple[Order, Spec]], tmp_path: Path) -> None:
    """A changed or missing copy, and another file in its place, are errors with instructions."""
    order, _ = submitted(own_code)
    run_job(order, tmp_path / "first")
    resumed_order = resumed(order)
    (tmp_path / "second").mkdir()
    file, copy = tmp_path / "second" / "study.yaml", next((Path(order.store) / "mine" / "code").glob("*.zip"))
    file.write_text(order.spec)
    words = ("run", str(file), "--local", "--store", order.store, "--tracking-uri", "off", "--code-copy")

    (tmp_path / "second" / "mylab").mkdir()
    (tmp_path / "second" / "mylab" / "training.py").write_text("# mine")
    other = invoke(*words, f"mine/{resumed_order.code_copy}")
    assert other.exit_code == 2
    assert "training.py differs from the file that the study was submitted with" in " ".join(other.output.split())

    shutil.rmtree(tmp_path / "second" / "mylab")
    copy.write_bytes(copy.read_bytes().replace(b"no luck", b"my luck"))
    changed = invoke(*words, f"mine/{resumed_order.code_copy}")
    assert changed.exit_code == 2
    assert not (tmp_path / "second" / "mylab").exists()

    copy.unlink()
    missing = invoke(*words, f"mine/{resumed_order.code_copy}")
    assert missing.exit_code == 2
    assert "submit the study's file again" in " ".join(missing.output.split())

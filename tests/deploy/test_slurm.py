"""Studies on a real Slurm cluster of two nodes: trained, stopped, requeued, preempted, and killed."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from study.arrow import table_results
from study.records import Outcome, Result
from study.store import Store
from tests.deploy.counting import SEEDS, TRAINING, is_undisturbed, study_file
from tests.deploy.slurm import NODES, Slurm, missing
from tests.faults.places import Network
from tests.faults.places import missing as missing_places
from tests.processes import command_line, wait_for

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "slurm" / "study.sbatch"
BIN = Path(sys.executable).parent
STEPS = 1500
_UNENDED = ("PENDING", "RUNNING", "COMPLETING", "PREEMPTED", "REQUEUED")


class Lab:
    """A study in a folder that all nodes see, and the jobs that run it."""

    def __init__(self, folder: Path, network: Network) -> None:
        self.folder, self.waits, self.network = folder, folder / "waits", network
        self.waits.mkdir()
        self.slurm = Slurm(network, folder)
        self.slurm.environment |= {"STUDY_BIN": str(BIN), "STUDY_PRIVATE": str(folder)}
        (folder / "counting.py").write_text(TRAINING)
        (folder / "counting.yaml").write_text(study_file(str(self.waits), STEPS))

    def submit(self, *study: str, options: Sequence[str] = ()) -> str:
        """Submit a study to two nodes, and return the number of the job."""
        words = ["--parsable", "--nodes=2", "--cpus-per-task=1", f"--output={self.folder}/%j.log", *options]
        words += [str(SCRIPT), *study, "--store", str(self.folder / "studies"), "--tracking-uri", "off"]
        return self.slurm("sbatch", *words, "--checkpoint-every-s", "0").strip()

    def log(self, job: str) -> str:
        path = self.folder / f"{job}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def state(self, job: str) -> str:
        return self.slurm("scontrol", "show", "job", job).partition("JobState=")[2].split()[0]

    def wait_until_trains(self, job: str) -> None:
        """Wait until both nodes are in the middle of a trial."""
        wait_for(lambda: self._train_both(job), "training on both nodes")

    def _train_both(self, job: str) -> bool:
        assert self.state(job) in _UNENDED, self.log(job)
        addresses = {path.name.split("-")[-1] for path in self.waits.glob("*-*-*")}
        return addresses == {self.network.address(number) for number in NODES}

    def keep_ray_from_starting(self) -> None:
        """Make `ray start` wait for ever, on all nodes."""
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "study").symlink_to(BIN / "study")
        ray = programs / "ray"
        ray.write_text(f'#!/bin/sh\n[ "$1" != start ] || exec sleep infinity\nexec {BIN}/ray "$@"\n')
        ray.chmod(0o755)
        self.slurm.environment["STUDY_BIN"] = str(programs)

    def hurry(self) -> None:
        """Let the trials end as soon as possible."""
        (self.waits / "hurry").touch()

    def wait_until_ended(self, job: str, state: str) -> None:
        """Wait until a job has ended, and check its state. Between two runs, a job may look ended for a moment."""
        assert wait_for(lambda: self._ended(job), "the end of the job") == state, self.log(job)

    def _ended(self, job: str) -> str | None:
        state = self.state(job)
        return state if state not in _UNENDED else None

    def wait_until_whole(self, job: str) -> None:
        """Wait until the job has ended and all trials have the results of an undisturbed run."""
        wait_for(lambda: len(self._results()) == SEEDS, "all results")
        self.wait_until_ended(job, "COMPLETED")
        results = self._results()
        assert {result.outcome for result in results.values()} == {Outcome.FINISHED}
        assert is_undisturbed({seed: dict(result.metrics) for seed, result in results.items()}, STEPS)

    def _results(self) -> dict[int, Result]:
        table = Store(self.folder / "studies", read_only=True).study("counting").read_results()
        return {result.trial.seed: result for result in table_results(table)}


@pytest.fixture
def lab() -> Iterator[Lab]:
    if (reason := missing() or missing_places()) is not None:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="slurm-"))
    network = Network()
    network.open()
    try:
        lab = Lab(folder, network)
        try:
            lab.slurm.start()
            yield lab
        finally:
            lab.slurm.end()
    finally:
        network.close()
        shutil.rmtree(folder)


def test_a_study_trains_on_two_nodes(lab: Lab) -> None:
    """Both nodes train, a second job trains beside the first, and no secret is readable by others."""
    secret = "not-to-be-seen"
    secrets = lab.folder / "secrets"
    secrets.write_text(f"AWS_SECRET_ACCESS_KEY={secret}\n")
    secrets.chmod(0o600)
    lab.slurm.environment |= {"STUDY_SECRETS": str(secrets)}
    first, second = lab.submit("counting.yaml"), lab.submit("demo", "seeds=2")
    lab.wait_until_trains(first)
    visible = [command_line(int(path.name)) for path in Path("/proc").glob("[0-9]*")]
    visible += [lab.slurm("squeue", "--format=%all").encode(), lab.slurm("scontrol", "show", "job").encode()]
    lab.hurry()
    lab.wait_until_whole(first)
    lab.wait_until_ended(second, "COMPLETED")
    assert Store(lab.folder / "studies", read_only=True).study("demo").read_results().num_rows == 40
    assert secret not in lab.log(first) + lab.log(second)
    assert not any(secret.encode() in text for text in visible)


def test_time_that_is_over_requeues_the_job(lab: Lab) -> None:
    """Before its time limit, the job stops the study with checkpoints; the requeued job resumes the study."""
    job = lab.submit("counting.yaml", options=["--time=3", "--signal=B:USR1@60"])
    wait_for(lambda: "requeued: the study goes on from its store" in lab.log(job), "the time to be nearly over")
    lab.hurry()
    lab.wait_until_whole(job)


def test_a_job_whose_time_is_over_before_the_study_begins_is_requeued(lab: Lab) -> None:
    """Slurm's signal while the job waits for Ray's nodes requeues the job before the study begins."""
    lab.keep_ray_from_starting()
    job = lab.submit("counting.yaml", options=["--time=1", "--signal=B:USR1@60"])
    wait_for(lambda: "requeued: the study goes on from its store" in lab.log(job), "the job to requeue itself")
    lab.slurm("scancel", job)
    assert "trials in 1 cell" not in lab.log(job)


def test_a_preempted_job_goes_on(lab: Lab) -> None:
    """After preemption by a partition with priority, Slurm runs the study's job again on free nodes."""
    job = lab.submit("counting.yaml")
    lab.wait_until_trains(job)
    words = ["--parsable", "--partition=high", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=true"]
    other = lab.slurm("sbatch", *words).strip()
    lab.wait_until_ended(other, "COMPLETED")
    lab.hurry()
    lab.wait_until_whole(job)
    assert "told to stop by TERM" in lab.log(job)


def test_a_node_that_dies_requeues_the_job(lab: Lab) -> None:
    """Slurm runs the job again once the node is back."""
    job = lab.submit("counting.yaml")
    lab.wait_until_trains(job)
    lab.network.kill(NODES[-1])
    wait_for(lambda: lab.state(job) == "PENDING", "Slurm to miss the node")
    lab.hurry()
    lab.slurm.start_node(NODES[-1])
    lab.wait_until_whole(job)


def test_a_cancelled_job_leaves_nothing_behind(lab: Lab) -> None:
    """`scancel` ends the study and Ray on all nodes; another job goes on with the stored results."""
    job = lab.submit("counting.yaml")
    lab.wait_until_trains(job)
    lab.slurm("scancel", job)
    lab.wait_until_ended(job, "CANCELLED")
    for number in NODES:
        wait_for(lambda number=number: not lab.network.processes(number, "ray"), "Ray to end")
    lab.hurry()
    second_job = lab.submit("counting.yaml")
    lab.wait_until_whole(second_job)

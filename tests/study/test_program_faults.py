"""Disturbed programs and folders: kills, full disks, a hanging store, and very large output.

Each study runs in a process of its own, as for a user, and each program marks its progress by a file.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from study.arrow import table_results
from study.engine.calls.pump import HALF
from study.records import Outcome, Result
from study.store import Store
from study.store.trial_files import MOST_FILES
from tests.commands import DEADLINE_S, Start, starting
from tests.conftest import S3
from tests.processes import below, command_line, is_running, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

STUDY = """
study: counting
command: python count.py {seed} {wait}
results: steps.jsonl
resume: true
metrics: {loss: lower}
fixed: {wait: WAIT}
seeds: 2
"""
# Each trial waits midway until the file `go` exists, so that a fault comes at the same point on any machine.
COUNT = """
import json, os, sys, time
from pathlib import Path

seed, wait = sys.argv[1:]
done = int(Path("done").read_text()) if os.environ["STUDY_RESUME"] == "1" and Path("done").exists() else 0
for step in range(done, 6):
    with open("steps.jsonl", "a") as steps:
        steps.write(json.dumps({"step": step, "loss": 1 / (step + 1 + int(seed))}) + "\\n")
    Path("done").write_text(str(step + 1))
    if step == 2 and wait:
        Path(wait, f"middle-{seed}-{os.getpid()}").touch()
        while not Path(wait, "go").exists():
            time.sleep(0.01)
print("seed", seed, "began at step", done)
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "count.py").write_text(COUNT)
    (tmp_path / "waits").mkdir()
    (tmp_path / "counting.yaml").write_text(STUDY.replace("WAIT", str(tmp_path / "waits")))
    return tmp_path


@pytest.fixture
def study(lab: Path) -> Iterator[Start]:
    with starting(lab) as start:
        yield partial(start, "run", "counting.yaml", "--tracking-uri", "off", "--checkpoint-every-s", "0")


def in_the_middle(lab: Path) -> list[int]:
    """Return the process ids of the programs that have reached the middle."""
    return [int(path.name.rpartition("-")[2]) for path in (lab / "waits").glob("middle-*")]


def workers_of(driver: int, programs: Sequence[int]) -> tuple[int, set[int]] | None:
    """Return a program run by a worker of Ray and that worker's processes; None if no worker runs a program."""
    ray = {process for process in below(driver) if b"ray::" in command_line(process)}
    for program in programs:
        if workers := {process for process in ray if program in below(process)}:
            return program, workers
    return None


def results(lab: Path, root: str | None = None) -> dict[int, Result]:
    table = Store(root or lab / "studies", read_only=True).study("counting").read_results()
    return {result.trial.seed: result for result in table_results(table)}


def check_whole(lab: Path) -> None:
    """Check that both trials have the undisturbed results of their last steps."""
    trial_results = results(lab)
    assert {seed: dict(result.metrics) for seed, result in trial_results.items()} == {
        0: {"loss": 1 / 6},
        1: {"loss": 1 / 7},
    }
    assert {result.iterations for result in trial_results.values()} == {5}
    assert {result.outcome for result in trial_results.values()} == {Outcome.FINISHED}


@pytest.mark.parametrize("how", ["local", "beside the driver", "ray"])
def test_a_killed_driver_takes_its_programs_along(how: str, lab: Path, study: Start) -> None:
    """After a kill of the driver, programs end, and a second run resumes each trial without repeating steps."""
    driver = study(*(["--local"] if how == "local" else ["--cpus", "2"]))
    wait_for(
        lambda: workers_of(driver.pid, in_the_middle(lab)) if how == "ray" else in_the_middle(lab),
        "a program to reach its middle",
    )
    driver.kill()
    driver.communicate(timeout=DEADLINE_S)
    wait_for(lambda: not any(map(is_running, in_the_middle(lab))), "the programs to be killed")
    (lab / "waits" / "go").touch()
    output, _ = study("--local").communicate(timeout=DEADLINE_S)
    assert "2/2 trials" in output
    check_whole(lab)
    steps = [path.read_text().splitlines() for path in (lab / "studies" / "counting" / "files").glob("*/steps.jsonl")]
    assert [len(lines) for lines in steps] == [6, 6]


def test_a_killed_worker_is_replaced(lab: Path, study: Start) -> None:
    """On Ray, a killed worker's program ends with it, and another worker trains the pack."""
    driver = study("--cpus", "2")
    program, workers = wait_for(
        lambda: workers_of(driver.pid, in_the_middle(lab)), "a program of a worker to reach its middle"
    )
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: not is_running(program), "its program to be killed")
    (lab / "waits" / "go").touch()
    output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == 0, output
    check_whole(lab)


def test_a_killed_program_fails_alone_and_is_trained_again(lab: Path, study: Start) -> None:
    driver = study("--local")
    wait_for(lambda: in_the_middle(lab), "a program to reach its middle")
    os.kill(in_the_middle(lab)[0], signal.SIGKILL)
    (lab / "waits" / "go").touch()
    output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == 1
    assert "it was ended by SIGKILL (perhaps the machine ran out of memory)" in " ".join(output.split())
    assert [result.outcome for result in results(lab).values()].count(Outcome.FINISHED) == 1
    second = study("--local")
    output, _ = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0, output
    check_whole(lab)


def test_ctrl_c_lets_a_program_end_and_it_goes_on(lab: Path, study: Start) -> None:
    driver = study("--local")
    wait_for(lambda: in_the_middle(lab), "a program to reach its middle")
    driver.send_signal(signal.SIGINT)
    output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == 130, output
    assert not any(map(is_running, in_the_middle(lab)))
    (lab / "waits" / "go").touch()
    study("--local").communicate(timeout=DEADLINE_S)
    check_whole(lab)
    logs = "".join(path.read_text() for path in (lab / "studies" / "counting" / "files").glob("*/log.txt"))
    assert "began at step 3" in logs


@pytest.fixture
def small_disk(lab: Path) -> Iterator[Path]:
    """Mount a disk of 4 MB for the store; needs root."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a disk that is full needs root and mount")
    disk = lab / "studies"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine mounts no file systems")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_a_trial_has_filled(lab: Path, small_disk: Path) -> None:
    """A trial that fills the disk fails with the reason; results are stored when there is room again."""
    (lab / "fill.sh").write_text('echo "{\\"loss\\": 0.5}" > result.json\n[ "$1" = 0 ] || head -c 8M /dev/zero > big\n')
    (lab / "counting.yaml").write_text(
        "{study: counting, command: 'sh fill.sh {seed}', results: result.json, metrics: {loss: lower}, seeds: 2}"
    )
    with starting(lab) as start:
        driver = start("run", "counting.yaml", "--local", "--tracking-uri", "off")
        assert driver.stdout is not None
        heard = ""
        while "disk is full" not in heard and "failed" not in heard:
            line = driver.stdout.readline()
            assert line, heard
            heard += line
        wait_for(lambda: [*small_disk.glob("counting/files/*/big")] or driver.poll() is not None, "a large file")
        for path in small_disk.glob("counting/files/*/big"):
            path.unlink()
        output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == 1, heard + output
    trial_results = results(lab)
    assert {seed: result.outcome for seed, result in trial_results.items()} == {0: Outcome.FINISHED, 1: Outcome.FAILED}
    assert "No space left on device" in (trial_results[1].error or "")


def test_an_object_store_that_hangs_while_files_are_uploaded(lab: Path, own_s3: S3) -> None:
    """The run reports the wait, and ends when the store answers again, with all files."""
    root = own_s3.bucket()
    with starting(lab) as start:
        driver = start("run", "counting.yaml", "--local", "--tracking-uri", "off", "--store", root)
        wait_for(lambda: in_the_middle(lab) or driver.poll() is not None, "a program to reach its middle")
        own_s3.process.send_signal(signal.SIGSTOP)
        (lab / "waits" / "go").touch()
        assert driver.stdout is not None
        heard = ""
        while "no answer from the server" not in heard:
            line = driver.stdout.readline()
            assert line, heard
            heard += line
        own_s3.process.send_signal(signal.SIGCONT)
        output, _ = driver.communicate(timeout=DEADLINE_S)
        assert driver.returncode == 0, heard + output
        study = Store(root, read_only=True).study("counting")
        for trial in study.trials_with_files():
            assert {"log.txt", "steps.jsonl", "done"} <= study.file_sizes(trial).keys()
        assert len(results(lab, root)) == 2


def test_very_many_files_and_a_very_long_log(lab: Path) -> None:
    """With 10,000 files and a log of 1 GB, the limits hold, and the run reports dropped files and lines."""
    (lab / "much.sh").write_text(
        'i=0; while [ $i -lt 10000 ]; do : > "$i.txt"; echo x > "$i.txt"; i=$((i+1)); done\n'
        'echo first; head -c 1000000000 /dev/zero | tr "\\\\0" "x"; echo; echo last; echo "{\\"loss\\": 1}" > a.json\n'
    )
    (lab / "counting.yaml").write_text(
        "{study: counting, command: 'sh much.sh {seed}', results: a.json, metrics: {loss: lower}, seeds: 1}"
    )
    with starting(lab) as start:
        driver = start("run", "counting.yaml", "--local", "--tracking-uri", "off")
        output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == 0, output
    study = Store(lab / "studies", read_only=True).study("counting")
    (trial,) = study.trials_with_files()
    sizes = study.file_sizes(trial)
    assert len(sizes) == MOST_FILES
    assert sizes["log.txt"] <= 4 * HALF + 2**16
    log = study.read_file(study.trial_file(trial, "log.txt")) or b""
    assert log.startswith(b"first\n")
    assert log.endswith(b"last\n")
    assert b"bytes left out]" in log
    assert ": not kept: " in " ".join(output.split())

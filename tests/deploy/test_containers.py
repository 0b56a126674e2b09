"""The image and deploy/compose on a real Docker engine; `make test-containers` runs these."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from study.arrow import table_results
from study.records import Outcome
from study.store import Store
from tests.deploy.containers.docker import IMAGE, ROOT, Docker, missing, run
from tests.deploy.containers.stack import Stack
from tests.deploy.counting import SEEDS, TRAINING, is_undisturbed, study_file
from tests.processes import wait_for

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]
STEPS = 6000
_WAITS = "/tmp/waits"


@pytest.fixture(scope="module")
def docker() -> Iterator[Docker]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="containers-"))
    engine = Docker(folder)
    engine.start()
    try:
        engine.build_all()
        yield engine
    finally:
        engine.end()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def stack(docker: Docker) -> Iterator[Stack]:
    folder = docker.folder / "stack"
    folder.mkdir()
    stack = Stack(docker, folder)
    (stack.user / "counting.py").write_text(TRAINING)
    stack.up()
    yield stack
    stack.compose("down", "--volumes")


def submit(stack: Stack, name: str) -> None:
    (stack.user / f"{name}.yaml").write_text(study_file(_WAITS, STEPS, name))
    settings = ["--store", "s3://study", "--tracking-uri", "http://mlflow:5000", "--checkpoint-every-s", "1"]
    stack.study("submit", f"{name}.yaml", *settings)


def wait_until_joined(stack: Stack) -> None:
    """Wait until both workers belong to a newly started head."""

    def have_joined() -> bool:
        with suppress(AssertionError):  # the dashboard doesn't answer yet
            return "3 nodes · 2 CPUs" in stack.study("list", "--cluster", stack.cluster)
        return False

    wait_for(have_joined, "the workers to join the head")


def marks(stack: Stack, number: int) -> list[str]:
    """List the trials begun in a worker's container since its start."""
    container = stack.containers("worker")[number]["Id"]
    return stack.docker("exec", container, "bash", "-c", f"shopt -s nullglob; cd {_WAITS} && echo *-*").split()


def wait_until_trains(stack: Stack) -> None:
    """Wait until both workers are in the middle of a trial."""
    for number in (0, 1):
        container = stack.containers("worker")[number]["Id"]
        stack.docker("exec", container, "mkdir", "--parents", _WAITS)
        wait_for(lambda number=number: marks(stack, number), "training in both workers")


def wait_until_whole(stack: Stack, name: str) -> None:
    """Let the study hurry, and wait until its undisturbed results are stored and published."""
    for container in stack.containers("worker"):
        stack.docker("exec", container["Id"], "bash", "-c", f"mkdir -p {_WAITS} && touch {_WAITS}/hurry")
    wait_for(lambda: re.search(r"^state +finished", stack.study("status", name), re.M), f"the end of {name}")
    # The commands of docs/guides/deploy.md that bring a study to a laptop.
    packed = stack.inside("head", "bash", "-c", f"study export {name} /tmp/{name}.zip >&2 && cat /tmp/{name}.zip")
    (stack.user / f"{name}.zip").write_bytes(packed)
    stack.study("import", f"{name}.zip", "--store", "studies")
    table = Store(stack.user / "studies", read_only=True).study(name).read_results()
    results = {result.trial.seed: result for result in table_results(table)}
    assert {result.outcome for result in results.values()} == {Outcome.FINISHED}
    assert is_undisturbed({seed: dict(result.metrics) for seed, result in results.items()}, STEPS)
    assert stack.runs(name) == ["FINISHED"] * SEEDS


@pytest.mark.parametrize("user", ["10001:10001", "123456:789"])
@pytest.mark.parametrize("home", [(), ("--volume", "/home/study")])
def test_the_image_trains_as_any_user_and_writes_nowhere_else(docker: Docker, user: str, home: tuple[str, ...]) -> None:
    """A preset trains without a network, privileges or a home folder, on a read-only file system."""
    guards = ["--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp"]
    command = ["study", "run", "demo", "seeds=2", "--store", "/tmp/s"]
    output = docker("run", "--rm", *guards, *home, f"--user={user}", IMAGE, *command)
    assert "report:    /tmp/s/demo/report/report.html" in output


def test_a_study_outlives_every_container(stack: Stack) -> None:
    """A study survives the kill of each container, with a resume or a resubmission after two of them."""
    submit(stack, "killed")
    wait_until_trains(stack)
    for service in ("tls", "postgres", "mlflow", "s3"):
        stack.kill(service)
        wait_until_trains(stack)
    drives = [
        stack.study("status", "killed").count(f"driver on  {container['Id'][:12]}")
        for container in stack.containers("worker")
    ]
    stack.kill("worker", drives.index(0))
    wait_until_trains(stack)
    stack.kill("worker", drives.index(1))
    wait_for(lambda: re.search(r"^state +failed", stack.study("status", "killed"), re.M), "the driver to be missed")
    stack.study("resume", "killed")
    wait_until_trains(stack)
    stack.kill("head")
    wait_until_joined(stack)  # the workers notice after a minute, end, and are restarted
    submit(stack, "killed")
    wait_until_trains(stack)
    wait_until_whole(stack, "killed")


def test_a_study_goes_on_in_the_next_image(stack: Stack) -> None:
    """A stopped study goes on in the next image of head and workers when submitted again."""
    submit(stack, "upgraded")
    wait_until_trains(stack)
    stack.study("stop", "upgraded")
    stack.docker.build("stand-in/python", "study:next", "--label", "version=next")
    stack.up("study:next")
    wait_until_joined(stack)
    submit(stack, "upgraded")
    wait_until_trains(stack)
    wait_until_whole(stack, "upgraded")


def test_a_backup_is_restored(stack: Stack) -> None:
    """The manual's commands restore studies, runs and users after a loss of data."""
    stack.inside("head", "study", "run", "demo", "seeds=2")
    manual = (ROOT / "docs" / "guides" / "server.md").read_text()

    def documented(program: str) -> list[str]:
        match = re.search(rf"exec -T postgres (sh -c) '([^']* {program} [^']*)'", manual)
        assert match is not None
        return [*match[1].split(), match[2]]

    stack.mlflow("POST", "users/create", json={"username": "reader", "password": "a-long-password"})
    dump = stack.compose("exec", "-T", "postgres", *documented("pg_dump"))
    stack.compose("down", "--volumes")
    saved, data = stack.folder / "saved", stack.folder / "data"
    run(["cp", "--archive", data / "s3", saved])
    run(["find", data, "-mindepth", "2", "-delete"])
    run(["cp", "--archive", f"{saved}/.", data / "s3"])
    stack.up()
    stack.compose("stop", "mlflow")
    stack.compose("exec", "-T", "postgres", *documented("pg_restore"), given=dump)
    stack.compose("start", "mlflow")
    stack.up()
    assert stack.runs("demo") == ["FINISHED"] * 40
    assert stack.mlflow("GET", "users/get", params={"username": "reader"})["user"]["username"] == "reader"
    assert "40 trials" in stack.inside("head", "study", "run", "demo", "seeds=2").decode()

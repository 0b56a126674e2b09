"""Studies as jobs of a real Ray cluster of two nodes, through the command line."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from study.cli import main
from study.errors import ClusterError, InputError
from study.jobs import Order, connect_to_run, standing, standings, submit
from study.jobs.submit import _away_from_head
from study.store import Store
from tests.commands import PROGRESS_HEARD, blow
from tests.ray_clusters import (
    DEADLINE_S,
    SPEC,
    RayCluster,
    as_user,
    bits,
    ray_cluster,
    status,
    study,
    undisturbed,
    until,
)
from tests.study.lab import packed_study

# Warnings of Ray and its imports can't be fixed here.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file's path: a driver that hears of progress while the file is missing creates it, and stops itself."""
    return tmp_path_factory.mktemp("struck") / "struck"


@pytest.fixture(scope="module")
def two_nodes(struck: Path) -> Iterator[RayCluster]:
    """Yield a cluster of two nodes that requires a token."""
    with ray_cluster(2, secrets.token_hex(32), blow(struck, PROGRESS_HEARD, signal.SIGSTOP)) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return the study's undisturbed results."""
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


def order(store: Path | str, name: str, file: Path) -> list[str]:
    """Write a study file, and return the words that submit it."""
    file.write_text(SPEC.replace("NAME", name))
    words = ["submit", str(file), "--store", str(store), "--tracking-uri", "off", "--engine", "torch"]
    return [*words, "--checkpoint-every-s", "0"]


def driver_of(store: Path) -> int | None:
    """Return the id of the process that drives a store's study; None if there isn't one."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended meanwhile
            words = file.read_bytes().decode().split("\0")
            if "run" in words and "keep" not in words and str(store) in words:
                return int(file.parent.name)
    return None


def stopped_driver_of(store: Path) -> int:
    """Wait until the driver of a store's study has stopped itself, and return its process id."""
    stopped: list[int] = []

    def has_stopped() -> bool:
        driver = driver_of(store)
        if driver is not None and "\nState:\tT" in Path(f"/proc/{driver}/status").read_text():
            stopped.append(driver)
        return bool(stopped)

    until(has_stopped, "the driver to stop itself")
    return stopped[0]


def go_on_once_asked_to_end(process_id: int) -> None:
    """Wait until a stopped process has a pending SIGTERM, and continue it."""

    def is_asked() -> int:
        pending = re.search(r"ShdPnd:\t(\w+)", Path(f"/proc/{process_id}/status").read_text())
        assert pending is not None
        return int(pending[1], 16) & 1 << (signal.SIGTERM - 1)

    until(is_asked, "the request to end")
    os.kill(process_id, signal.SIGCONT)


def test_the_life_of_a_study(two_nodes, struck, tmp_path, expected):
    """A study submitted twice, stopped, resumed and hit by kill -9 runs once, to the undisturbed bits."""
    user, store = as_user(tmp_path, two_nodes), tmp_path / "studies"
    folder = Store(store).study("disturbed")
    command = [sys.executable, "-m", "study", *order(store, "disturbed", tmp_path / "d.yaml")]
    processes = [
        subprocess.Popen(command, env=user, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=DEADLINE_S)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert sorted("attached to study-disturbed-0" in text for text in outputs) == [False, True], outputs
    for text in outputs:
        for word in ("study status disturbed", "study logs disturbed --follow", "/#/jobs/study-disturbed-0"):
            assert word in text
    (tmp_path / "d.yaml").unlink()  # only the cluster is needed from here on

    driver = stopped_driver_of(store)  # workers wait for the stopped driver, so the study can't finish
    assert folder.checkpoints()
    other = submit(two_nodes.client, Order("disturbed", "another file", str(store)), print)
    assert (other.job_id, other.before is None, other.same_file) == ("study-disturbed-0", False, False)
    go_on = threading.Thread(target=go_on_once_asked_to_end, args=(driver,))
    go_on.start()
    stopped = CliRunner(env=user).invoke(main, ["stop", "disturbed"])
    go_on.join()
    assert stopped.exit_code == 0
    assert "disturbed has stopped, with checkpoints. `study resume disturbed` continues it" in stopped.output, (
        two_nodes.client.tail(two_nodes.client.job("study-disturbed-0"), 100)
    )
    content = status("disturbed", user, tmp_path)
    assert content["state"] == "stopped"
    assert any("interrupted" in line for line in content["said"])
    assert folder.checkpoints() or folder.done()

    struck.unlink()
    resumed = study("resume", "disturbed", environment=user, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stdout
    assert "as study-disturbed-1" in resumed.stdout
    os.kill(stopped_driver_of(store), signal.SIGKILL)
    log = study("logs", "disturbed", "--follow", environment=user, cwd=tmp_path)
    assert log.returncode == 0
    assert "the driver was killed by SIGKILL (perhaps the machine ran out of memory)" in log.stdout
    assert "4/4 trials" in log.stdout
    assert "@study" not in log.stdout
    assert bits(store, "disturbed") == expected

    listed = json.loads(study("list", "--cluster", "--json", environment=user, cwd=tmp_path).stdout)
    (entry,) = [entry for entry in listed["studies"] if entry["study"] == "disturbed"]
    assert (entry["job"], entry["state"], entry["store"]) == ("study-disturbed-1", "finished", str(store))
    assert entry["heartbeat"]["done"] == entry["heartbeat"]["trials"] == 4
    assert listed["cluster"]["nodes"] == 2
    over = study("stop", "disturbed", environment=user, cwd=tmp_path)
    assert (over.returncode, "disturbed isn't running: it is finished" in over.stdout) == (0, True)

    client = two_nodes.client
    (head,) = [node for node in client.nodes() if node.head]
    jobs = [job for job in client.jobs() if job.metadata.get("study") == "disturbed"]
    assert [job.node_id in (None, head.id) for job in jobs] == [False, False]
    assert two_nodes.token not in repr(client._ask("GET", "/api/jobs/"))


def test_a_second_study_waits_and_names_the_first(two_nodes, struck, tmp_path, expected):
    """A study waits while another has all cores, and says so; then it trains, and both finish."""
    user = as_user(tmp_path, two_nodes)
    struck.unlink(missing_ok=True)
    for name in ("first", "second"):
        completed = study(*order(tmp_path / name, name, tmp_path / f"{name}.yaml"), environment=user, cwd=tmp_path)
        assert completed.returncode == 0, completed.stdout
        driver = stopped_driver_of(tmp_path / "first")  # workers wait for the stopped driver, and keep their cores

    until(lambda: status("second", user, tmp_path)["heartbeat"], "the second driver to be ready")
    until(lambda: status("second", user, tmp_path)["wait"], "the second study to wait")
    second = status("second", user, tmp_path)
    assert second["wait"] == "waiting for another study: first has 2 of 2 cores"
    assert second["share"] == {"unit": "cores", "own": 0, "of": 2, "others": {"first": 2}}
    assert "running, waiting for another study" in study("status", "second", environment=user, cwd=tmp_path).stdout
    assert status("first", user, tmp_path)["share"] == {"unit": "cores", "own": 2, "of": 2, "others": {}}

    os.kill(driver, signal.SIGCONT)
    for name in ("first", "second"):
        watched = study("status", name, "--watch", environment=user, cwd=tmp_path)
        assert watched.returncode == 0, watched.stdout
        assert "finished · 4/4 trials" in watched.stdout
        assert bits(tmp_path / name, name) == expected


def test_a_job_has_its_own_stop_timeout(two_nodes, tmp_path):
    """Ray's supervisor reads the stop timeout from the job's environment instead of using 3 seconds."""
    client = two_nodes.client
    late = "import signal, sys, time; signal.signal(15, lambda *_: (time.sleep(5), print('by itself'), sys.exit(130)))"
    ready = tmp_path / "ready"
    entrypoint = shlex.join(["python", "-c", f"{late}; open({str(ready)!r}, 'w').close(); signal.pause()"])
    client.submit("slow-to-stop", entrypoint, metadata={}, environment={"RAY_JOB_STOP_WAIT_TIME_S": "120"})
    until(ready.exists, "the job")
    assert client.stop("slow-to-stop")
    until(lambda: client.job("slow-to-stop").ended, "its end")
    assert "by itself" in client.tail(client.job("slow-to-stop"), 10)


def test_a_study_that_does_not_stop_is_killed(two_nodes, tmp_path, monkeypatch):
    """A driver that exceeds its stop timeout is killed, and the message states the lost work."""
    client, ready = two_nodes.client, tmp_path / "ready"
    deaf = "import signal; signal.signal(15, signal.SIG_IGN)"
    client.submit(
        "study-stubborn-0",
        shlex.join(["python", "-c", f"{deaf}; open({str(ready)!r}, 'w').close(); signal.pause()"]),
        metadata=Order("stubborn", "study: stubborn", "/a").metadata,
        environment={"RAY_JOB_STOP_WAIT_TIME_S": "1"},
    )
    until(ready.exists, "the job")
    # The attribute `follow` of the package is a function, hence sys.modules.
    monkeypatch.setattr(sys.modules["study.jobs.follow"], "STOP_WAIT_S", 0)  # every stop exceeds this time
    stopped = CliRunner(env=as_user(tmp_path, two_nodes)).invoke(main, ["stop", "stubborn"])
    assert stopped.exit_code == 0, stopped.output
    assert "stubborn took too long and was killed: all training since its last checkpoints is lost" in (stopped.output)
    assert "`study resume stubborn` continues it" in stopped.output


def test_a_lost_log_is_an_error(two_nodes, tmp_path):
    """A log whose file is lost, for example with its node, raises an error instead of being empty."""
    client = two_nodes.client
    client.submit(
        "study-mute-0",
        'rm "$(readlink -f /proc/$$/fd/1)"; exit 3',
        metadata=Order("mute", "study: mute", "/a").metadata,
        environment={},
    )
    until(lambda: client.job("study-mute-0").ended, "its end")
    for follow in ((), ("--follow",)):
        logs = CliRunner(env=as_user(tmp_path, two_nodes)).invoke(main, ["logs", "mute", *follow])
        assert logs.exit_code == 1
        assert "study-mute-0 has no readable log" in logs.output
        assert "Ray says: " in logs.output
        assert "No such file or directory" in logs.output


def test_several_stores_and_unknown_names(two_nodes, tmp_path):
    """A study name in two stores and an unknown name are errors with a hint; job metadata isn't trusted."""
    client = two_nodes.client
    for i, store in enumerate(("/a", "/b")):
        metadata = Order("twofold", "study: twofold", store).metadata | ({"options": "{}]"} if i else {})
        client.submit(
            f"study-twofold-{i}", "printf '\\033[2J@study {\"study\": 1}\\n'; exit 2", metadata=metadata, environment={}
        )
        until(lambda i=i: client.job(f"study-twofold-{i}").ended, "its end")
    assert {entry.store for entry in standings(client, "twofold")} == {"/a", "/b"}
    with pytest.raises(InputError, match=r"for 2 stores: /b \(failed\), /a \(failed\); choose one with --store"):
        standing(client, "twofold")
    with pytest.raises(InputError, match="wasn't submitted for the store /c, but for /a, /b"):
        standing(client, "twofold", "/c")
    standing_of_a = standing(client, "twofold", "/a")
    assert standing_of_a.heartbeat is None
    assert standing_of_a.last_lines == ('\\x1b[2J@study {"study": 1}',)
    assert "`study submit` the file" in standing_of_a.next
    user = as_user(tmp_path, two_nodes)
    refused = study("resume", "twofold", "--store", "/b", environment=user, cwd=tmp_path)
    assert (refused.returncode, "submit the study's file again" in refused.stdout) == (2, True)
    unknown = study("status", "twofld", environment=user, cwd=tmp_path)
    assert (unknown.returncode, "did you mean 'twofold'?" in unknown.stdout) == (2, True)


def test_a_study_that_finds_no_room_is_not_submitted(two_nodes):
    """A study that requires a GPU isn't sent to a cluster without GPUs, unless an option allows for its growth."""
    client = two_nodes.client
    with pytest.raises(InputError, match=r"1 CPU and a GPU, but the cluster has 2 CPU and 0 GPU now; .*--workers 16"):
        submit(client, Order("roomless", "study: roomless", "/a", {"device": "cuda"}), print)
    assert not [job for job in client.jobs() if job.metadata.get("study") == "roomless"]


def test_without_the_token_nothing_is_reported(two_nodes, tmp_path):
    """A missing and a wrong token are refused with instructions, and no message shows a token."""
    for token, word in ((None, "asks for a token, and there is none here"), ("0" * 64, "refuses the token")):
        user = as_user(tmp_path, two_nodes, token=token)
        refused = study("list", "--cluster", environment=user, cwd=tmp_path)
        assert refused.returncode == 1
        assert word in refused.stdout
        assert "0" * 64 not in refused.stdout


def test_over_a_network_a_token_is_required(two_nodes, tmp_path, monkeypatch):
    """To another machine's address, nothing is sent without a token; an unencrypted connection gives a warning."""
    # Another notation of 127.0.0.1, which isn't recognised as this machine.
    elsewhere = two_nodes.url.replace("127.0.0.1", "127.1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    with pytest.raises(InputError, match="there is no token here"):
        connect_to_run(elsewhere, print)
    assert two_nodes.token is not None
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text(two_nodes.token)
    warnings: list[str] = []
    assert connect_to_run(elsewhere, warnings.append).asks_for_token()
    assert ["not encrypted" in text for text in warnings] == [True]
    with ray_cluster(1, None) as open_head:
        assert _away_from_head(open_head.client.nodes()) is None
        assert not open_head.client.asks_for_token()
        unguarded = open_head.url.replace("127.0.0.1", "127.1")
        with pytest.raises(InputError, match="anyone who reaches it can run code there"):
            connect_to_run(unguarded, print)
        client = connect_to_run(unguarded, print, without_token=True)
    with pytest.raises(ClusterError, match="its head has died"):
        client.jobs()


def test_the_doctor_looks_at_every_node(two_nodes, tmp_path):
    """The doctor checks the nodes themselves, and each failure names its fix."""
    store, nobody = tmp_path / "studies", "http://127.0.0.1:9"
    words = ["doctor", "--store", str(store), "--tracking-uri", nobody, "--json"]
    completed = study(*words, environment=as_user(tmp_path, two_nodes), cwd=tmp_path)
    assert completed.returncode == 1
    checks = {check["name"]: check for check in json.loads(completed.stdout)}
    assert {name for name, check in checks.items() if check["state"] == "failed"} == {"tracking", "tracking on nodes"}
    assert checks["tracking on nodes"]["found"].count("can't be used") == 2
    assert all(check["mend"] for check in checks.values() if check["state"] == "failed")
    for name in ("token", "Ray", "nodes", "versions", "store on nodes", "clocks"):
        assert checks[name]["state"] == "ok", checks[name]
    assert not store.exists()
    assert not [entry.study for entry in standings(two_nodes.client) if entry.job.startswith("doctor")]


def test_own_code_is_shipped(two_nodes, struck, tmp_path, packed_lab):
    """A job and its resumed job have the code as submitted, even if the user's code is deleted."""
    struck.touch()  # no driver stops itself any more, whatever the order of tests
    user, store = as_user(tmp_path, two_nodes), tmp_path / "studies"
    spec, file, trials = packed_study(packed_lab), packed_lab / "own.yaml", 9
    file.write_text(spec.text)
    words = ["submit", str(file), "--store", str(store), "--tracking-uri", "off"]
    submitted = study(*words, environment=user, cwd=tmp_path)
    assert submitted.returncode == 0, submitted.stdout
    shutil.rmtree(packed_lab / "mylab")
    log = study("logs", spec.study, "--follow", environment=user, cwd=tmp_path)
    assert f"{trials}/{trials} trials" in log.stdout, log.stdout
    assert len(Store(store).study(spec.study).done()) == trials
    folder = Store(store).study(spec.study)
    pack = sorted(folder.pack_ids())[0]
    for kind in ("results", "curves", "weights"):
        (store / spec.study / kind / f"{pack}.parquet").unlink(missing_ok=True)  # simulates an earlier stop
    remaining = trials - len(folder.done())
    assert remaining > 0
    resumed = study("resume", spec.study, environment=user, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stdout
    log = study("logs", spec.study, "--follow", environment=user, cwd=tmp_path)
    assert f"{remaining}/{remaining} trials" in log.stdout or f"{trials}/{trials} trials" in log.stdout, log.stdout
    assert len(Store(store).study(spec.study).done()) == trials


def test_a_program_is_shipped(two_nodes, struck, tmp_path):
    """A job runs the script and its imports as they were when submitted, in folders of the store."""
    struck.touch()
    user, store, lab = as_user(tmp_path, two_nodes), tmp_path / "studies", tmp_path / "lab"
    lab.mkdir()
    (lab / "helper.py").write_text("def loss(rate, seed):\n    return rate / (1 + seed)\n")
    (lab / "train.py").write_text(
        "import json, sys\nfrom helper import loss\nrate, seed = map(float, sys.argv[1:])\nprint('seed', seed)\n"
        "json.dump({'loss': loss(rate, seed)}, open('metrics.json', 'w'))\n"
    )
    (lab / "shipped.yaml").write_text(
        "study: shipped\ncommand: python train.py {rate} {seed}\nresults: metrics.json\nmetrics: {loss: lower}\n"
        "grid: {rate: [0.5, 1]}\nseeds: 3\n"
    )
    words = ["submit", str(lab / "shipped.yaml"), "--store", str(store), "--tracking-uri", "off"]
    submitted = study(*words, environment=user, cwd=tmp_path)
    assert submitted.returncode == 0, submitted.stdout
    shutil.rmtree(lab)
    log = study("logs", "shipped", "--follow", environment=user, cwd=tmp_path)
    assert "6/6 trials" in log.stdout, log.stdout
    folder = Store(store).study("shipped")
    assert sorted(folder.read_results()["loss"].to_pylist()) == sorted(
        rate / (1 + seed) for rate in (0.5, 1) for seed in range(3)
    )
    logs = {folder.read_file(folder.trial_file(trial, "log.txt")) for trial in folder.trials_with_files()}
    assert logs == {b"seed 0.0\n", b"seed 1.0\n", b"seed 2.0\n"}

"""Messages about clusters that can't run here: with GPUs, lost nodes, or other users' tricks.

The dashboard is a web server that answers like Ray's; everything else is real.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from study.cli import main
from study.errors import ClusterError
from study.jobs import Client, Order, client, parse_address, usage
from study.settings import user_file
from study.summaries.heartbeat import FailureNews, Heartbeat, line

TOKEN = "0123456789abcdef"
NODES = [
    {
        "hostname": "head",
        "cpu": 10.0,
        "gpus": [],
        "raylet": {"nodeId": "0a", "state": "ALIVE", "isHeadNode": True, "resourcesTotal": {"CPU": 4.0}},
    },
    {
        "hostname": "gpus",
        "cpu": 30.0,
        "gpus": [{"utilizationGpu": 80}, {"utilizationGpu": 30}, {"utilizationGpu": None}],
        "raylet": {"nodeId": "0b", "state": "ALIVE", "resourcesTotal": {"CPU": 32.0, "GPU": 3.0}},
    },
    {"hostname": "dead", "raylet": {"nodeId": "0c", "state": "DEAD", "resourcesTotal": {"GPU": 8.0}}},
]


def job_entry(status: str = "RUNNING", *, node_id: str | None = "0b", message: str = "", **metadata: str) -> Any:
    """Describe a job as the dashboard does."""
    order = Order("demo", "study: demo\ntask: {name: simple}\nmodels: [NMU]\nseeds: 2\n", "/shared")
    return {
        "submission_id": "study-demo-0",
        "status": status,
        "metadata": order.metadata | metadata,
        "message": message,
        "driver_exit_code": None,
        "start_time": 1_700_000_000_000,
        "end_time": None if status in ("PENDING", "RUNNING") else 1_700_000_060_000,
        "driver_node_id": node_id,
    }


class Dashboard:
    """Answers of a dashboard.

    Args:
        jobs: the study's job at each look-up; the last one repeats.
        logs: status and text of its log at each look-up; the last one repeats.
        token: the required token; empty if none is required.
        nodes: the cluster's nodes.
        reserved: Ray's reservations, as resources of the job that requested them; None if unreadable.
    """

    def __init__(
        self,
        *jobs: Any,
        logs: list[tuple[int, str]] | None = None,
        token: str = "",
        nodes: list[Any] | None = None,
        reserved: list[tuple[str, dict[str, float]]] | None = None,
    ) -> None:
        self.jobs, self.token, self.reserved = list(jobs), token, reserved
        self.logs = list(logs or [(200, "")])
        self.nodes = NODES if nodes is None else nodes
        self.requests: list[tuple[str, str]] = []

    def __call__(self, path: str, token: str) -> tuple[int, bytes]:
        """Answer a request."""
        self.requests.append((path, token))
        if self.token and token != self.token:
            return (403 if token else 401), b""
        if path.startswith("/api/v0/logs/"):
            status, text = self.logs.pop(0) if len(self.logs) > 1 else self.logs[0]
            return status, text.encode()
        if path.startswith("/api/v0/placement_groups"):
            groups = [
                {"creator_job_id": job, "bundles": [{"unit_resources": resources}]}
                for job, resources in self.reserved or ()
            ]
            return (500 if self.reserved is None else 200), json.dumps(
                {"data": {"result": {"result": groups}}}
            ).encode()
        answer: Any = {
            "/api/version": {"ray_version": version("ray")},
            "/nodes?view=summary": {"data": {"summary": self.nodes}},
        }.get(path)
        if answer is None and self.jobs:
            job = self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0]
            jobs = job if isinstance(job, list) else [job]
            answer = jobs if path == "/api/jobs/" else jobs[0]
        return 200, json.dumps([] if answer is None else answer).encode()


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder, with a token in the home folder, and poll without waits."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    names = ("XDG_CONFIG_HOME", "STUDY_STORE", "STUDY_CLUSTER", "MLFLOW_TRACKING_URI", "RAY_AUTH_MODE")
    for name in (*names, "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text(TOKEN)
    monkeypatch.setattr(client, "_POLL_S", 0.01)
    monkeypatch.setattr(sys.modules["study.jobs.follow"], "_WATCH_S", 0.01)  # the attribute `follow` is a function
    return tmp_path / "work"


def invoke(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "300"}).invoke(main, words)


Start = Callable[[Dashboard], str]


def test_use_of_gpus(server: Start):
    """Status and list show the number of GPUs of live nodes, and the load of the visible ones."""
    url = server(Dashboard(job_entry()))
    use = usage(Client(parse_address(url), None))
    assert (use.nodes, use.cpus, use.cpu_percent) == (2, 36, 20)
    assert (use.gpus, use.gpu_percent) == (3, 55)
    for words in (("status", "demo", "--cluster", url), ("list", "--cluster", url)):
        assert "cluster: 2 nodes · 36 CPUs, 20% busy · 3 GPUs, 55% busy" in invoke(*words).output
        content = json.loads(invoke(*words, "--json").stdout)["cluster"]
        assert (content["gpus"], content["gpu_percent"]) == (3, 55)
    without_gpus = server(Dashboard(job_entry(), nodes=NODES[:1]))
    assert "GPU" not in invoke("status", "demo", "--cluster", without_gpus).output


def beat(done: int, workers: int = 0) -> tuple[int, str]:
    """Return status and text of a log that ends with a heartbeat; its time is one second later per done trial."""
    at = datetime(2026, 5, 1, 12, 30, done, tzinfo=UTC)
    return 200, line(Heartbeat("demo", done, 20, done, 0, 0, 0, left_s=None, workers=workers, at=at)) + "\n"


DUMP = """\
[2026-05-01 12:30:09,823 I 27285 27285] (raylet) node_manager.cc:492: [state-dump] NodeManager:
[state-dump] Node ID: bdb5c3a71c0e
    [state-dump] \tCoreWorkerService.grpc_client.Exit - 1 total (0 active)
(raylet, ip=10.0.0.1) [state-dump] Resource usage {
"""


@pytest.mark.parametrize("follow", [(), ("--follow",)])
def test_logs_are_without_dumps_of_rays_state(server: Start, follow: tuple[str, ...]):
    """Dumps of Ray's own processes are left out; the driver's lines stay."""
    text = f"training\n{DUMP}done: [state-dump] is a word of mine\n"
    printed = invoke(
        "logs", "demo", *follow, "--cluster", server(Dashboard(job_entry("SUCCEEDED"), logs=[(200, text)]))
    )
    assert printed.stdout.splitlines() == ["training", "done: [state-dump] is a word of mine"]
    lost = server(Dashboard(job_entry("FAILED"), logs=[(200, text + DUMP)]))
    content = json.loads(invoke("status", "demo", "--json", "--cluster", lost).stdout)["studies"][0]
    assert content["said"] == ["training", "done: [state-dump] is a word of mine"]


def test_status_counts_finished_and_pending_trials(server: Start):
    """A study without a success criterion shows its finished trials, and every study its pending trials."""
    at = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    log = line(Heartbeat("demo", 6, 20, 0, 0, 1, 1, left_s=None, workers=2, at=at, finished=4)) + "\n"
    url = server(Dashboard(job_entry(), logs=[(200, log)]))
    output = invoke("status", "demo", "--cluster", url).stdout
    assert "6 of 20" in output
    assert "4 finished, 1 diverged, 1 failed, 14 pending" in output
    assert (
        json.loads(invoke("status", "demo", "--json", "--cluster", url).stdout)["studies"][0]["heartbeat"]["finished"]
        == 4
    )


@pytest.mark.parametrize(
    ("job", "state", "code"),
    [
        (job_entry("SUCCEEDED"), "finished", 0),
        (job_entry("FAILED"), "failed", 1),
        (job_entry("FAILED") | {"driver_exit_code": 2}, "failed", 2),
        (job_entry("FAILED") | {"driver_exit_code": 130}, "stopped", 130),
        (job_entry("STOPPED"), "stopped", 130),
    ],
)
def test_a_study_is_watched_to_its_end(server: Start, job: Any, state: str, code: int):
    """On a pipe, each change is a line, the final status is shown in full, and the exit code follows from the state."""
    jobs = [job_entry("PENDING", node_id=None), job_entry(), job_entry(), job_entry(), job]
    logs = [beat(3, workers=2), beat(3, workers=2), beat(8), beat(8)]
    result = invoke("status", "demo", "--watch", "--cluster", server(Dashboard(*jobs, logs=logs)))
    assert result.exit_code == code, result.output
    assert result.stdout.splitlines()[:4] == [
        "waiting",
        "running · 3/20 trials · 3 solved · 0 unsolved · 0 diverged · 0 failed · 2 packs training",
        "running · 8/20 trials · 8 solved · 0 unsolved · 0 diverged · 0 failed",
        f"{state} · 8/20 trials · 8 solved · 0 unsolved · 0 diverged · 0 failed",
    ]
    assert re.search(rf"state +{state}\b", result.stdout)
    content = json.loads(invoke("status", "demo", "--json", "--cluster", server(Dashboard(job))).stdout)
    assert content["studies"][0]["exit_code"] == code


@pytest.mark.parametrize(
    ("is_repeated", "advice"), [(True, "fix the code"), (False, "`study resume demo` continues it")]
)
def test_the_status_of_a_failed_study_has_the_reasons(server: Start, is_repeated: bool, advice: str):
    """The reasons of its failed trials are shown; a retry is advised only where it may help."""
    news = FailureNews(20, "ValueError: no such layer (bad.py:7)", is_repeated)
    at = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    last = line(Heartbeat("demo", 20, 20, 0, 0, 0, 20, left_s=None, workers=0, at=at, failures=(news,)))
    url = server(Dashboard(job_entry("FAILED"), logs=[(200, f"{last}\n")]))
    output = " ".join(invoke("status", "demo", "--cluster", url).output.split())
    assert "20 trials: ValueError: no such layer (bad.py:7)" in output
    assert advice in output
    assert ("study resume" in output) != is_repeated
    content = json.loads(invoke("status", "demo", "--json", "--cluster", url).stdout)
    assert content["studies"][0]["heartbeat"]["failures"][0]["reason"] == news.reason


class CtrlC(Dashboard):
    """A dashboard that simulates Ctrl-C when the log is read the second time, and again if that interrupt was lost.

    An interrupt may come while Python runs code whose exceptions it ignores, such as a finalizer.
    """

    def __call__(self, path: str, token: str) -> tuple[int, bytes]:
        """Answer a request."""
        if sum("logs" in earlier for earlier, _ in self.requests) >= 2:
            os.kill(os.getpid(), signal.SIGINT)
        return super().__call__(path, token)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Set Python's handler of Ctrl-C: shells ignore Ctrl-C in background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_the_end_of_watching_stops_nothing(server: Start):
    """After Ctrl-C a message says that the study continues; the cluster gets read requests only."""
    dashboard = CtrlC(job_entry(), logs=[beat(3)])
    result = invoke("status", "demo", "--watch", "--cluster", server(dashboard))
    assert result.exit_code == 130
    assert result.stdout.splitlines()[-1] == "demo goes on: `study stop demo` ends it"
    assert not any("stop" in path for path, _ in dashboard.requests)


def test_programs_read_one_status(server: Start):
    """The option --json prints one status, and can't be combined with --watch."""
    result = invoke("status", "demo", "--watch", "--json", "--cluster", server(Dashboard(job_entry())))
    assert result.exit_code == 2
    assert "--watch can't be combined with --json" in result.stderr


def running_job_of(name: str, driver: str, **options: str) -> Any:
    """Describe a running job of a study, as the dashboard does."""
    metadata = Order(name, "study: a", "/shared", options).metadata
    return job_entry() | {"submission_id": f"study-{name}-0", "metadata": metadata, "job_id": driver}


def test_a_study_shows_its_reserved_and_awaited_resources(server: Start):
    """Each study shows its reserved resources; a study without any names the studies that hold them all."""
    first, second = running_job_of("one", "01"), running_job_of("two", "02")
    core = {"CPU": 1.0}
    for reserved, shares, waits in (
        ([("01", core)] * 30 + [("02", core)] * 6, ("30 of 36; two has 6", "6 of 36; one has 30"), ""),
        ([("01", core)] * 35, ("35 of 36", "0 of 36; one has 35"), ""),
        ([("01", core)] * 36, ("36 of 36", "0 of 36; one has 36"), "another study: one has 36 of 36 cores"),
        (
            [("01", core)] * 30 + [("07", {"CPU": 6.0})],
            ("30 of 36; other work has 6", "0 of 36; one has 30; other work has 6"),
            "others: one has 30 and other work has 6 of 36 cores",
        ),
    ):
        url = server(Dashboard([first, second], reserved=reserved))
        outputs = [invoke("status", name, "--cluster", url).output for name in ("one", "two")]
        for output, share in zip(outputs, shares, strict=True):
            assert re.search(rf"cores +{re.escape(share)}\s", output), output
        assert re.search("state +running\\s", outputs[0])
        assert re.search(f"state +running{', waiting for ' if waits else ''}{waits}\\s", outputs[1])
        listed = invoke("list", "--cluster", url).output
        assert f"waiting for {waits.partition(':')[0]}" in listed if waits else "waiting" not in listed


def test_a_study_whose_workers_have_no_room_waits_for_machines(server: Start):
    """The status names the missing resources, and the log counts waiting workers, until a pack trains."""
    at = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    waits = Heartbeat("two", 0, 20, 0, 0, 0, 0, left_s=None, workers=0, at=at, waiting=28)
    for beat_, does_wait in ((waits, True), (replace(waits, workers=1), False)):
        url = server(Dashboard([running_job_of("two", "02")], logs=[(200, line(beat_) + "\n")], reserved=[]))
        output = invoke("status", "two", "--cluster", url).output
        assert (
            bool(re.search("state +running, waiting for machines: none of its workers has room yet", output))
            == does_wait
        )
        assert "28 workers waiting for room" in invoke("logs", "two", "--cluster", url).output


def test_only_a_study_that_trains_nothing_waits(server: Start):
    """A study with packs in training, with all trials done, or with an unknown share isn't shown as waiting."""
    reserved = [("01", {"CPU": 36.0})]
    two = running_job_of("two", "02")
    for log, does_wait in ((beat(3), True), (beat(3, workers=1), False), (beat(20), False)):
        url = server(Dashboard([two], logs=[log], reserved=reserved))
        assert ("waiting for others: other work" in invoke("status", "two", "--cluster", url).output) == does_wait
    url = server(Dashboard([two], logs=[beat(3)]))
    output = invoke("status", "two", "--cluster", url).output
    assert "waiting" not in output
    assert re.search(r"state +running\s", output)


def test_a_study_of_gpus_waits_for_gpus(server: Start):
    """Free cores are useless to a GPU study, and a fraction of a GPU counts as a share."""
    reserved = [("01", {"CPU": 1.0, "GPU": 0.5})] * 6
    url = server(
        Dashboard([running_job_of("two", "02", device="cuda"), running_job_of("one", "01")], reserved=reserved)
    )
    assert "waiting for another study: one has 3 of 3 GPUs" in invoke("status", "two", "--cluster", url).output
    assert re.search(r"cores +6 of 36\s", invoke("status", "one", "--cluster", url).output)


def test_logs_waits_for_a_log(server: Start):
    """`study logs` waits for an unreadable log as long as the job runs."""
    logs = [(500, "no such file"), (500, "no such file"), (200, "one\ntwo\n")]
    waits, runs = job_entry("PENDING", node_id=None), job_entry()
    dashboard = Dashboard(waits, waits, runs, runs, runs, job_entry("SUCCEEDED"), logs=logs)
    result = invoke("logs", "demo", "--follow", "--cluster", server(dashboard))
    assert (result.exit_code, result.stdout) == (0, "one\ntwo\n")
    now = invoke("logs", "demo", "--cluster", server(Dashboard(job_entry(message="warming up"), logs=logs[:1])))
    assert (now.exit_code, now.stdout) == (0, "")
    assert "study-demo-0 has no readable log yet. Ray says: warming up" in now.stderr


@pytest.mark.parametrize("follow", [(), ("--follow",)])
def test_a_lost_log_of_an_ended_job_is_an_error(server: Start, follow):
    """If the job has ended, an unreadable log is an error, with Ray's message about the job."""
    lost = job_entry("FAILED", message="The node has died.\nIts id: 0b")
    result = invoke("logs", "demo", *follow, "--cluster", server(Dashboard(lost, logs=[(500, "")])))
    assert result.exit_code == 1
    assert "study-demo-0 has no readable log: it was lost with the driver's node" in result.output
    assert "Ray says: The node has died. Its id: 0b" in result.output


def test_a_log_that_breaks_off(server: Start):
    """A log that ends before its job is an error, after its text is printed; a log that ends after the job isn't."""
    url = server(Dashboard(job_entry(), logs=[(200, "one\n")]))
    lines = Client(parse_address(url), None).follow("study-demo-0", 10)
    assert next(lines) == "one"
    with pytest.raises(ClusterError, match="the log of study-demo-0 broke off"):
        next(lines)
    url = server(Dashboard(job_entry("SUCCEEDED"), logs=[(200, "one\n")]))
    assert list(Client(parse_address(url), None).follow("study-demo-0", 10)) == ["one"]


def test_control_characters_of_others_are_removed(server: Start):
    """Control characters written by other users or nodes never reach the terminal."""
    bad = "\x1b[2J\x1b]0;title\x07\x9b1mX\r"
    tricks = {"user": f"{bad}user\nroot", "host": f"{bad}host"}
    tricks["options"] = json.dumps({"tracking_uri": f"http://127.0.0.1:9/{bad}tracking"})
    runs, ended = job_entry(**tricks), job_entry("FAILED", message=f"{bad}message", **tricks)
    other = job_entry(study=f"{bad}other", store=f"{bad}/store") | {"submission_id": f"study-{bad}other-0"}
    node = {"hostname": f"{bad}node", "raylet": {"nodeId": "0b", "state": "ALIVE"}}
    for job, words, text in (
        (runs, ("status", "demo"), r"X\rnode"),
        (ended, ("status", "demo"), r"X\ruser root@"),
        (ended, ("list",), r"X\ruser root@"),
        (ended, ("logs", "demo"), r"X\rmessage"),
        (ended, ("stop", "demo"), "study resume demo"),
        (runs, ("submit", "demo", "--store", "/shared"), r"X\ruser root@"),
        (runs, ("resume", "demo"), r"X\rtracking"),
        (other, ("list",), r"X\rother"),
        (other, ("status", "nothing"), r"X\rother"),
    ):
        result = invoke(*words, "--cluster", server(Dashboard(job, logs=[(500, "")], nodes=[node])))
        assert text in result.output
        assert not [c for c in result.output if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]


def in_other_notation(url: str) -> str:
    """Replace 127.0.0.1 by a notation that isn't recognised as this machine."""
    return url.replace("127.0.0.1", "127.1")


def test_every_command_warns_of_a_readable_token(server: Start):
    """A warning says that others could read the token in transit; machine-readable output has no warning."""
    dashboard = Dashboard(job_entry("SUCCEEDED"), token=TOKEN, logs=[(200, "hello\n")])
    url = server(dashboard)
    for words in (("status", "demo", "--json"), ("logs", "demo"), ("stop", "demo"), ("list",)):
        far = invoke(*words, "--cluster", in_other_notation(url))
        assert far.exit_code == 0, far.output
        assert f"{in_other_notation(url)} is not encrypted: the token can be read on the way" in far.stderr
        assert "encrypted" not in far.stdout + invoke(*words, "--cluster", url).output
    assert {token for _, token in dashboard.requests} == {TOKEN}


def test_a_folders_cluster_gets_no_token_unconfirmed(working_folder, server: Start):
    """A cluster named only by the working folder's file isn't contacted until the user confirms it."""
    dashboard = Dashboard(job_entry("SUCCEEDED"), token=TOKEN)
    url = in_other_notation(server(dashboard))
    (working_folder / "study.toml").write_text(f"cluster = '{url}'")
    for words in (("list", "--cluster"), ("status", "demo")):
        assert invoke(*words).exit_code == 2
    assert invoke("doctor").exit_code == 1
    assert dashboard.requests == []
    user_file().parent.mkdir(parents=True)
    user_file().write_text(f"cluster = '{url}'")
    assert invoke("list", "--cluster").exit_code == 0
    assert dashboard.requests


def test_a_cluster_without_a_token_must_be_confirmed(working_folder, server: Start):
    """Commands that run code contact another machine only if it requires a token, unless an option allows it."""
    dashboard = Dashboard(job_entry())
    url = in_other_notation(server(dashboard))
    submit = ("submit", "demo", "--store", "/shared", "--cluster", url)
    refused = invoke(*submit)
    assert refused.exit_code == 2
    assert "answers without a token: anyone who reaches it can run code there" in refused.output
    (working_folder.parent / ".ray" / "auth_token").unlink()
    dashboard.requests.clear()
    refused = invoke(*submit)
    assert (refused.exit_code, "there is no token here" in refused.output) == (2, True)
    assert dashboard.requests == []
    for words in (submit, ("resume", "demo", "--cluster", url)):
        meant = invoke(*words, "--without-token")
        assert (meant.exit_code, "running there already" in meant.output) == (0, True), meant.output


@pytest.mark.parametrize(
    ("uri", "line"),
    [
        (None, "tracking:  as set on the cluster; `study logs demo` ends with the dashboard's"),
        ("off", "tracking:  off: nothing is published"),
        ("http://127.0.0.1:9", "tracking:  http://127.0.0.1:9\n"),
        ("postgresql://me@db/mlflow", "tracking:  postgresql://***@db/mlflow, a database:"),
    ],
)
def test_submit_shows_the_tracking_address(server: Start, uri, line):
    """`submit` shows the tracking address, set by an option or on the cluster, and the job's page."""
    url = server(Dashboard(job_entry()))
    words = ("submit", "demo", "--store", "/shared", "--cluster", url)
    result = invoke(*words, *(() if uri is None else ("--tracking-uri", uri)))
    assert result.exit_code == 0, result.output
    assert line in result.output
    assert f"cluster:   {url}/#/jobs/study-demo-0" in result.output


def test_the_doctor_misses_a_token(working_folder, server: Start):
    """On a cluster that requires a token, a missing and a wrong token are failures, and no job is sent."""
    url = server(Dashboard(job_entry(), token=TOKEN))
    for token, problem in (("", "asks for a token, and there is none here"), ("f" * 16, "refuses the token")):
        (working_folder.parent / ".ray" / "auth_token").write_text(token)
        result = invoke("doctor", "--cluster", url, "--tracking-uri", "off", "--store", str(working_folder), "--json")
        checks = {check["name"]: check for check in json.loads(result.stdout)}
        assert (result.exit_code, checks["cluster"]["state"]) == (1, "failed")
        assert problem in checks["cluster"]["found"]
        assert "nodes" not in checks


def test_the_doctor_misses_a_guard(working_folder, server: Start):
    """A remote cluster without a token is a failure, or a warning if the user allows it."""
    url = in_other_notation(server(Dashboard(job_entry())))
    words = ("doctor", "--cluster", url, "--tracking-uri", "off", "--store", "relative", "--json")
    for options, state in (((), "failed"), (("--without-token",), "warning")):
        checks = {check["name"]: check for check in json.loads(invoke(*words, *options).stdout)}
        assert (checks["token"]["state"], checks["encryption"]["state"]) == (state, "warning")

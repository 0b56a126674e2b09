"""Findings of the doctor about nodes; most nodes are simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from study.doctor import engines
from study.doctor.engines import compile_engines
from study.doctor.examine import eased, examine
from study.doctor.node import Answer, NodeReport, line, read
from study.doctor.nodes import Check, judge
from study.engine import Engine
from study.environment import versions
from study.errors import ClusterError
from study.jobs import Node
from study.records import Cell
from tests.engines import ENGINES

FINE = NodeReport(versions(), store=None, shared=True, tracking=None, gpus=(), free_bytes=10**11)
HEAD = Node("0a" * 28, "head", head=True, cpus=4, gpus=0, cpu_percent=None)
OTHER = Node("0b" * 28, "other", head=False, cpus=4, gpus=0, cpu_percent=None)


def judged(on_head: NodeReport | None, on_other: NodeReport | None, **changes: Any) -> dict[str, Check]:
    """Judge two nodes by their reports; None stands for a node that didn't answer."""
    arguments = {
        "alive": [HEAD, OTHER],
        "answers": [
            Answer(node.id, report, "" if report else "it doesn't answer: timed out", 0.0)
            for node, report in ((HEAD, on_head), (OTHER, on_other))
        ],
        "store": "/shared",
        "tracking_uri": "http://mlflow:5000",
    }
    return {check.name: check for check in judge(**arguments | changes)}  # type: ignore[arg-type]


def states(checks: dict[str, Check]) -> dict[str, str]:
    """Return the states of checks that aren't ok, after checking that each has a fix."""
    bad = {name: check for name, check in checks.items() if check.state != "ok"}
    assert all(check.fix for check in bad.values())
    assert all(set(check.as_json()) == {"name", "state", "found", "mend"} for check in bad.values())
    return {name: check.state for name, check in bad.items()}


def test_equal_nodes_pass_every_check():
    """Two equal nodes that lack nothing pass every check."""
    assert states(judged(FINE, FINE)) == {}


def test_different_versions_are_reported():
    """Versions that differ between nodes are a failure; versions that differ only from this machine are a warning."""
    older = replace(FINE, versions=versions() | {"torch": "1.0.0"})
    unequal_nodes = judged(FINE, older)
    assert states(unequal_nodes) == {"versions": "failed"}
    assert unequal_nodes["versions"].finding == f"torch {versions()['torch']} on head (0a0a0a), 1.0.0 on other (0b0b0b)"
    equal_nodes = judged(older, older)
    assert states(equal_nodes) == {"versions": "warning"}
    assert f"torch {versions()['torch']} here, 1.0.0 there" in equal_nodes["versions"].finding
    lacking = replace(FINE, versions={k: v for k, v in versions().items() if k != "numba"})
    finding = f"numba {versions()['numba']} on head (0a0a0a), missing on other (0b0b0b)"
    assert judged(FINE, lacking)["versions"].finding == finding


def test_an_unshared_folder_is_reported():
    """A node that can't see another's files, or can't write, is named with its problem."""
    unshared = judged(FINE, replace(FINE, shared=False))
    assert states(unshared) == {"store on nodes": "failed"}
    assert (
        unshared["store on nodes"].finding == "other (0b0b0b): it doesn't see what another node has written in /shared"
    )
    closed = judged(FINE, replace(FINE, store="can't write in /shared: Permission denied", shared=False))
    assert closed["store on nodes"].finding == "other (0b0b0b): can't write in /shared: Permission denied"


def test_missing_gpus_are_reported():
    """A GPU that Ray counts and torch doesn't see fails the node's check; visible ones are counted."""
    two_gpus = replace(OTHER, gpus=2)
    unseen = judged(FINE, replace(FINE, gpus=("H100",)), alive=[HEAD, two_gpus])
    assert states(unseen) == {"GPUs on nodes": "failed"}
    assert unseen["GPUs on nodes"].finding == "other (0b0b0b): GPUs: Ray counts 2, torch sees 1"
    enough = judged(FINE, replace(FINE, gpus=("H100", "H100")), alive=[HEAD, two_gpus])
    assert (states(enough), enough["GPUs on nodes"].finding) == ({}, "2 seen by torch")


def test_other_problems_of_nodes_are_reported():
    """A silent or unasked node, failed tracking, a wrong clock and a full disk are reported with the node's name."""
    silent = judged(FINE, None)
    assert states(silent) == {"nodes": "failed"}
    assert silent["nodes"].finding == "other (0b0b0b): it doesn't answer: timed out"
    new = judged(FINE, FINE, answers=[Answer(HEAD.id, FINE, "", 0.0)])
    assert new["nodes"].finding == "other (0b0b0b): it wasn't asked"
    assert set(judged(None, None)) == {"nodes"}  # all other checks need answers
    bad = replace(FINE, tracking="it doesn't accept the password", free_bytes=10**9)
    checks = judged(FINE, FINE, answers=[Answer(HEAD.id, FINE, "", 0.0), Answer(OTHER.id, bad, "", -7.25)])
    assert states(checks) == {"tracking on nodes": "failed", "clocks": "warning", "room on nodes": "failed"}
    assert checks["clocks"].finding == "other (0b0b0b): -7.2 s"


@pytest.mark.parametrize(
    ("local_check", "node_check"),
    [
        ("store", "store on nodes"),
        ("tracking", "tracking on nodes"),
        ("GPU here", "GPUs on nodes"),
        ("room here", "room on nodes"),
    ],
)
def test_a_failure_here_is_a_warning_if_nodes_pass(local_check, node_check):
    """A failure on this machine is a warning if the nodes pass, and stays a failure if they fail or weren't asked."""
    failed = Check(local_check, "failed", "no route to host", "fix it")
    assert node_check in judged(FINE, FINE)
    assert eased(failed, list(judged(FINE, FINE).values())).state == "warning"
    assert eased(failed, [Check(node_check, "failed", "no route to host", "fix it")]) == failed
    assert eased(failed, [Check("nodes", "failed", "nobody answers", "")]) == failed
    fine = Check(local_check, "ok", "it answers")
    assert eased(fine, list(judged(FINE, FINE).values())) == fine


def test_without_a_cluster_failures_stay_failures(tmp_path):
    """On this machine alone, an unwritable store and a silent tracking server are failures."""
    values = {"store": "/dev/null/studies", "tracking_uri": "http://127.0.0.1:9", "cluster": None}
    states = {check.name: check.state for check in examine(values)}
    assert (states["store"], states["tracking"], states["cluster"]) == ("failed", "failed", "skipped")


@pytest.mark.parametrize(("shown", "changed"), [("free_bytes", "temperature"), ("}", "")])
def test_an_answer_of_another_version_is_named(shown: str, changed: str) -> None:
    """A node's answer that is cut, or has other fields, is an error that names the likely cause."""
    text = line(Answer("0a", FINE, "", 0.0))
    assert shown in text
    with pytest.raises(ClusterError, match="install the same version of this package on all nodes"):
        read(text.replace(shown, changed))


def test_engines_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine is compiled once; if that fails, the check fails with the reason."""
    engine = ENGINES["fused"]
    prepared: list[str] = []
    monkeypatch.setattr(type(engine), "is_compiled", lambda self, cell: bool(prepared))
    monkeypatch.setattr(type(ENGINES["torch"]), "is_compiled", lambda self, cell: True)
    monkeypatch.setattr(engines, "prepare", lambda engine, cell: prepared.append(engine.name))
    assert compile_engines() == Check("engines", "ok", "fused was compiled in 0 s")
    assert compile_engines() == Check("engines", "ok", "nothing is left to compile")
    prepared.clear()

    def fail(engine: Engine, cell: Cell) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(engines, "prepare", fail)
    failed = compile_engines()
    assert failed.state == "failed"
    assert "No space left on device" in failed.finding

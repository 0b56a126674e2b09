"""What the doctor says of what is wrong, on nodes that can't all be had here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from study.doctor import engines
from study.doctor.engines import compile_engines
from study.doctor.examine import eased, examine
from study.doctor.node import Answer, NodeReport
from study.doctor.nodes import Check, judge
from study.engine import Engine
from study.environment import versions
from study.jobs import Node
from study.records import Cell
from tests.engines import ENGINES

FINE = NodeReport(versions(), store=None, shared=True, tracking=None, gpus=(), free_bytes=10**11)
HEAD = Node("0a" * 28, "head", head=True, cpus=4, gpus=0, cpu_percent=None)
OTHER = Node("0b" * 28, "other", head=False, cpus=4, gpus=0, cpu_percent=None)


def judged(on_head: NodeReport | None, on_other: NodeReport | None, **changes: Any) -> dict[str, Check]:
    """Judge two nodes by what they report; None of one that didn't answer."""
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
    """Give those that aren't fine; each says what to do."""
    bad = {name: check for name, check in checks.items() if check.state != "ok"}
    assert all(check.fix for check in bad.values())
    assert all(set(check.as_json()) == {"name", "state", "found", "mend"} for check in bad.values())
    return {name: check.state for name, check in bad.items()}


def test_two_nodes_that_are_fine():
    """Of nodes that agree and lack nothing, every check is ok."""
    assert states(judged(FINE, FINE)) == {}


def test_versions_that_differ():
    """Nodes that differ are a failure that names package, versions and nodes; one here that differs is a warning."""
    older = replace(FINE, versions=versions() | {"torch": "1.0.0"})
    apart = judged(FINE, older)
    assert states(apart) == {"versions": "failed"}
    assert apart["versions"].finding == f"torch {versions()['torch']} on head (0a0a0a), 1.0.0 on other (0b0b0b)"
    here = judged(older, older)
    assert states(here) == {"versions": "warning"}
    assert f"torch {versions()['torch']} here, 1.0.0 there" in here["versions"].finding
    lacking = replace(FINE, versions={k: v for k, v in versions().items() if k != "numba"})
    finding = f"numba {versions()['numba']} on head (0a0a0a), missing on other (0b0b0b)"
    assert judged(FINE, lacking)["versions"].finding == finding


def test_a_folder_that_is_not_shared():
    """A node that doesn't see what another wrote, or can't write, is named, each with its trouble."""
    unshared = judged(FINE, replace(FINE, shared=False))
    assert states(unshared) == {"store on nodes": "failed"}
    assert (
        unshared["store on nodes"].finding == "other (0b0b0b): it doesn't see what another node has written in /shared"
    )
    closed = judged(FINE, replace(FINE, store="can't write in /shared: Permission denied", shared=False))
    assert closed["store on nodes"].finding == "other (0b0b0b): can't write in /shared: Permission denied"


def test_gpus_that_are_not_seen():
    """A GPU that Ray counts and torch doesn't see is a failure of its node; seen ones are counted."""
    two = replace(OTHER, gpus=2)
    unseen = judged(FINE, replace(FINE, gpus=("H100",)), alive=[HEAD, two])
    assert states(unseen) == {"GPUs on nodes": "failed"}
    assert unseen["GPUs on nodes"].finding == "other (0b0b0b): Ray counts 2 GPUs, torch sees 1"
    enough = judged(FINE, replace(FINE, gpus=("H100", "H100")), alive=[HEAD, two])
    assert (states(enough), enough["GPUs on nodes"].finding) == ({}, "2 seen by torch")


def test_what_else_nodes_lack():
    """Silence, a node not asked, tracking, a clock that is off and a full disk are told with the node's name."""
    silent = judged(FINE, None)
    assert states(silent) == {"nodes": "failed"}
    assert silent["nodes"].finding == "other (0b0b0b): it doesn't answer: timed out"
    new = judged(FINE, FINE, answers=[Answer(HEAD.id, FINE, "", 0.0)])
    assert new["nodes"].finding == "other (0b0b0b): it wasn't asked"
    assert set(judged(None, None)) == {"nodes"}  # of the rest nothing is known
    bad = replace(FINE, tracking="it doesn't accept the password", free_bytes=10**9)
    checks = judged(FINE, FINE, answers=[Answer(HEAD.id, FINE, "", 0.0), Answer(OTHER.id, bad, "", -7.25)])
    assert states(checks) == {"tracking on nodes": "failed", "clocks": "warning", "room on nodes": "failed"}
    assert checks["clocks"].finding == "other (0b0b0b): -7.2 s"


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("store", "store on nodes"),
        ("tracking", "tracking on nodes"),
        ("GPU here", "GPUs on nodes"),
        ("room here", "room on nodes"),
    ],
)
def test_a_laptop_needs_less(here, there):
    """What fails on this machine is a warning if the nodes can do it, and a failure if they can't, or weren't asked."""
    failed = Check(here, "failed", "no route to host", "fix it")
    assert there in judged(FINE, FINE)
    assert eased(failed, list(judged(FINE, FINE).values())).state == "warning"
    assert eased(failed, [Check(there, "failed", "no route to host", "fix it")]) == failed
    assert eased(failed, [Check("nodes", "failed", "nobody answers", "")]) == failed
    fine = Check(here, "ok", "it answers")
    assert eased(fine, list(judged(FINE, FINE).values())) == fine


def test_without_a_cluster_nothing_is_eased(tmp_path):
    """On this machine alone, a store that can't be written and a tracking server that doesn't answer are failures."""
    values = {"store": "/dev/null/studies", "tracking_uri": "http://127.0.0.1:9", "cluster": None}
    states = {check.name: check.state for check in examine(values)}
    assert (states["store"], states["tracking"], states["cluster"]) == ("failed", "failed", "skipped")


def test_engines_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine is compiled once; if it can't be, the check fails and says why."""
    engine = ENGINES["fused"]
    done: list[str] = []
    monkeypatch.setattr(type(engine), "is_compiled", lambda self, cell: bool(done))
    monkeypatch.setattr(type(ENGINES["torch"]), "is_compiled", lambda self, cell: True)
    monkeypatch.setattr(engines, "prepare", lambda engine, cell: done.append(engine.name))
    assert compile_engines() == Check("engines", "ok", "fused was compiled in 0 s")
    assert compile_engines() == Check("engines", "ok", "nothing is left to compile")
    done.clear()

    def fail(engine: Engine, cell: Cell) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(engines, "prepare", fail)
    failed = compile_engines()
    assert failed.state == "failed"
    assert "No space left on device" in failed.finding

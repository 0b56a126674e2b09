"""A store with a finished study, and with unusable studies of several kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from study.plan.plan import make_plan
from study.spec import parse_spec
from study.store import Store
from tests.study.builders import exact_result

_HEAD = "task: {name: simple}\nmodels: [NMU, NAU]\n"
_MANY = ", ".join(f"{0.001 + i / 1e6}" for i in range(400))
_GRID = f"grid: {{learning_rate: [{_MANY}], sparsity_strength: [{_MANY}]}}\n"
_CLAIMS = "claims: [{NMU: success_rate, exceeds: NAU}]\n"

BAD: Mapping[str, tuple[str, bytes | None, str]] = {
    "seeds": (f"{_HEAD}seeds: 1000000000", None, "10,000,000 is the most that can be planned"),
    "sources": (f"{_HEAD}seeds: {{init: 1000000, data: 1000000}}", None, "must combine to at most 10,000,000 seeds"),
    "cells": (f"{_HEAD}{_GRID}seeds: 1", None, "100,000 is the most that can be planned"),
    "claims": (f"{_HEAD}{_GRID}{_CLAIMS}seeds: 100", None, "is the most that can be planned"),
    "until": (
        f"{_HEAD}seeds: {{until: {{half_width: 0.1, max: 2000000000}}}}",
        None,
        "is the most that can be planned",
    ),
    "torn": ("task: [", None, "mistake"),
    "nested": (f"{_HEAD}seeds: 1", b"[" * 100_000, "maximum recursion depth"),
}
"""By name: the study file without its name, `declared.json` if there is one, and a part of the reason."""


GOOD = "study: good\nquestion: Does it learn?\ntask: {name: simple}\nmodels: [NMU, NAU]\nseeds: 3\n"


def make_store(root: Path) -> Path:
    """Make a store of the unusable studies, and of a good one, whose trials are all solved."""
    for name, (text, declared, _) in BAD.items():
        folder = Store(root).study(name)
        folder.write_spec(f"study: {name}\n{text}\n")
        if declared is not None:
            folder.write_file("declared.json", declared)
    good = Store(root).study("good")
    good.write_spec(GOOD)
    trials = make_plan(parse_spec(GOOD, source="good.yaml")).trials
    good.write_pack("00aa", [exact_result(trial) for trial in trials], [], [], {"git_commit": None})
    return root

"""The import rules between folders: each holds, and each detects a violation."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter import api
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.contract import Contract

ROOT = Path(__file__).resolve().parents[1]
KINDS: dict[str, type[Contract]] = {
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}
BREACHES = {
    "units/ imports neither tasks/ nor study/": [
        ("units.nmu", "study.stream.stream"),
        ("units.nmu", "tasks.arithmetic.networks"),
    ],
    "study/ imports neither tasks/ nor units/": [
        ("study.spec.load", "tasks.arithmetic.family"),
        ("study.engine.packed.native", "units.unit"),
    ],
    "Tasks don't import each other": [("tasks.identity.task", "tasks.language.task")],
    "A floor of study/ imports only what is below it": [
        ("study.records", "study.store"),
        ("study.plan.plan", "study.engine"),
        ("study.summaries.rows", "study.reports.page"),
        ("study.store.study_store", "study.tracking.rows"),
        ("study.reports.page", "study.search.record"),
        ("study.driver.monitor", "study.run"),
    ],
    "Only cluster/ and jobs/client.py import Ray": [("study.driver.estimate", "ray"), ("study.jobs.submit", "ray")],
    "Only tracking/ imports MLflow": [("study.driver.estimate", "mlflow"), ("study.reports.write", "mlflow")],
    "Only the figures of a report import matplotlib": [
        ("study.reports.page", "matplotlib"),
        ("units.nmu", "matplotlib"),
    ],
    "Only store/objects.py imports obstore": [("study.doctor.probe", "obstore"), ("study.store.local", "obstore")],
    "Only search/ imports Optuna": [("study.results.search", "optuna"), ("tasks.arithmetic.networks", "optuna")],
}


@pytest.fixture(scope="module")
def rules() -> dict[str, Contract]:
    """Return the rules by name."""
    options = api.read_configuration(str(ROOT / "pyproject.toml"))
    return {
        rule["name"]: KINDS[rule["type"]](rule["name"], options["session_options"], rule)
        for rule in options["contracts_options"]
    }


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Return the graph of imports."""
    return grimp.build_graph("units", "tasks", "study", include_external_packages=True, cache_dir=None)


def test_each_rule_has_a_breach_in_this_file(rules: dict[str, Contract]) -> None:
    """Every rule has an example import in this file that it must detect."""
    assert BREACHES.keys() == rules.keys()


@pytest.mark.parametrize("name", BREACHES)
def test_a_rule_holds(name: str, rules: dict[str, Contract], imports: grimp.ImportGraph) -> None:
    """The code keeps every rule."""
    assert _is_kept(rules[name], imports)


@pytest.mark.parametrize(
    ("name", "importer", "imported"), [(name, *pair) for name, pairs in BREACHES.items() for pair in pairs]
)
def test_a_rule_detects_its_breaches(
    name: str, importer: str, imported: str, rules: dict[str, Contract], imports: grimp.ImportGraph
) -> None:
    """A single import against a rule breaks it."""
    assert {importer, imported} <= imports.modules
    imports.add_import(importer=importer, imported=imported, line_number=1, line_contents="")
    try:
        assert not _is_kept(rules[name], imports)
    finally:
        imports.remove_import(importer=importer, imported=imported)


def test_a_new_file_needs_a_place(rules: dict[str, Contract], imports: grimp.ImportGraph) -> None:
    """A file or folder of study/ that isn't in a layer breaks the rule of the pure files."""
    imports.add_module("study.somewhere")
    try:
        assert not _is_kept(rules["A floor of study/ imports only what is below it"], imports)
    finally:
        imports.remove_module("study.somewhere")


def _is_kept(rule: Contract, imports: Any) -> bool:
    return bool(rule.check(deepcopy(imports), verbose=False).kept)  # a check removes ignored imports from the graph

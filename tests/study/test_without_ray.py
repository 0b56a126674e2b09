"""Installations without the extra `cluster`: studies run in one process, and commands that need Ray name the extra."""

from __future__ import annotations

import json
import re
import subprocess
import sysconfig
import venv
from dataclasses import replace
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from study.arrow.results import table_results
from study.driver.engines import resolve_to_estimate
from study.driver.options import Options
from study.errors import MissingPackageError
from study.extras import INSTALL_RAY, check_ray, ray_problem
from study.plan.plan import make_plan
from study.records import Result
from study.spec import load_spec
from study.store import Store

# Warnings of MLflow and its dependencies are theirs to fix.
pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).resolve().parents[2]
PLAN = make_plan(load_spec("demo"))
NOWHERE = "http://127.0.0.1:9"
"""The address of an unreachable cluster."""


def fake_release(folder: Path, version: str) -> None:
    """Write only the metadata of a release of Ray into a folder."""
    info = folder / f"ray-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ray\nVersion: {version}\n")


def test_ray_is_used_if_it_is_installed() -> None:
    """With the extra `cluster`, Ray may be used, and options are unchanged."""
    options = Options("studies", None, cpus=2, address="auto")
    assert ray_problem() is None
    check_ray("--address")
    engines = resolve_to_estimate(PLAN, options)
    assert engines.options is options
    assert not engines.missing_ray()


@pytest.mark.parametrize("version", ["2.53.0", "1.13.0", "3.0.0"])
def test_an_unknown_ray_is_not_used(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an unsupported Ray, this process trains, and options that need Ray are refused."""
    fake_release(tmp_path, version)
    monkeypatch.syspath_prepend(tmp_path)
    options = Options("studies", None)
    engines = resolve_to_estimate(PLAN, options)
    assert engines.options == replace(options, local=True)
    assert resolve_to_estimate(PLAN, replace(options, cpus=1)).cores == 1
    (message,) = engines.missing_ray()
    assert message.startswith(f"Ray {version} is installed, and versions from 2.54 to below 3 can be used: ")
    for requested, name in (({"address": "auto"}, "--address"), ({"cpus": 2}, "--cpus 2")):
        with pytest.raises(MissingPackageError, match=f"^{name} needs Ray, but Ray {version} is installed"):
            resolve_to_estimate(PLAN, replace(options, **requested))


def pinned(lock: str) -> set[str]:
    """Return the names of the packages in a lock."""
    return set(re.findall(r"(?m)^([\w.-]+)==", (ROOT / "deploy" / "lock" / f"{lock}.txt").read_text()))


def entries(distribution: Distribution) -> set[str]:
    """Return the names of a distribution's entries in the folder of installed packages."""
    return {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make an environment without the packages of the extra `cluster`; return its Python."""
    folder, packages = tmp_path_factory.mktemp("base"), Path(sysconfig.get_path("purelib"))
    venv.create(folder, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    added = pinned("cluster") - pinned("base")
    installed = list(distributions(path=[str(packages)]))
    others = [entries(distribution) for distribution in installed if canonicalize_name(distribution.name) not in added]
    hidden = set[str]().union(
        *(entries(distribution) for distribution in installed if canonicalize_name(distribution.name) in added)
    )
    hidden -= set[str]().union(*others)  # keep folders that several distributions share, such as `google`
    assert {"ray", "tensorboardX", "aiohttp_cors"} <= hidden
    for entry in packages.iterdir():
        if entry.name not in hidden:
            (site / entry.name).symlink_to(entry)
    return str(folder / "bin" / "python")


def command(base: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the environment without Ray."""
    python = [base, "-P", "-W", "ignore", "-m", "study"]
    return subprocess.run([*python, *words], cwd=folder, capture_output=True, text=True)


def bits(store: Path) -> list[Result]:
    """Return the results of the study `little`, sorted by trial, with training times set to 0."""
    results = table_results(Store(store).study("little").read_results())
    return sorted((replace(result, training_s=0.0) for result in results), key=lambda result: result.trial.id)


@pytest.mark.slow
def test_a_study_runs_and_reports_in_one_process(base: str, finished_study: Path, tmp_path: Path) -> None:
    """A study without Ray has the same results and a report; one line names the benefit of Ray."""
    (tmp_path / "little.yaml").write_text((finished_study / "little.yaml").read_text())
    planned = command(base, tmp_path, "plan", "little.yaml", "--engine", "torch")
    assert planned.returncode == 0, planned.stderr
    assert re.search(r"about .* on 1 core, calibrated", planned.stdout), planned.stdout
    assert INSTALL_RAY in " ".join(planned.stdout.split())  # lines are wrapped
    completed = command(base, tmp_path, "run", "little.yaml", "--engine", "torch")
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stderr == (
        "Ray isn't installed: this process trains one pack after another, as with --local; for all cores of this "
        f"machine, or a cluster: {INSTALL_RAY}\n"
    )
    assert bits(tmp_path / "studies") == bits(finished_study / "studies")
    report = command(base, tmp_path, "report", "little", "--format", "csv", "--out", "tables")
    assert report.returncode == 0, report.stderr
    assert (tmp_path / "tables" / "cells.csv").is_file()
    second = command(base, tmp_path, "run", "little.yaml", "--engine", "torch")
    assert (second.returncode, second.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "purpose"),
    [
        ("run little.yaml --address auto", "--address"),
        ("run little.yaml --cpus 2", "--cpus 2"),
        ("plan little.yaml --cpus 2", "--cpus 2"),
        (f"submit little.yaml --cluster {NOWHERE} --store /shared", "a cluster"),
        (f"resume little --cluster {NOWHERE}", "a cluster"),
        (f"status little --cluster {NOWHERE}", "a cluster"),
        (f"logs little --cluster {NOWHERE}", "a cluster"),
        (f"stop little --cluster {NOWHERE}", "a cluster"),
        (f"list --cluster {NOWHERE}", "a cluster"),
    ],
)
def test_commands_that_need_ray_name_the_package(
    base: str, finished_study: Path, tmp_path: Path, words: str, purpose: str
) -> None:
    """A command that needs Ray gives one error with the package to install, and writes nothing."""
    (tmp_path / "little.yaml").write_text((finished_study / "little.yaml").read_text())
    completed = command(base, tmp_path, *words.split())
    assert completed.stderr == f"study: {purpose} needs Ray, but Ray isn't installed: {INSTALL_RAY}\n"
    assert completed.returncode == MissingPackageError.exit_code
    assert [path.name for path in tmp_path.iterdir()] == ["little.yaml"]


@pytest.mark.slow
def test_the_doctor_names_the_missing_features(base: str, tmp_path: Path) -> None:
    """Without Ray, the doctor names the missing features, and that a cluster in the settings can't be used."""
    without_cluster = command(base, tmp_path, "doctor", "--json")
    assert without_cluster.returncode == 0, without_cluster.stdout + without_cluster.stderr
    [ray] = [check for check in json.loads(without_cluster.stdout) if check["name"] == "Ray here"]
    assert ray["state"] == "skipped"
    assert ray["found"] == "Ray isn't installed: studies train in one process"
    assert INSTALL_RAY in ray["mend"]
    with_cluster = command(base, tmp_path, "doctor", "--json", "--cluster", NOWHERE)
    [cluster] = [check for check in json.loads(with_cluster.stdout) if check["name"] == "cluster"]
    assert with_cluster.returncode == 1
    assert cluster["state"] == "failed"
    assert INSTALL_RAY in cluster["found"]

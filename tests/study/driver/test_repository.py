"""The user's repository in the provenance of results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from study import api
from study.driver.repository import REPOSITORY, read_repository, repository_of
from study.environment import provenance
from study.results.load import load_results
from study.results.study import assemble_report
from study.store import Store
from tests.study.lab import STUDY

NONE = {"user_git_commit": None, "user_git_dirty": None, "user_git_remote": None}


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=ann", "-c", "user.email=ann@lab")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(lab: Path) -> Path:
    """Return a committed folder with a function and a study file, whose remote has a password."""
    (lab / "mine.yaml").write_text(yaml.safe_dump(STUDY))
    git(lab, "init", "--quiet")
    git(lab, "remote", "add", "origin", "https://ann:secret@lab.org/ann/mine.git")
    git(lab, "add", ".")
    git(lab, "commit", "--quiet", "-m", "Begin")
    return lab


def test_results_name_the_repository_of_the_study(repository: Path, tmp_path: Path) -> None:
    """Commit, state and remote are the user's; this package's commit has its own key; the report has both."""
    store = tmp_path / "studies"
    commit = git(repository, "rev-parse", "HEAD")
    api.load(repository / "mine.yaml", store=store, tracking_uri="off").run(local=True)
    stored = Store(store).study("mine").provenances()
    user = {"user_git_commit": commit, "user_git_dirty": False, "user_git_remote": "https://lab.org/ann/mine.git"}
    assert all(user.items() <= entry.items() for entry in stored)
    assert {entry["service_git_commit"] for entry in stored} == {provenance("cpu")["service_git_commit"]}
    (reported,) = assemble_report(load_results("mine", store), with_trials=False).provenance
    assert user.items() <= reported.items()
    assert "secret" not in json.dumps(stored)


def test_changes_and_untracked_code_are_dirty(repository: Path) -> None:
    """The state is dirty if a file was edited, or if a file of the code is untracked."""

    def is_dirty() -> object:
        return repository_of(api.load(repository / "mine.yaml").planned.spec)["user_git_dirty"]

    (repository / "notes.txt").write_text("no part of the code")
    assert is_dirty() is False
    (repository / "mylab" / "more.py").write_text("")
    assert is_dirty() is True
    (repository / "mylab" / "more.py").unlink()
    (repository / "mine.yaml").write_text(yaml.safe_dump(STUDY | {"seeds": 4}))
    assert is_dirty() is True


def test_without_a_repository_or_git_fields_are_empty(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing repository, commit or git gives empty fields rather than an error."""
    assert read_repository(tmp_path) == NONE
    git(tmp_path, "init", "--quiet")
    assert read_repository(tmp_path) == NONE  # nothing is committed yet
    assert repository_of(api.load("demo").planned.spec) == {}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_repository(repository) == NONE


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("ssh://git@lab.org/mine", "ssh://lab.org/mine"),
        ("git@lab.org:ann/mine.git", "git@lab.org:ann/mine.git"),
        ("ann:secret@lab.org:mine", "lab.org:mine"),
        ("https://secret@lab.org/mine?token=x", "https://lab.org/mine"),
    ],
)
def test_remotes_are_shown_without_passwords(repository: Path, remote: str, expected: str) -> None:
    """User, password and query of a remote are left out, since they may hold a token."""
    git(repository, "remote", "set-url", "origin", remote)
    assert read_repository(repository)["user_git_remote"] == expected


def test_a_job_has_the_repository_of_the_machine_that_submitted_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a job, the submitted repository fields count instead of the machine's."""
    spec = api.load(repository / "mine.yaml").planned.spec
    local = repository_of(spec)
    monkeypatch.setenv(REPOSITORY, json.dumps(local | {"user_git_commit": "abc"}))
    assert repository_of(spec) == local | {"user_git_commit": "abc"}


def test_earlier_results_are_labelled() -> None:
    """The commit in an earlier version's result is labelled as this package's."""
    (entry,) = Store(Path(__file__).parents[1] / "stores" / "code-by-bytes", read_only=True).study("coin").provenances()
    assert entry["service_git_commit"].startswith("435e72f")
    assert "git_commit" not in entry

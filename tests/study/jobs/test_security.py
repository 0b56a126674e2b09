"""Security of studies: names stay in their folder, files name no code, and Ray requires the token."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from study import cluster
from study.errors import InputError, SpecError
from study.spec import parse_spec
from study.store import Store

SPEC = "study: {name}\ntask: {{name: {task}}}\nmodels: [{model}]\nseeds: 2\n"
JOIN = "import ray; ray.init(address={address!r}, logging_level='ERROR'); print(ray.cluster_resources())"


@pytest.mark.parametrize("name", ["../up", "a/b", "..", "/etc", "a\\b", ".hidden", "-rf", "a b", "$(id)", "a\n"])
def test_a_name_stays_in_its_folder(name, tmp_path):
    """No study file or command can name a folder outside the store, or a word that the shell interprets."""
    with pytest.raises(SpecError, match="study"):
        parse_spec(
            SPEC.format(name=f"'{name}'" if "\n" not in name else '"a\\n"', task="simple", model="NMU"), source="x"
        )
    if "/" in name or name == "..":
        with pytest.raises(InputError):
            Store(tmp_path).study(name)


@pytest.mark.parametrize(
    "text",
    [
        SPEC.format(name="!!python/object/apply:os.system ['touch ran']", task="simple", model="NMU"),
        SPEC.format(name="a", task="os.system", model="NMU"),
        SPEC.format(name="a", task="simple", model="torch.nn.Linear"),
        SPEC.format(name="a", task="simple", model="NMU") + "import: os\n",
    ],
)
def test_a_study_file_names_no_code(text, tmp_path, monkeypatch):
    """A file names entries of built-in tables: a tag, a module path or an unknown key is a mistake."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError):
        parse_spec(text, source="x")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_nobody_joins_without_the_token():
    """Ray listens on every interface: a process with no token or a wrong one is refused."""
    import ray

    with cluster.connection(None, 1):
        address = ray.get_runtime_context().gcs_address
        join = [sys.executable, "-c", JOIN.format(address=address)]
        quiet = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
        none = quiet | {"RAY_AUTH_MODE": "disabled"}
        wrong = quiet | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
        pipe = subprocess.PIPE
        # Ray takes half a minute per attempt, so both run at once.
        processes = [
            subprocess.Popen(join, env=environment, stdout=pipe, stderr=pipe, text=True)
            for environment in (none, wrong)
        ]
        for process in processes:
            output, _ = process.communicate(timeout=600)
            assert process.returncode != 0, output
            assert "CPU" not in output
        token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()
        assert "RAY_AUTH_TOKEN" in os.environ or token.stat().st_mode & 0o077 == 0

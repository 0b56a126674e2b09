"""Settings: said once, in a file; every mistake in one message; no password in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from study.cli import main
from study.errors import InputError
from study.settings import check_no_secret, holds_secret, load_settings, user_file


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder, with a home of its own."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "STUDY_STORE", "STUDY_CLUSTER", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    user_file().parent.mkdir(parents=True)
    return tmp_path / "work"


def test_the_order_of_strength(here, monkeypatch):
    """Command line, environment, the file here, the user's file, the default: the first that says something counts."""

    def store(*words: str) -> str:
        told = CliRunner().invoke(main, ["show", "nothing", *words]).output
        return told.split("no study 'nothing' in ")[1].split(";")[0]

    assert store() == "studies"
    user_file().write_text(f"store = '{here}/users'\ntracking_uri = 'off'")
    assert store() == f"{here}/users"
    (here / "study.toml").write_text("store = 'heres'")
    assert store() == "heres"
    assert {name: setting.value for name, setting in load_settings().items()} == {
        "store": "heres",
        "tracking_uri": "off",
    }
    monkeypatch.setenv("STUDY_STORE", "environments")
    assert store() == "environments"
    assert store("--store", "lines") == "lines"


def test_every_mistake_in_one_message(here):
    """All mistakes of both files are told at once, with exit code 2, the nearest name, and no password."""
    (here / "study.toml").write_text(
        "stor = 'a'\ncluster = 5\ntracking_uri = 'http://me:hunter2@host'\n[server]\nport = 1\n"
    )
    user_file().write_text("store = 'relative'\ncluster = ''")
    done = CliRunner().invoke(main, ["show", "nothing"])
    assert done.exit_code == 2
    for word in (
        "6 mistakes",
        "stor: unknown setting; did you mean 'store'?",
        "cluster: must be text",
        "tracking_uri: must not hold a password",
        "server: unknown setting",
        "must be a URL or an absolute path",
        "but got ''",
    ):
        assert word in done.output
    assert "hunter2" not in done.output


@pytest.mark.parametrize("content", [b"store = ", b"\xff\xfe", b"store = 'a'\nstore = 'b'"])
def test_what_is_no_toml(here, content):
    """A file that isn't TOML is named."""
    (here / "study.toml").write_bytes(content)
    with pytest.raises(InputError, match=r"study\.toml: isn't TOML"):
        load_settings()


def test_passwords_in_addresses():
    """An address with a password is refused in words that don't repeat it; others pass."""
    for address in (
        "postgresql+psycopg://me:hunter2@db/mlflow",
        "http://h/?token=hunter2",
        "http://[x:hunter2@h",
    ):
        assert holds_secret(address)
        with pytest.raises(InputError, match="--tracking-uri: must not hold a password") as caught:
            check_no_secret(address, "--tracking-uri")
        assert "hunter2" not in str(caught.value)
    for address in (
        "http://me@host",
        "sqlite:////data/a:b@c.db",
        "gs://bucket/a",
        "az://box/x?region=a",
        "../a:b",
    ):
        assert not holds_secret(address)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("submit", "demo"), "which cluster?"),
        (("submit", "demo", "--cluster", "head:8265"), "must be the address of Ray's dashboard"),
        (("submit", "demo", "--cluster", "http://me:hunter2@head"), "--cluster: must not hold a password"),
        (("submit", "demo", "--cluster", "http://127.0.0.1:9"), "--store must be a URL or an absolute path"),
        (
            ("submit", "demo", "--cluster", "http://127.0.0.1:9", "--store", "http://a:hunter2@b/c"),
            "--store: must not",
        ),
        (
            (
                "submit",
                "demo",
                "--cluster",
                "http://127.0.0.1:9",
                "--store",
                "/a",
                "--tracking-uri",
                "sqlite:///a.db",
            ),
            "--tracking-uri must be a server's URL",
        ),
        (("submit", "demo", "--cluster", "http://[127", "--store", "/a"), "must be the address"),
        (("submit", "no.yaml", "--cluster", "http://127.0.0.1:9", "--store", "/a"), "presets are"),
        (("list", "--json"), "--json goes with --cluster"),
        (("keep",), "study keep -- run FILE"),
    ],
)
def test_bad_input_is_told_before_anything_is_sent(words, told):
    """A wrong file, address or option ends with exit code 2 and a sentence."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2, done.output
    assert told in done.output
    assert "hunter2" not in done.output


def test_nobody_is_there():
    """A cluster that doesn't answer is told in words, with exit code 1."""
    done = CliRunner().invoke(main, ["status", "demo", "--cluster", "http://127.0.0.1:9"])
    assert done.exit_code == 1
    assert "nothing answers at http://127.0.0.1:9" in done.output

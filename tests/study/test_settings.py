"""Settings in files: precedence, one message for all mistakes, and no passwords."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from study.addresses import holds_secret, without_secret
from study.cli import main
from study.driver.options import TRAINING_OPTIONS, Options
from study.errors import InputError
from study.jobs import Order, make_order
from study.jobs.submit import JOB_OPTIONS
from study.settings import check_no_secret, load_settings, user_file


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder, with a home of its own."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "STUDY_STORE", "STUDY_CLUSTER", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    user_file().parent.mkdir(parents=True)
    return tmp_path / "work"


def test_the_order_of_precedence(working_folder, monkeypatch):
    """Command line, environment, local file, user file and default apply in this order; the first one wins."""

    def store(*words: str) -> str:
        output = CliRunner().invoke(main, ["show", "nothing", *words]).output
        return output.split("there is no store at ")[1].split(": ")[0]

    assert store() == "studies"
    user_file().write_text(f"store = '{working_folder.parent}/users'\ntracking_uri = 'off'")
    assert store() == f"{working_folder.parent}/users"
    (working_folder / "study.toml").write_text("store = 'heres'")
    assert store() == "heres"
    assert {name: setting.value for name, setting in load_settings().items()} == {
        "store": "heres",
        "tracking_uri": "off",
    }
    monkeypatch.setenv("STUDY_STORE", "environments")
    assert store() == "environments"
    assert store("--store", "lines") == "lines"


def test_one_message_has_every_mistake(working_folder):
    """All mistakes of both files are in one message, with exit code 2, the nearest name, and no password."""
    (working_folder / "study.toml").write_text(
        "stor = 'a'\ncluster = 5\ntracking_uri = 'http://me:hunter2@host'\n[server]\nport = 1\n"
    )
    user_file().write_text("store = 'relative'\ncluster = ''")
    result = CliRunner().invoke(main, ["show", "nothing"])
    assert result.exit_code == 2
    for word in (
        "6 mistakes",
        "stor: unknown setting; did you mean 'store'?",
        "cluster: must be text",
        "tracking_uri: must not hold a password",
        "server: unknown setting",
        "must be a URL or an absolute path",
        "but got ''",
    ):
        assert word in result.output
    assert "hunter2" not in result.output


@pytest.mark.parametrize("content", [b"store = ", b"\xff\xfe", b"store = 'a'\nstore = 'b'"])
def test_invalid_toml_is_refused(working_folder, content):
    """A file with invalid TOML is named."""
    (working_folder / "study.toml").write_bytes(content)
    with pytest.raises(InputError, match=r"study\.toml: isn't TOML"):
        load_settings()


def test_passwords_in_addresses():
    """An address with a password is refused without repeating it; other addresses are accepted."""
    for address in (
        "postgresql+psycopg://me:hunter2@db/mlflow",
        "postgresql://me:hun/hunter2@db/mlflow",
        "postgresql://db/mlflow?sslmode=require&sslpassword=hunter2",
        "mssql+pyodbc://?odbc_connect=SERVER%3Ddb%3BPWD%3Dhunter2",
        "http://h/?token=hunter2",
        "http://[x:hunter2@h",
        "https://hunter2@host",
        "https://host/mlflow?api_key=hunter2",
        "https://host/mlflow?auth=hunter2",
        "https://host/mlflow?hunter2",
        "https://host/mlflow#hunter2",
        "https://box.blob.core.windows.net/c?sv=2024&sig=hunter2",
        "az://box/studies?sv=2024&sig=hunter2",
        "s3://bucket/studies?X-Amz-Signature=hunter2",
    ):
        assert holds_secret(address), address
        assert "hunter2" not in without_secret(address)
        with pytest.raises(InputError, match="--tracking-uri: must not hold a password") as caught:
            check_no_secret(address, "--tracking-uri")
        assert "hunter2" not in str(caught.value)
    for address in (
        "https://host:5000/mlflow",
        "sqlite:////data/a:b@c.db",
        "postgresql://me@host:5432/db?sslmode=require&connect_timeout=5&passfile=/run/pgpass&sslkey=/run/client.key",
        "postgresql:///db?host=/var/run/postgresql&target_session_attrs=read-write&keepalives=1",
        "gs://bucket/a",
        "az://box/x?region=a",
        "../a:b",
    ):
        assert not holds_secret(address), address
        assert (without_secret(address) == address) == (address.count("?") + address.count("me@") == 0)


def test_a_folder_names_no_server_of_another_machine(working_folder):
    """Servers named by the local file alone are used if they are on this machine; others must be confirmed."""
    for address, is_here in (
        ("http://127.0.0.1:5000", True),
        ("http://[::1]:5000", True),
        ("http://localhost:5000", True),
        ("sqlite:////data/mlflow.db", True),
        ("postgresql://localhost/mlflow", True),
        ("off", True),
        ("http://localhost.example.org", False),
        ("http://127.1:5000", False),
        ("http://127.0.0.1:5000\\\\.example.org", False),
        ("https://mlflow.example.org", False),
        ("postgresql://db.example.org/mlflow", False),
        ("postgresql:///mlflow?host=db.example.org", False),
        ("postgresql://localhost/mlflow?host=db.example.org", False),
        ("databricks", False),
    ):
        (working_folder / "study.toml").write_text(f'tracking_uri = "{address}"')
        assert load_settings()["tracking_uri"].confirmed == is_here, address
        user_file().write_text(f'tracking_uri = "{address}"')
        assert load_settings()["tracking_uri"].confirmed
        user_file().write_text('tracking_uri = "http://another:5000"')
        assert load_settings()["tracking_uri"].confirmed == is_here, address
        user_file().unlink()


@pytest.mark.parametrize(
    "words",
    [
        ("status", "demo"),
        ("logs", "demo"),
        ("stop", "demo"),
        ("resume", "demo"),
        ("submit", "demo", "--store", "/a"),
        ("list", "--cluster"),
        ("doctor", "--json"),
    ],
)
def test_clusters_of_a_folder_have_to_be_confirmed(working_folder, monkeypatch, words):
    """A remote cluster in the local file is an error before anything is sent, until the user names it too."""
    url = "http://nobody.invalid:8265"

    def told() -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code != 0
        return result.output

    unreachable, refused = f"nothing answers at {url}", f"cluster: {url} is another machine"
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    (working_folder / "study.toml").write_text(f"cluster = '{url}'")
    assert refused in told()
    assert unreachable not in told()
    user_file().write_text(f"cluster = '{url}'")
    assert unreachable in told()
    user_file().unlink()
    monkeypatch.setenv("STUDY_CLUSTER", url)
    assert unreachable in told()


def test_a_tracking_server_has_to_be_confirmed(working_folder):
    """A remote MLflow in the local file gets no password from any command; --tracking-uri overrides it."""
    (working_folder / "study.toml").write_text("tracking_uri = 'http://nobody.invalid:5000'")
    for command in ("run", "report", "sync"):
        result = CliRunner().invoke(main, [command, "nothing"])
        assert result.exit_code == 2
        assert "tracking_uri: http://nobody.invalid:5000 is another machine" in result.output
        result = CliRunner().invoke(main, [command, "nothing", "--tracking-uri", "http://127.0.0.1:9"])
        assert "is another machine" not in result.output


def parsed(command: str, words: list[str]) -> dict[str, object]:
    """Return a command's options, parsed from words and the defaults."""
    return main.commands[command].make_context(command, words).params


def test_defaults_are_the_same_wherever_a_study_runs():
    """`run`, `submit` and a cluster's job have the same defaults."""
    words = {"run": ["demo"], "submit": ["demo"]}
    order = Order("demo", "study: demo", "/shared", parsed("submit", words["submit"]))
    words["job"] = shlex.split(order.entrypoint.partition(" run ")[2])
    working_folder, job = Options(root="/shared", tracking_uri=None), parsed("run", words["job"])
    assert len(TRAINING_OPTIONS) == 8
    for params in (parsed("run", words["run"]), order.options, job):
        assert {name: params[name] for name in TRAINING_OPTIONS} == {
            name: getattr(working_folder, name) for name in TRAINING_OPTIONS
        }
        assert params["yes"] is False


def test_a_job_gets_all_submitted_options():
    """Options of a submission reach the job's command unchanged, whatever their type."""
    options = {
        "tracking_uri": "http://127.0.0.1:5000", "engine": "torch", "device": "cuda", "pack_size": 8, "workers": 3,
        "packs_per_gpu": 2, "checkpoint_every_s": 0.5, "silent_after_s": 10.0, "keep_going": True,
            "optuna_storage": "off", "yes": True,
    }  # fmt: skip
    assert list(options) == list(JOB_OPTIONS)
    order = make_order("demo", "study: demo", "/shared/my studies", **options)
    job = parsed("run", shlex.split(order.entrypoint.partition(" run ")[2]))
    assert {name: job[name] for name in options} == options
    assert (job["store"], job["address"], job["file"]) == ("/shared/my studies", "auto", "study.yaml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("submit", "demo"), "no cluster was given"),
        (("submit", "demo", "--cluster", "head:8265"), "must be the address of Ray's dashboard"),
        (("submit", "demo", "--cluster", "http://me:hunter2@head"), "--cluster: must not hold a password"),
        (("submit", "demo", "--cluster", "http://127.0.0.1:9"), "--store must be a URL or an absolute path"),
        (("submit", "demo", "--cluster", "http://127.0.0.1:9", "--store", "http://a:hunter2@b/c"), "--store: must not"),
        (
            ("submit", "demo", "--cluster", "http://127.0.0.1:9", "--store", "/a", "--tracking-uri", "sqlite:///a.db"),
            "--tracking-uri must be a server's URL",
        ),
        (("submit", "demo", "--cluster", "http://[127", "--store", "/a"), "must be the address"),
        (("submit", "no.yaml", "--cluster", "http://127.0.0.1:9", "--store", "/a"), "presets are"),
        (("keep",), "study keep -- run FILE"),
    ],
)
def test_bad_input_is_reported_before_anything_is_sent(words, message):
    """A wrong file, address or option ends with exit code 2 and a message before anything is sent."""
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "hunter2" not in result.output


def test_an_unreachable_cluster_is_reported():
    """An unreachable cluster is an error with a message and exit code 1."""
    result = CliRunner().invoke(main, ["status", "demo", "--cluster", "http://127.0.0.1:9"])
    assert result.exit_code == 1
    assert "nothing answers at http://127.0.0.1:9" in result.output

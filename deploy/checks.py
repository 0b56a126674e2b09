"""Checks of the service while `deploy/smoke.sh` runs a study through it: access, secrets, results, back-ups."""

from __future__ import annotations

import base64
import io
import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

from processes import ServiceError, listening, processes, say
from service import Service

MANUAL = Path(__file__).resolve().parents[1] / "docs" / "guides" / "server.md"
NAME = "smoke"


def check_guards(service: Service) -> None:
    """Check that cluster, MLflow and object store refuse requests without credentials, and the first two accept theirs.

    Raises:
        ServiceError: if a part answers with another status, or MLflow's keys open the studies' bucket.
    """
    say("checking the guards")
    bearer = {"Authorization": f"Bearer {service.secret('ray_token')}"}
    given = base64.b64encode(f"admin:{service.secret('mlflow_admin_password')}".encode()).decode()
    jobs, runs = (f"{service.cluster}/api/jobs/", f"{service.dashboard}/api/2.0/mlflow/experiments/get?experiment_id=0")
    plain = f"http://127.0.0.1:{service.port['s3']}/study"
    for what, url, headers, wanted in (
        ("the cluster without a token", jobs, {}, 401),
        ("the cluster with a wrong token", jobs, {"Authorization": "Bearer wrong"}, 403),
        ("the cluster with its token", jobs, bearer, 200),
        ("MLflow without a password", runs, {}, 401),
        ("MLflow with its password", runs, {"Authorization": f"Basic {given}"}, 200),
        ("the object store without keys", plain, {}, 403),
    ):
        status, _ = service.ask(url, headers)
        if status != wanted:
            raise ServiceError(f"{what} answers with status {status}, but must with {wanted}")
    from botocore.exceptions import ClientError

    with suppress(ClientError):
        service.s3("mlflow").list_objects_v2(Bucket="study")
        raise ServiceError("MLflow's keys of the object store open the studies' bucket")


def check_listening(service: Service) -> None:
    """Check that each part listens on loopback, and that only Ray's processes and the study's listen on other ports.

    Raises:
        ServiceError: if a part doesn't, or another process does.
    """
    say("checking listening ports")
    found = listening()
    near = {port for address, port, _ in found if _is_loopback(address)}
    for part in ("postgres", "s3", "mlflow", "dashboard", "ray_front", "mlflow_front"):
        if service.port[part] not in near:
            raise ServiceError(f"{part} doesn't seem to listen on loopback")
    for address, port, command in found:
        # The driver and packs are Ray's processes, too.
        if not _is_loopback(address) and not re.search(r"/ray/|ray::|\bray start\b| -m study ", command):
            raise ServiceError(f"port {port} is open on {address}, by {command}")


def _is_loopback(address: str) -> bool:
    return address.removeprefix("::ffff:") in ("127.0.0.1", "::1")


def check_files(service: Service) -> None:
    """Check that MLflow keeps the files of its runs in the object store, by a run of its own.

    It also sets this process's environment to that of a user, for later checks of MLflow.

    Raises:
        ServiceError: if it doesn't.
    """
    # MLflow's own line on each run would interrupt ours.
    os.environ.update(service.user_environment() | {"MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"})
    from mlflow import MlflowClient

    say("checking that MLflow keeps files in the object store")
    client = MlflowClient(service.dashboard)
    run = client.create_run(client.create_experiment("smoke-files")).info.run_id
    client.log_text(run, "kept", "kept.txt")
    client.set_terminated(run)
    found = service.s3("mlflow").list_objects_v2(Bucket="mlflow").get("Contents", ())
    if not any(entry["Key"].endswith("/kept.txt") for entry in found):
        raise ServiceError("a file that was given to MLflow isn't in the object store")


def results(service: Service) -> list[str]:
    """List the trial ids of all results of the study in the store, duplicates included; empty before the first.

    Raises:
        botocore.exceptions.ClientError: if the object store refuses a request.
    """
    import pyarrow.parquet

    store, found = service.s3("study"), []
    for page in store.get_paginator("list_objects_v2").paginate(Bucket="study", Prefix=f"{NAME}/results/"):
        for entry in page.get("Contents", ()):
            body = store.get_object(Bucket="study", Key=entry["Key"])["Body"].read()
            found += pyarrow.parquet.read_table(io.BytesIO(body), columns=["trial_id"])["trial_id"].to_pylist()
    return found


def check_results(service: Service, wanted: set[str]) -> None:
    """Check that every trial has one result in the store and one MLflow run, and that all runs have finished.

    Args:
        service: the service; MLflow's client must have its environment, see `check_files`.
        wanted: ids of all trials.

    Raises:
        ServiceError: if not, with the counts.
    """
    say("checking results and runs")
    counts = Counter(results(service))
    if set(counts) != wanted or set(counts.values()) != {1}:
        twice = sum(count > 1 for count in counts.values())
        raise ServiceError(f"of {len(wanted)} trials, {len(counts)} have results, {twice} more than one")
    from mlflow import MlflowClient

    client = MlflowClient(service.dashboard)
    experiments = client.search_experiments(filter_string=f"name = '{NAME}'")
    runs = client.search_runs([found.experiment_id for found in experiments], max_results=10_000)
    statuses = Counter(run.info.status for run in runs)
    trials = Counter(run.data.tags["study.trial_id"] for run in runs if "study.trial_id" in run.data.tags)
    if set(trials) != wanted or set(trials.values()) != {1} or set(statuses) != {"FINISHED"}:
        raise ServiceError(f"{len(trials)} of {len(wanted)} trials have runs in MLflow, which are {dict(statuses)}")


def check_secrets(service: Service) -> None:
    """Check that no secret is in a process's arguments, a log, a job, a run or the store.

    MLflow's client must have the environment that `check_files` sets.

    Raises:
        ServiceError: if one is, with the place and the secret's name, but not its value.
    """
    say("looking for secrets where they don't belong")
    secrets = {path.name: path.read_bytes().strip() for path in service.secrets.iterdir()}
    del secrets["tls.crt"]  # which is public
    del secrets["s3.json"]  # its contents are secrets of their own
    places = {f"the arguments of process {number}": command.encode() for number, command in processes()}
    for folder in ("logs", "ray"):
        for path in (service.folder / folder).rglob("*"):
            if path.is_file() and not path.is_symlink():
                places[str(path)] = path.read_bytes()
    for place, text in (places | told(service)).items():
        for name, secret in secrets.items():
            if secret in text:
                raise ServiceError(f"the secret {name} stands in {place}")


def told(service: Service) -> dict[str, bytes]:
    """Return texts that users can read, by place: the cluster's jobs, MLflow's tags and parameters, all stored files.

    Raises:
        botocore.exceptions.ClientError: if the object store refuses a request.
        mlflow.exceptions.MlflowException: if MLflow does.
    """
    from mlflow import MlflowClient

    headers = {"Authorization": f"Bearer {service.secret('ray_token')}"}
    client, store = MlflowClient(service.dashboard), service.s3("study")
    found = {"the cluster's jobs": service.ask(f"{service.cluster}/api/jobs/", headers)[1]}
    for experiment in client.search_experiments():
        runs = client.search_runs([experiment.experiment_id], max_results=10_000)
        said = [experiment.tags, *((run.data.tags, run.data.params) for run in runs)]
        found[f"MLflow's experiment {experiment.name}"] = repr(said).encode()
    for page in store.get_paginator("list_objects_v2").paginate(Bucket="study"):
        for entry in page.get("Contents", ()):
            with suppress(store.exceptions.NoSuchKey):  # a checkpoint is deleted when its pack is done
                found[f"the store's {entry['Key']}"] = store.get_object(Bucket="study", Key=entry["Key"])["Body"].read()
    return found


def check_while_it_trains(service: Service) -> None:
    """Check running processes for secrets and for open ports; see `check_secrets` and `check_listening`.

    Raises:
        ServiceError: if a check fails, or no worker or driver is running.
    """
    commands = [command for _, command in processes()]
    for what, words in (("worker", ("ray::", "Trainable")), ("driver", ("study", " run ", "--store"))):
        if not any(all(word in command for word in words) for command in commands):
            raise ServiceError(f"there is no {what} to look at")
    check_secrets(service)
    check_listening(service)


def check_backup(service: Service) -> None:
    """Back up and restore MLflow's database by the commands of docs/guides/server.md, and compare the runs.

    The copy, the database ``restored``, is upgraded by ``mlflow db upgrade``, and stays.

    Raises:
        ServiceError: if a command fails or isn't in the page, or if runs are missing.
    """
    say("backing MLflow's database up, and restoring it into another")
    password = "PGPASSWORD=$(cat /run/secrets/postgres_password) exec"
    service.in_postgres(f"{password} createdb --username=mlflow restored")
    dump = service.in_postgres(documented("pg_dump"))
    service.in_postgres(documented("pg_restore").replace("--dbname=mlflow", "--dbname=restored"), dump)
    count = "psql --username=mlflow --tuples-only --no-align --command='select count(*) from runs' --dbname="
    had, has = (int(service.in_postgres(f"{password} {count}{name}")) for name in ("mlflow", "restored"))
    if not had or has != had:
        raise ServiceError(f"of {had} runs, {has} were restored")
    upgrade = ["mlflow", "db", "upgrade", "postgresql+psycopg://"]
    service.run(upgrade, service.database_environment() | {"PGDATABASE": "restored"})


def documented(program: str) -> str:
    """Return the command for a program in PostgreSQL's container, from docs/guides/server.md.

    Raises:
        ServiceError: if the page has no such command.
    """
    found = re.search(rf"-T postgres sh -c '([^']* {program} [^']*)'", MANUAL.read_text(encoding="utf-8"))
    if found is None:
        raise ServiceError(f"{MANUAL} doesn't say how to call {program}")
    return found[1]

"""Bring the service up without containers, run a small study through it, kill parts of it, and check what is left.

`deploy/smoke.sh` starts this; deploy/service.py has the parts. Exit code 0 and "smoke: passed" if all is as it must be.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from service import Service, ServiceError, end_all, processes, say, wait

STUDY_FILE = Path(__file__).resolve().with_suffix(".yaml")
NAME = "smoke"
DONE_S = 600.0


def study(service: Service, *words: str) -> str:
    """Run a command of the command line as a user would, show what it prints, and give it.

    Raises:
        ServiceError: if it fails.
    """
    say(f"$ study {' '.join(words)}")
    done = subprocess.run(
        [sys.executable, "-m", "study", *words],
        env=service.environment | service.user_environment(),
        cwd=service.folder / "home",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=DONE_S,
    )
    print("".join(f"    {line}\n" for line in done.stdout.splitlines()), end="", flush=True)
    if done.returncode:
        raise ServiceError(f"study {words[0]} failed with exit code {done.returncode}")
    return done.stdout


def check_guards(service: Service) -> None:
    """Check that nobody gets in without token, password and keys, and with them, that one does.

    Raises:
        ServiceError: if not.
    """
    say("checking the guards")
    bearer = {"Authorization": f"Bearer {service.secret('ray_token')}"}
    given = base64.b64encode(f"admin:{service.secret('mlflow_admin_password')}".encode()).decode()
    jobs, runs = (
        f"{service.cluster}/api/jobs/",
        f"{service.dashboard}/api/2.0/mlflow/experiments/get?experiment_id=0",
    )
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


def check_files(service: Service) -> None:
    """Check that MLflow keeps the files of its runs in the object store.

    Raises:
        ServiceError: if not.
    """
    # MLflow's own words on each run would stand between ours.
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
    """List the trial ids of all results in the store, as often as they are there."""
    import pyarrow.parquet

    store, found = service.s3("study"), []
    for page in store.get_paginator("list_objects_v2").paginate(Bucket="study", Prefix=f"{NAME}/results/"):
        for entry in page.get("Contents", ()):
            body = store.get_object(Bucket="study", Key=entry["Key"])["Body"].read()
            found += pyarrow.parquet.read_table(io.BytesIO(body), columns=["trial_id"])[
                "trial_id"
            ].to_pylist()
    return found


def jobs(service: Service) -> list[dict[str, Any]]:
    """List the jobs that the cluster knows."""
    headers = {"Authorization": f"Bearer {service.secret('ray_token')}"}
    return list(json.loads(service.ask(f"{service.cluster}/api/jobs/", headers)[1] or b"[]"))


def ended(service: Service) -> bool:
    """Say whether no job runs or waits."""
    return all(job["status"] in ("STOPPED", "SUCCEEDED", "FAILED") for job in jobs(service))


def kill(what: str, *words: str) -> None:
    """Kill the processes that have all these words in their command lines, without warning.

    Raises:
        ServiceError: if there is none.
    """
    found = [process for process, command in processes() if all(word in command for word in words)]
    say(f"kill -9 of {what}: {len(found)} processes")
    if not found:
        raise ServiceError(f"{what} can't be killed: there are none")
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def planned() -> set[str]:
    """Give the ids of the trials that the study asks for."""
    from study.plan import plan
    from study.spec import load_spec

    return {trial.id for trial in plan(load_spec(str(STUDY_FILE))).trials}


def check_results(service: Service, wanted: set[str]) -> None:
    """Check that every trial has one result in the store and one finished run in MLflow, and nothing runs on there.

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
        raise ServiceError(
            f"{len(trials)} of {len(wanted)} trials have runs in MLflow, which are {dict(statuses)}"
        )


def check_secrets(service: Service) -> None:
    """Check that no secret is in a process's arguments, in a log or in what the store keeps.

    Raises:
        ServiceError: if one is, naming where, and which, but not the secret.
    """
    say("looking for secrets where they don't belong")
    secrets = {path.name: path.read_bytes().strip() for path in service.secrets.iterdir()}
    del (
        secrets["tls.crt"],
        secrets["s3.json"],
    )  # everybody may see the one; what the other holds is there by itself
    places = {f"the arguments of process {number}": command.encode() for number, command in processes()}
    for folder in ("logs", "ray"):
        for path in (service.folder / folder).rglob("*"):
            if path.is_file() and not path.is_symlink():
                places[str(path)] = path.read_bytes()
    for place, text in places.items():
        for name, secret in secrets.items():
            if secret in text:
                raise ServiceError(f"the secret {name} stands in {place}")


def run_study(service: Service) -> None:
    """Take a small study through the whole service.

    Raises:
        ServiceError: if anything isn't as it must be.
    """
    wanted = planned()
    study(service, "doctor")
    study(service, "submit", str(STUDY_FILE))
    wait(lambda: results(service), "the first results", DONE_S)
    kill("the workers that train", "ray::", "Trainable")
    kill("the driver and what watches over it", "study", " run ", "--store")
    wait(lambda: ended(service), "the cluster to notice")
    if len(done := set(results(service))) == len(wanted):
        raise ServiceError("the study was over before anything could be killed: give it more to do")
    say(f"{len(done)} of {len(wanted)} trials have results")
    study(service, "status", NAME)
    study(service, "resume", NAME)
    wait(lambda: len(set(results(service))) == len(wanted), "the results of all trials", DONE_S)
    wait(lambda: ended(service), "the study to end", DONE_S)
    study(service, "status", NAME)
    check_results(service, wanted)
    study(service, "report", NAME, "--out", str(service.folder / "report"))
    if not (service.folder / "report" / "report.html").is_file():
        raise ServiceError("there is no report")


def main() -> int:
    """Run it all, and clean up whatever becomes of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and data")
    parser.add_argument(
        "--services-only", action="store_true", help="bring everything up, check the guards, and end"
    )
    parser.add_argument(
        "--serve", action="store_true", help="bring everything up, and leave it so until Ctrl-C"
    )
    asked = parser.parse_args()

    def interrupted(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    folder = Path(tempfile.mkdtemp(prefix="s-"))
    folder.chmod(0o711)  # PostgreSQL, as another user, finds its own folder in it
    passed = False
    try:
        service = Service(folder)
        service.start_all()
        if asked.serve:
            say(
                f"serving {service.cluster} and {service.dashboard}; secrets in {service.secrets}; Ctrl-C ends it"
            )
            signal.pause()
        check_guards(service)
        check_files(service)
        if not asked.services_only:
            run_study(service)
        check_secrets(service)
        passed = True
    except ServiceError as error:
        say(str(error))
    except KeyboardInterrupt:
        say("interrupted")
    finally:
        end_all()
        if asked.keep:
            say(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    say("passed" if passed else "failed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

"""Smoke test of the service without containers: run a small study, kill parts of the service, and check the results.

`deploy/smoke.sh` starts this; deploy/service.py has the parts, deploy/checks.py the checks. On success it prints
"smoke: passed" and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parent))
from checks import (
    NAME,
    check_backup,
    check_files,
    check_guards,
    check_listening,
    check_results,
    check_secrets,
    check_while_it_trains,
    results,
)
from processes import ServiceError, end_all, processes, say, wait
from service import Service

STUDY_FILE = Path(__file__).resolve().with_suffix(".yaml")
DONE_S = 600.0


def study(service: Service, *words: str) -> str:
    """Run a CLI command as a user would, print its output, and return it.

    Raises:
        ServiceError: if it fails.
        subprocess.TimeoutExpired: if it takes more than `DONE_S`.
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


def statuses(service: Service) -> list[str]:
    """List the states of the cluster's jobs; empty if it doesn't answer with status 200."""
    headers = {"Authorization": f"Bearer {service.secret('ray_token')}"}
    status, body = service.ask(f"{service.cluster}/api/jobs/", headers)
    return [job["status"] for job in json.loads(body)] if status == 200 else []


def ended(service: Service) -> bool:
    """Return True if there are jobs, and all have ended."""
    found = statuses(service)
    return bool(found) and all(status in ("STOPPED", "SUCCEEDED", "FAILED") for status in found)


def has_results(service: Service, count: int) -> bool:
    """Return True if at least `count` trials have results.

    Raises:
        ServiceError: if there are fewer, and all jobs have ended.
        subprocess.TimeoutExpired: if the logs can't be read in `DONE_S`.
    """
    over = ended(service)  # asked first: a job that has ended has stored its results
    if (there := len(set(results(service)))) < count and over:
        study(service, "logs", NAME, "--lines", "50")
        raise ServiceError(f"the study ended with {there} results, and {count} were waited for")
    return there >= count


def kill(what: str, *words: str) -> None:
    """Kill the processes whose command line has all these words, by SIGKILL.

    Args:
        what: the processes, for messages.
        words: the words.

    Raises:
        ServiceError: if no process matches.
    """
    found = [process for process, command in processes() if all(word in command for word in words)]
    say(f"kill -9 of {what}: {len(found)} processes")
    if not found:
        raise ServiceError(f"{what} can't be killed: there are none")
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def planned() -> set[str]:
    """Return the ids of the study's planned trials."""
    from study.plan.plan import make_plan
    from study.spec import load_spec

    return {trial.id for trial in make_plan(load_spec(str(STUDY_FILE))).trials}


def run_study(service: Service) -> None:
    """Run a small study through the whole service, kill its workers and its driver, resume it, and check its results.

    Raises:
        ServiceError: if a command or a check fails, or an awaited event doesn't come in time.
        subprocess.TimeoutExpired: if a command takes more than `DONE_S`.
    """
    wanted = planned()
    study(service, "doctor")
    study(service, "submit", str(STUDY_FILE))
    wait(lambda: has_results(service, 1), "the first results", DONE_S)
    check_while_it_trains(service)
    kill("the workers that train", "ray::", "Trainable")
    kill("the driver and what watches over it", "study", " run ", "--store")
    wait(lambda: ended(service), "the cluster to notice")
    if len(done := set(results(service))) == len(wanted):
        raise ServiceError("the study ended before the kill; increase its trials")
    say(f"{len(done)} of {len(wanted)} trials have results")
    study(service, "status", NAME)
    study(service, "resume", NAME)
    wait(lambda: has_results(service, len(wanted)), "the results of all trials", DONE_S)
    wait(lambda: ended(service), "the study to end", DONE_S)
    study(service, "status", NAME)
    check_results(service, wanted)
    study(service, "report", NAME, "--out", str(service.folder / "report"))
    if not (service.folder / "report" / "report.html").is_file():
        raise ServiceError("there is no report")
    check_backup(service)


def main() -> int:
    """Run the test, end all processes in any case, and return the exit code: 0 if it passed, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and data, as after a failure")
    parser.add_argument("--services-only", action="store_true", help="start all services, check them, and end")
    parser.add_argument("--serve", action="store_true", help="start all services, and keep them until Ctrl-C")
    asked = parser.parse_args()

    def interrupted(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    folder = Path(tempfile.mkdtemp(prefix="s-"))
    folder.chmod(0o711)  # PostgreSQL runs as another user, who must reach its folder below
    passed = False
    try:
        service = Service(folder)
        service.start_all()
        if asked.serve:
            say(f"serving {service.cluster} and {service.dashboard}; secrets in {service.secrets}; Ctrl-C ends it")
            with suppress(KeyboardInterrupt):
                signal.pause()
        else:
            check_guards(service)
            check_listening(service)
            check_files(service)
            if not asked.services_only:
                run_study(service)
            check_secrets(service)
        passed = True
    except ServiceError as error:
        say(str(error))
    except KeyboardInterrupt:
        say("interrupted")
    except Exception as error:  # an error of a library that the checks use is a failure, too
        (folder / "error.txt").write_text(traceback.format_exc())
        say(f"{type(error).__name__}: {error}; where: {folder}/error.txt")
    finally:
        end_all()
        if asked.keep or not passed:
            say(f"kept {folder}, with logs in logs/ and ray/")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    say("passed" if passed else "failed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

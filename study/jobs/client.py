"""Requests to a cluster's dashboard, with deadlines; the only module that uses Ray's job submission."""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Any

from study.errors import ClusterError, StudyError
from study.extras import OLDEST_RAY, check_ray
from study.jobs.address import Address, parse_address, token
from study.jobs.rows import Job, Node, Reservation, job_of, node_of, reservation_of

if TYPE_CHECKING:
    import aiohttp
    import requests

_CONNECT_S, _ANSWER_S = 5.0, 30.0
_POLL_S = 2.0
_RESERVATIONS = (
    "/api/v0/placement_groups?detail=1&limit=10000&filter_keys=state&filter_predicates=%3D&filter_values=CREATED"
)


class TakenError(StudyError):
    """The job id is taken: another submission was faster."""


def connect(address: str | Address, notify: Callable[[str], None] | None = None) -> Client:
    """Return a client of a cluster's dashboard, after checking that it answers, accepts the token and can be used.

    Args:
        address: the dashboard's address.
        notify: called with a warning before a token is sent unencrypted over a network.

    Raises:
        InputError: if it isn't the address of a dashboard, or holds a password, or the token's file can't be read.
        MissingPackageError: if Ray isn't installed here in a supported version, with its extras.
        ClusterError: if it can't be reached, a token is missing or refused, or it isn't a Ray dashboard of a supported
            version.
    """
    check_ray("a cluster")
    where = address if isinstance(address, Address) else parse_address(address)
    client = Client(where, token())
    if notify is not None and client.has_token and not where.is_loopback and not where.encrypted:
        notify(f"{where.url} is not encrypted: the token can be read on the way; use https, or a tunnel (ssh -L)")
    client.check()
    return client


class Client:
    """A cluster's dashboard.

    Args:
        address: the dashboard's address.
        secret: the token; None to send none.
    """

    def __init__(self, address: Address, secret: str | None) -> None:
        self.address = address
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self.ray_version = ""

    @property
    def has_token(self) -> bool:
        """True if requests carry a token."""
        return bool(self._headers)

    def check(self) -> None:
        """Check that a Ray dashboard of a supported version answers, and set `ray_version` to its version.

        Supported are versions from `OLDEST_RAY` on with the major version of the Ray that is installed here.

        Raises:
            ClusterError: if not, or if a token is missing or refused.
        """
        answer = self._ask("GET", "/api/version", reason="it isn't a Ray dashboard")
        version = answer.get("ray_version") if isinstance(answer, dict) else None
        if not isinstance(version, str):
            raise ClusterError(f"{self.address.url} isn't a Ray dashboard: it doesn't know Ray's version")
        self.ray_version = version
        ours = installed_version("ray")  # importing Ray itself takes half a second
        if _version_numbers(version)[0] != _version_numbers(ours)[0] or _version_numbers(version) < OLDEST_RAY:
            raise ClusterError(
                f"the cluster at {self.address.url} runs Ray {version}, but here is Ray {ours}, and this package needs "
                f"{OLDEST_RAY[0]}.{OLDEST_RAY[1]} or newer on both sides: install the same version there"
            )

    def asks_for_token(self) -> bool:
        """Return True if the cluster refuses requests without a token.

        Raises:
            ClusterError: if the cluster can't be reached.
        """
        return self._request("GET", "/api/version", headers={}).status_code in (401, 403)

    def jobs(self) -> list[Job]:
        """Return the jobs that were submitted to the cluster, the oldest first.

        Raises:
            ClusterError: if the cluster can't be reached, or refuses the request.
        """
        entries = self._ask("GET", "/api/jobs/")
        jobs = [job_of(entry) for entry in entries if entry.get("submission_id")]
        return sorted(jobs, key=lambda job: (job.began_s, job.id))

    def job(self, job_id: str) -> Job:
        """Return a job by its submission id.

        Raises:
            ClusterError: if the cluster can't be reached, or has no such job.
        """
        return job_of(self._ask("GET", f"/api/jobs/{job_id}"))

    def nodes(self) -> list[Node]:
        """Return the nodes that are alive, the head first.

        Raises:
            ClusterError: if the cluster can't be reached, or refuses the request.
        """
        entries = self._ask("GET", "/nodes?view=summary")["data"]["summary"]
        alive = [node_of(entry) for entry in entries if entry.get("raylet", {}).get("state") == "ALIVE"]
        return sorted(alive, key=lambda node: (not node.head, node.name, node.id))

    def reservations(self) -> list[Reservation]:
        """Return Ray's reservations for workers, at most 10,000; empty if the answer has no such list.

        Raises:
            ClusterError: if the cluster can't be reached.
        """
        answer = self._request("GET", _RESERVATIONS)
        try:
            entries = answer.json()["data"]["result"]["result"] if answer.status_code == 200 else ()
            return [reservation_of(entry) for entry in entries]
        except (ValueError, KeyError, TypeError):
            return []

    def submit(
        self,
        job_id: str,
        entrypoint: str,
        *,
        metadata: Mapping[str, str],
        environment: Mapping[str, str],
        folder: str | None = None,
        node_label: Mapping[str, str] | None = None,
    ) -> None:
        """Submit a job.

        Args:
            job_id: an id that no other job has.
            entrypoint: the shell command to run.
            metadata: texts that everyone who may use the cluster can read.
            environment: variables of the job's processes, readable by the same people.
            folder: folder to upload, as the command's working folder; None to upload nothing.
            node_label: labels of the command's node; None for the head.

        Raises:
            TakenError: if the job id is taken.
            ClusterError: if the cluster can't be reached or refuses the job, or if the connection breaks off; the job
                may have been accepted then.
        """
        runtime: dict[str, Any] = {"env_vars": dict(environment)}
        if folder is not None:
            runtime["working_dir"] = folder
        import requests

        try:
            with _quiet_logging():
                self._submission().submit_job(
                    entrypoint=entrypoint,
                    submission_id=job_id,
                    runtime_env=runtime,
                    metadata=dict(metadata),
                    entrypoint_label_selector=dict(node_label) if node_label else None,
                )
        except requests.exceptions.RequestException as error:
            raise ClusterError(
                f"{self.address.url} broke off while the job was submitted: `study list --cluster {self.address.url}` "
                "lists the job if it was accepted"
            ) from error
        except (RuntimeError, ConnectionError, ValueError) as error:
            if "already exists" in str(error):
                raise TakenError(f"a job {job_id} exists already") from error
            raise ClusterError(f"the cluster at {self.address.url} refused the job: {_last_line(error)}") from error

    def stop(self, job_id: str) -> bool:
        """Ask a job to end, and return True if it was running.

        Raises:
            ClusterError: if the cluster can't be reached, or refuses the request.
        """
        return bool(self._ask("POST", f"/api/jobs/{job_id}/stop").get("stopped"))

    def tail(self, job: Job, lines: int) -> str:
        """Return the last lines of a job's log; empty if its node is gone, the log isn't there yet, or can't be read.

        Raises:
            ClusterError: if the cluster can't be reached.
        """
        if job.node_id is None:
            return ""
        answer = self._request("GET", _log_query("file", job, lines) + "&timeout=10")
        return answer.content.decode(errors="replace") if answer.status_code == 200 else ""

    def follow(self, job_id: str, lines: int) -> Iterator[str]:
        """Yield a job's last log lines, then new lines as they are written, until the job has ended.

        It waits for a log that isn't there yet. A job that ended without a readable log yields no lines.

        Raises:
            ClusterError: if the cluster can't be reached, refuses the request or has no such job, or if the log breaks
                off while the job runs.
        """
        loop = asyncio.new_event_loop()
        chunks = self._chunks(job_id, lines)
        unfinished = ""
        try:
            while (chunk := loop.run_until_complete(anext(chunks, None))) is not None:
                unfinished += chunk
                *complete, unfinished = unfinished.split("\n")
                yield from complete
            if unfinished:
                yield unfinished
        finally:
            loop.run_until_complete(chunks.aclose())
            loop.close()

    async def _chunks(self, job_id: str, lines: int) -> AsyncGenerator[str]:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
        async with aiohttp.ClientSession(headers=self._headers, timeout=timeout, trust_env=True) as session:
            while True:
                job = self.job(job_id)
                if job.node_id is not None:
                    query = f"{self.address.url}{_log_query('stream', job, lines)}&interval=0.5"
                    try:
                        async with session.get(query) as answer:
                            if answer.status == 200:
                                async for chunk in self._stream(answer, job_id):
                                    yield chunk
                                return
                    except aiohttp.ClientError as error:
                        self._check_ended(job_id, error)
                        return
                # The node or the file may not be there yet, or both may be gone.
                if job.ended:
                    return
                await asyncio.sleep(_POLL_S)

    async def _stream(self, answer: aiohttp.ClientResponse, job_id: str) -> AsyncGenerator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                chunk = await asyncio.wait_for(answer.content.readany(), _POLL_S)
            except TimeoutError:
                if self.job(job_id).ended:
                    return
                continue
            if not chunk:
                self._check_ended(job_id)
                return
            yield decoder.decode(chunk)

    def _check_ended(self, job_id: str, cause: BaseException | None = None) -> None:
        """Raise ClusterError if the job still runs, although its log broke off."""
        if not self.job(job_id).ended:
            raise ClusterError(f"the log of {job_id} broke off: its node is gone, or can't be reached") from cause

    def _ask(self, method: str, path: str, *, reason: str = "it gave an unexpected answer") -> Any:
        """Send a request, and return the JSON of a successful answer; raise ClusterError for any other answer."""
        answer = self._request(method, path)
        problem = _refusal(answer.status_code, self.has_token)
        if problem is not None:
            raise ClusterError(f"the cluster at {self.address.url} {problem}")
        try:
            if answer.status_code == 200:
                return answer.json()
        except ValueError:
            pass
        raise ClusterError(f"{self.address.url} can't be used: {reason} (status {answer.status_code})")

    def _request(self, method: str, path: str, *, headers: Mapping[str, str] | None = None) -> requests.Response:
        import requests

        try:
            return requests.request(
                method,
                self.address.url + path,
                headers=self._headers if headers is None else headers,
                timeout=(_CONNECT_S, _ANSWER_S),
            )
        except requests.exceptions.SSLError as error:
            raise ClusterError(f"{self.address.url} has no trusted certificate: {_last_line(error)}") from error
        except requests.exceptions.ConnectionError as error:
            raise ClusterError(
                f"nothing answers at {self.address.url}: check --cluster, and that the network lets you through. If a "
                "cluster was there, its head has died; what studies have stored is kept: bring it up, and submit again"
            ) from error
        except requests.exceptions.Timeout as error:
            raise ClusterError(
                f"{self.address.url} takes longer than {_ANSWER_S:.0f} s to answer: its head is overloaded or dying"
            ) from error
        except requests.exceptions.RequestException as error:
            raise ClusterError(f"{self.address.url} can't be reached: {_last_line(error)}") from error

    def _submission(self) -> Any:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        from ray.job_submission import JobSubmissionClient

        class Timed(JobSubmissionClient):
            """Ray's client with a timeout; without one it waits for ever if the head stops in mid-answer."""

            def _do_request(self, *args: Any, **kwargs: Any) -> Any:
                return super()._do_request(*args, timeout=(_CONNECT_S, _ANSWER_S), **kwargs)

        return Timed(self.address.url, headers=dict(self._headers))


def _log_query(kind: str, job: Job, lines: int) -> str:
    return f"/api/v0/logs/{kind}?submission_id={job.id}&node_id={job.node_id}&lines={lines}"


def _refusal(status: int, has_token: bool) -> str | None:
    """Explain a refusal for a missing or wrong token, from the status; None for any other status."""
    if status == 401 and not has_token:
        return (
            "asks for a token, and there is none here: put it into ~/.ray/auth_token (readable by you alone), or "
            "name its file in RAY_AUTH_TOKEN_PATH"
        )
    if status in (401, 403):
        return (
            "refuses the token: it isn't this cluster's; take the one that its head uses "
            "(RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH, ~/.ray/auth_token, in this order)"
        )
    return None


def _version_numbers(version: str) -> tuple[int, int]:
    try:
        major, minor = version.split(".")[:2]
        return int(major), int(minor)
    except ValueError as error:
        raise ClusterError(f"{version!r} isn't a known version of Ray") from error


def _last_line(error: BaseException) -> str:
    """Return the last line of an error's text, cut to 300 characters; the error's type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:300]


@contextmanager
def _quiet_logging() -> Iterator[None]:
    """Suppress all log messages up to warnings, such as Ray's about packages and versions, during the block."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)

"""A folder in an object store: Amazon S3 and compatible servers, Google Cloud Storage, Azure.

This is the only file that imports obstore. Object stores write objects atomically. Credentials come from the machine's
environment, files or role.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import from_url

from study.addresses import without_secret
from study.errors import InputError, StoreAwayError, StoreError, StudyError
from study.store.folder import Folder, StudyLock, in_order
from study.store.lease import Lease, Timing, Version, named_holder

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

SCHEMES = {
    **dict.fromkeys(("s3", "s3a"), "Amazon S3"),
    "gs": "Google Cloud Storage",
    **dict.fromkeys(("az", "adl", "azure", "abfs", "abfss"), "Azure"),
}
"""Names of the supported object stores, by URL scheme."""

_ADVICE = {
    "Amazon S3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), or give the machine a role; "
    "another server than Amazon's also needs AWS_ENDPOINT_URL",
    "Google Cloud Storage": "set GOOGLE_APPLICATION_CREDENTIALS, or give the machine a service account",
    "Azure": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or give the machine an identity",
}
_NO_CREDENTIALS = re.compile(
    r"169\.254\.169\.254|metadata\.google|Missing AccessKeyId|Missing SecretAccessKey|token request|[Cc]redential"
    r"|Account must be specified"
)
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
_STATUS = re.compile(r"status code: (\d{3}) ?([A-Za-z ]*)")
_REQUEST = re.compile(r"Error performing .* in [\d.]+\w+(, after \d+ retries.*?)? +- ")
# A store that is away must be reported within seconds; callers that can wait use `patiently`.
_RETRY = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=8),
    "backoff": {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=3), "base": 2},
}
_CLIENT = {"connect_timeout": "3s", "timeout": "20s"}
_AT_ONCE = 32
_USUAL = Timing()


def open_objects(url: str, timing: Timing = _USUAL) -> ObjectFolder:
    """Open a folder of an object store, without sending it a request yet.

    Args:
        url: such as ``s3://bucket/prefix``.
        timing: renewal and takeover times of its lock.

    Raises:
        InputError: if the URL isn't that of an object store, names no bucket, has an empty part in its path, or has a
            user, a query or a fragment, which may be a secret.
        StoreError: if a required setting or package is missing, or the user's AWS files can't be read.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:  # an unbalanced bracket
        raise InputError(f"--store {without_secret(url)} can't be read as a URL") from error
    scheme, place = parts.scheme.lower(), parts.netloc.rpartition("@")[2]
    where, plain = f"{scheme}://{place}{parts.path.rstrip('/')}", without_secret(url)
    if scheme not in SCHEMES:
        hint = "; a folder is given by its path alone" if scheme == "file" else ""
        raise InputError(
            f"--store {plain}: results can't be kept at {scheme}://; give a folder, or a URL that begins with one of "
            f"{', '.join(f'{name}://' for name in SCHEMES)}{hint}"
        )
    is_container = scheme in ("abfs", "abfss") and ":" not in parts.netloc  # container@account
    # Bucket names have no colon: this is a secret key, cut off at a slash.
    has_user = ":" in parts.netloc or ("@" in parts.netloc and not is_container)
    if has_user or parts.query or parts.fragment:
        raise InputError(
            f"--store {plain}: the address must not contain a password, key or token, since it is printed and stored: "
            + _ADVICE[SCHEMES[scheme]]
        )
    if is_container:
        where = f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    if not place:
        raise InputError(f"--store {where}: the name of a bucket must follow, as in {scheme}://bucket/studies")
    if "//" in parts.path.rstrip("/"):
        raise InputError(f"--store {where}: its path must not have an empty part, as in //")
    with _explained(SCHEMES[scheme], where, "open"):
        store = from_url(where, client_options=_client(), retry_config=_RETRY, **_keys(scheme))  # type: ignore[call-overload]
    return ObjectFolder(store, where, SCHEMES[scheme], timing=timing)


class ObjectFolder(Folder):
    """A folder of an object store, made by `open_objects` or `below`.

    Args:
        store: the client of the bucket.
        where: the folder's URL, to print.
        kind: the object store's name, for messages.
        prefix: the prefix of the folder's keys in the bucket; empty, or with a slash at its end.
        timing: renewal and takeover times of its lock.
    """

    def __init__(self, store: ObjectStore, where: str, kind: str, prefix: str = "", timing: Timing = _USUAL) -> None:
        self.where, self.name = where, where.rpartition("/")[2]
        self._store, self._kind, self._prefix, self._timing = store, kind, prefix, timing

    @property
    def address(self) -> str:
        """The URL."""
        return self.where

    @property
    def is_there(self) -> bool:
        """True if any object is below the prefix.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        with self._explained("", "list"):
            first = next(iter(obstore.list(self._store, self._prefix or None, chunk_size=1)), None)
        return bool(first)

    def below(self, name: str) -> ObjectFolder:
        """Return the folder of that name directly below this one.

        Raises:
            InputError: if the name is empty or leads elsewhere, or has a slash, a backslash or an ASCII control
                character.
        """
        if name in ("", ".", "..") or re.search(r"[/\\\x00-\x1f\x7f]", name):
            must = f"one folder right below {self.where}, without slashes, backslashes and control characters"
            raise InputError(f"{name!r} can't name a study: it must be {must}")
        return ObjectFolder(self._store, f"{self.where}/{name}", self._kind, f"{self._prefix}{name}/", self._timing)

    def as_it_is(self) -> ObjectFolder:
        """Return this folder, since a prefix can't disappear."""
        return self

    def holding(self, key: str) -> list[str]:
        """Return the names of the prefixes directly below that have an object of that key, sorted.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        with self._explained("", "list"):
            listing = obstore.list_with_delimiter(self._store, self._prefix or None)
        names = [path.removeprefix(self._prefix) for path in listing["common_prefixes"]]
        answers = in_order(lambda name: self.exists(f"{name}/{key}"), names, _AT_ONCE)
        return sorted(name for name, exists in answers if exists)

    def names(self, kind: str, suffix: str) -> list[str]:
        """Return the names of the objects directly below ``kind/`` that end in a suffix, sorted.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        base = f"{self._prefix}{kind}/"
        with self._explained(kind, "list"):
            paths = [
                entry["path"].removeprefix(base)
                for entries in obstore.list(self._store, base.rstrip("/"))
                for entry in entries
            ]
        return sorted(path for path in paths if path.endswith(suffix) and "/" not in path)

    def times(self, kind: str = "") -> dict[str, float]:
        """Return the time (s since 1970) of the last write of each object directly below ``kind/``, by name.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        base = f"{self._prefix}{kind}/" if kind else self._prefix
        with self._explained(kind, "list"):
            listing = obstore.list_with_delimiter(self._store, base or None)
        return {o["path"].removeprefix(base): o["last_modified"].timestamp() for o in listing["objects"]}

    def exists(self, key: str) -> bool:
        """Return True if the object exists; only its head is requested.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        return self._if_there(key, lambda path: obstore.head(self._store, path)) is not None

    def read(self, key: str) -> bytes | None:
        """Return the bytes of an object; None if it doesn't exist.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        return self._if_there(key, lambda path: bytes(obstore.get(self._store, path).bytes()))

    def read_all(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Yield each key with its bytes, or None if it doesn't exist, in order; objects are read in parallel.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        return in_order(self.read, keys, _AT_ONCE)

    def write(self, key: str, data: bytes) -> None:
        """Put an object, replacing an earlier one.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        with self._explained(key, "write"):
            obstore.put(self._store, self._prefix + key, data)

    def remove(self, key: str) -> None:
        """Delete an object; no-op if it doesn't exist.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        self._if_there(key, lambda path: obstore.delete(self._store, path), doing="remove")

    def folders(self, kind: str) -> list[str]:
        """Return the names of the prefixes directly below ``kind/``, sorted.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        base = f"{self._prefix}{kind}/"
        with self._explained(kind, "list"):
            listing = obstore.list_with_delimiter(self._store, base.rstrip("/"))
        return sorted(path.removeprefix(base).rstrip("/") for path in listing["common_prefixes"])

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the size in bytes of each object below a folder of this prefix, at any depth, by key.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        prefix = f"{self._prefix}{below}"
        with self._explained(below, "list"):
            listing = [entry for entries in obstore.list(self._store, prefix or None) for entry in entries]
        return {entry["path"].removeprefix(self._prefix): entry["size"] for entry in listing}

    def remove_all(self, keys: Sequence[str]) -> None:
        """Delete many objects in few requests.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        with self._explained("", "remove"):
            obstore.delete(self._store, [self._prefix + key for key in keys])

    def remove_folders(self) -> None:
        """Do nothing, since prefixes don't exist without objects."""

    def move(self, key: str, to: str) -> bool:
        """Copy an object and delete the original; return False if it doesn't exist.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """

        def rename(path: str) -> bool:
            """Rename an object within the bucket, and return True."""
            obstore.rename(self._store, path, self._prefix + to)
            return True

        return self._if_there(key, rename, doing="set aside") is not None

    @contextmanager
    def lock(self, notify: Callable[[str], None]) -> Iterator[StudyLock]:
        """Hold the object ``lock``; if the holder dies, the next process that wants the lock notices.

        Args:
            notify: called with a sentence if an earlier holder must be watched first, and on a takeover.

        Yields:
            The lock; its attribute `lost` tells if another process has taken it over.

        Raises:
            BusyError: if another process holds it.
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, refuses the request or ignores conditional writes.
        """
        lease = Lease(self, "lock", self.name, self._timing)
        try:
            lease.acquire(notify)
            yield lease
        finally:
            lease.release()

    def holder(self) -> str | None:
        """Describe the process named in the object ``lock``; None if there is none.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        return named_holder(self.read("lock"))

    def clean(self) -> None:
        """Do nothing, since objects are written atomically."""

    def read_versioned(self, key: str) -> tuple[bytes, Version] | None:
        """Return an object's bytes and version; None if it doesn't exist.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """

        def get(path: str) -> tuple[bytes, Version]:
            """Return an object's bytes and version."""
            response = obstore.get(self._store, path)
            return bytes(response.bytes()), _version(response.meta)

        return self._if_there(key, get)

    def put_if(self, key: str, data: bytes, version: Version | None) -> Version | None:
        """Replace a version of an object, or create the object; return the new version, or None on conflict.

        Raises:
            InputError: if the bucket doesn't exist.
            StoreError: if the store can't be reached, or refuses the request.
        """
        mode: Any = "create" if version is None else dict(version)
        try:
            with self._explained(key, "write", let_pass=(AlreadyExistsError, PreconditionError, FileNotFoundError)):
                return _version(obstore.put(self._store, self._prefix + key, data, mode=mode))
        except (AlreadyExistsError, PreconditionError):
            return None
        except FileNotFoundError as error:
            self._check_bucket(error, key)
            return None  # the version was removed

    def _if_there(self, key: str, request: Callable[[str], T], doing: str = "read") -> T | None:
        """Return the answer to a request for an object, None if it doesn't exist; raise the package's errors."""
        try:
            with self._explained(key, doing, let_pass=(FileNotFoundError,)):
                return request(self._prefix + key)
        except FileNotFoundError as error:
            self._check_bucket(error, key)
            return None

    def _check_bucket(self, error: FileNotFoundError, key: str) -> None:
        """Raise InputError if the bucket is missing, rather than the object."""
        if _NO_BUCKET.search(str(error)):
            raise _sentence(error, self._kind, self.where_is(key), "reach") from None

    def _explained(self, key: str, doing: str, let_pass: tuple[type[Exception], ...] = ()) -> Any:
        """Return the context that converts obstore's errors about a key; an empty key stands for the folder."""
        return _explained(self._kind, self.where_is(key) if key else self.where, doing, let_pass)


def _client() -> dict[str, Any]:
    """Return the client's options: timeouts, and plain HTTP if the user's endpoint has it."""
    plain = any(os.environ.get(name, "").startswith("http://") for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    return _CLIENT | ({"allow_http": True} if plain else {})  # a user who names a plain HTTP server accepts it


def _keys(scheme: str) -> dict[str, Any]:
    """Return an argument with a provider of the keys in the user's AWS files; empty if they aren't needed.

    Raise StoreError if boto3, which reads them, isn't installed, or can't read them.
    """
    if SCHEMES[scheme] != "Amazon S3" or "AWS_ACCESS_KEY_ID" in os.environ:
        return {}
    file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    if "AWS_PROFILE" not in os.environ and not Path(file).expanduser().is_file():
        return {}
    if importlib.util.find_spec("boto3") is None:
        raise StoreError("the keys in ~/.aws are read by boto3, which isn't installed: pip install boto3")
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return {"credential_provider": Boto3CredentialProvider()}
    except Exception as error:  # botocore's own, such as for an unknown profile
        advice = f"correct {file} or ~/.aws/config, or the environment variable AWS_PROFILE if it is set"
        raise StoreError(f"the AWS keys can't be read: {error}; {advice}") from None


def _version(meta: Any) -> Version:
    """Return the attributes that identify an object's version."""
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


@contextmanager
def _explained(kind: str, where: str, doing: str, let_pass: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Raise obstore's errors, except those in `let_pass`, as the package's errors, with advice for the user."""
    try:
        yield
    except let_pass:
        raise
    except (BaseError, OSError, ValueError) as error:
        raise _sentence(error, kind, where, doing) from None  # the error's text may be pages long


def _sentence(error: Exception, kind: str, where: str, doing: str) -> StudyError:
    """Return the package's error for an error of obstore, with advice.

    It is an InputError for an invalid key or a missing bucket, a StoreError for a refusal or missing credentials, and a
    StoreAwayError for anything else.
    """
    text = str(error) or type(error).__name__
    status = _STATUS.search(text)
    if isinstance(error, InvalidPathError):
        return InputError(f"{where} can't be the address of an object: {_first_line(text)}")
    if _NO_BUCKET.search(text):
        bucket = "://".join([where.partition("://")[0], where.partition("://")[2].partition("/")[0]])
        return InputError(f"can't {doing} {where}: {kind} has no bucket {bucket}; make it first, or correct --store")
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or (status and status[1] in ("401", "403")):
        return StoreError(
            f"can't {doing} {where}: {kind} refuses these credentials ({_first_line(text)}); "
            f"the bucket must allow them to read, write and list; {_ADVICE[kind]}"
        )
    if _NO_CREDENTIALS.search(text):
        return StoreError(f"can't {doing} {where}: there are no credentials for {kind} here; {_ADVICE[kind]}")
    refused = status is not None and status[1].startswith(("3", "4")) and status[1] not in ("408", "429")
    if refused or isinstance(error, ValueError):
        return StoreError(f"can't {doing} {where}: {kind} refuses it ({_first_line(text)}); {_ADVICE[kind]}")
    return StoreAwayError(
        f"can't {doing} {where}: no answer from {_server(kind)} ({_first_line(text)}); what was stored before is "
        "untouched; check that the server is up and can be reached from here"
    )


def _server(kind: str) -> str:
    """Return the server's name for messages: the host of another server than Amazon's, else the store's."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "") if kind == "Amazon S3" else ""
    host = urlsplit(endpoint).netloc.rpartition("@")[2]
    return f"the server at {host}" if host else kind


def _first_line(text: str) -> str:
    """Return an error's HTTP status, else its first line, without the request, whose address may contain a token."""
    status = _STATUS.search(text)
    if status is not None:
        return f"{status[1]} {status[2]}".strip()
    line = _REQUEST.sub("", text.partition("\n")[0])
    return re.sub(r"\?\S*", "", line).strip()[:200]

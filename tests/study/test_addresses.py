"""Secrecy of passwords and tokens in addresses: no part of one is shown, linked or stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from study.addresses import holds_secret, page_of, safe_message, without_secret
from study.api.where import Where
from study.cli import main
from study.driver.options import Options
from study.errors import InputError, StudyError, TrackingError
from study.jobs import parse_address
from study.jobs.submit import make_order
from study.search import storage
from study.settings import Setting, check_no_secret, confirmed
from study.store import Store
from study.tracking.trouble import explaining_errors

# Letters that messages of this program don't have; passwords also have all separators of addresses.
LETTERS = "ЖЩЪЫЭЮЯ"
PASSWORDS = st.text(LETTERS + "1@:/?#&=%[]\\ .;,'\"-_", min_size=1, max_size=12).filter(
    lambda text: set(text) & set(LETTERS)
)
WEB = ("https://{user}:{password}@host:5000/path", "https://{password}@host", "http://host/p?token={password}")
WEB += ("https://host/p#{password}", "https://{user}:{password}@host/p?key={password}&x=a")
DATABASES = ("postgresql://{user}:{password}@host/db", "postgresql+psycopg://host/db?user=a&password={password}")
STORES = ("s3://{user}:{password}@bucket/studies", "s3://bucket/studies?key={password}")


def addresses(patterns: tuple[str, ...], users: st.SearchStrategy[str] = PASSWORDS) -> st.SearchStrategy[str]:
    return st.builds(
        lambda pattern, user, password: pattern.format(user=user, password=password),
        st.sampled_from(patterns),
        users,
        PASSWORDS,
    )


# A key's id has no slash; its secret may have one.
OF_STORES = addresses(STORES, st.text(LETTERS, min_size=1, max_size=8))


def error_of(act: Callable[[], object]) -> str:
    with pytest.raises(StudyError) as caught:
        act()
    return str(caught.value)


def is_clean(text: str) -> bool:
    return not set(text) & set(LETTERS)


@given(addresses((*WEB, *DATABASES)) | OF_STORES)
def test_shown_addresses_contain_no_secret(address):
    """No letter of a password occurs in the shown, linked or quoted address."""
    assert is_clean(without_secret(address))
    assert is_clean(page_of(address))
    assert is_clean(safe_message(address, f"Failed to parse: {address}"))
    assert without_secret(without_secret(address)) == without_secret(address)
    # An address in a library's message ends at a space, and a quoted password has none.
    if not any(c.isspace() for c in address):
        assert is_clean(safe_message("https://host", f"can't parse {address}"))


@given(addresses((*WEB, *DATABASES)) | OF_STORES)
def test_no_error_repeats_a_secret(address):
    """Functions that refuse an address, or get a server's error, raise a message without the secret."""
    assert holds_secret(address)
    assert is_clean(error_of(lambda: check_no_secret(address, "--tracking-uri")))
    assert is_clean(error_of(lambda: parse_address(address)))
    if "@" in address:  # without an @ the address is a folder's path
        assert is_clean(error_of(lambda: parse_address("a" + address.partition("//")[2])))
    assert is_clean(error_of(lambda: make_order("a", "a", "/a", tracking_uri=address)))
    assert is_clean(error_of(lambda: confirmed("cluster", Setting(address, Path("study.toml"), confirmed=False))))
    with pytest.raises(TrackingError) as caught, explaining_errors(address):
        raise ValueError(f"Failed to parse: {address}")
    assert is_clean(str(caught.value))


@given(OF_STORES)
def test_no_store_repeats_a_secret(address):
    """A store's URL with a key is refused, and the message has no letter of the key."""
    assert is_clean(error_of(lambda: Store(address)))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(addresses(DATABASES), st.sampled_from(["report", "ui", "sync"]))
def test_no_command_repeats_a_secret(tmp_path, address, command):
    """A command with a secret in an address states the rule, and doesn't repeat the address."""
    words = [command, *([] if command == "ui" else ["nothing"]), "--store", str(tmp_path), "--tracking-uri", address]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert is_clean(result.output)


def test_an_optuna_storage_repeats_no_secret(tmp_path):
    """SQLAlchemy's message about a database address is omitted if the address has a password."""
    from study.search.record import Record
    from study.spec import parse_spec

    text = (
        "{study: s, task: {name: simple}, models: [NMU], seeds: 2, ranges: {hidden_size: {choices: [2, 3]}}, "
        "search: {objective: success_rate, trials: 60, first_seeds: 1}}"
    )
    messages: list[str] = []
    for address in ("ЖЖ://ЩЩ:Ю/Я@host/db", "nodriver://me:ЖЖ@host/db", "postgresql://me:ЖЖ/Я@127.0.0.1:1/db"):
        assert not storage.write_storage(address, parse_spec(text, source="test"), Record("", ""), messages.append)
    assert len(messages) == 3
    assert all(map(is_clean, messages))


def test_an_address_without_a_secret_is_unchanged():
    """An address without user and query is shown unchanged."""
    for address in (
        "https://host:5000/mlflow",
        "sqlite:////data/a:b@c#d.db",
        "s3://bucket/a@b",
        "abfs://box@account/a",
        "/a:b@c?d",
        "studies",
        "off",
    ):
        assert without_secret(address) == address
        assert page_of(address) == address
        assert not holds_secret(address)
    with pytest.raises(InputError, match="got 'head:6379'"):
        parse_address("head:6379")


def test_addresses_mean_the_same_in_every_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses become absolute when they are read, because a study's code may change the directory."""
    monkeypatch.chdir(tmp_path)
    store, place, options = Store("studies"), Where("studies", "sqlite:///runs.db"), Options("studies", "./mlruns")
    search = place.view("--optuna-storage", "sqlite:///search.db", str)
    monkeypatch.chdir("/")
    assert (store.path, place.store, options.root) == (tmp_path / "studies", *[str(tmp_path / "studies")] * 2)
    assert (place.tracking, search) == (f"sqlite:///{tmp_path}/runs.db", f"sqlite:///{tmp_path}/search.db")
    assert options.tracking_uri == f"{tmp_path}/mlruns"
    assert Where("studies").tracking == "sqlite:////studies/mlflow.db"


@pytest.mark.parametrize("address", ["s3://bucket/studies", "http://head:5000", "off", "databricks"])
def test_other_addresses_are_unchanged(address: str) -> None:
    """Addresses of servers, and keywords, stay as they are."""
    assert Options("s3://bucket/studies", address).tracking_uri == address
    assert Where("s3://bucket/studies").store == "s3://bucket/studies"

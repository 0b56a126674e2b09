"""MLflow's server on PostgreSQL and S3."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import Service, postgres_programs, tracking_service


@pytest.fixture(scope="session")
def running_service() -> Iterator[Service]:
    """Start PostgreSQL, S3 and MLflow once for all tests; skip them if PostgreSQL isn't installed."""
    if postgres_programs() is None:
        pytest.skip("PostgreSQL isn't installed: Debian's package postgresql is enough")
    with tracking_service() as running:
        yield running


@pytest.fixture
def service(running_service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Return the service, with its user's name and password in this process's environment."""
    for name, value in running_service.mlflow.client_environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PGPASSFILE", str(running_service.postgres.password_file))
    return running_service


@pytest.fixture(params=["a file", pytest.param("a server", marks=pytest.mark.slow)])
def addresses(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return two addresses of the same runs: twice a database file, or a server and its database."""
    if request.param == "a file":
        uri: str = request.getfixturevalue("uri")
        return uri, uri
    service: Service = request.getfixturevalue("service")
    return service.mlflow.address, service.direct

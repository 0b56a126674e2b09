"""A server is checked before it is used as a cluster."""

from __future__ import annotations

import pytest

from study.errors import ClusterError
from study.jobs import connect


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b"", r"it isn't a Ray dashboard \(status 404\)"),
        (200, b"<html>", "it isn't a Ray dashboard"),
        (200, b"{}", "isn't a Ray dashboard: it doesn't know Ray's version"),
        (200, b"[]", "isn't a Ray dashboard"),
        (200, b'{"ray_version": "1.13.0"}', r"runs Ray 1\.13\.0, but here is Ray 2\."),
        (200, b'{"ray_version": "2.9.3"}', r"runs Ray 2\.9\.3, .* needs 2\.54 or newer"),
        (200, b'{"ray_version": "x"}', "isn't a known version of Ray"),
        (401, b"", "token"),
    ],
)
def test_other_servers_are_refused_as_clusters(server, status, body, message):
    """A server that isn't Ray's dashboard, or has an incompatible version, raises an error with the reason."""
    with pytest.raises(ClusterError, match=message):
        connect(server(lambda path, token: (status, body)))

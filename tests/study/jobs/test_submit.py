"""Limits of a cluster are reported before anything is sent to it."""

from __future__ import annotations

import pytest

from study.errors import InputError
from study.jobs import Order
from study.jobs.rows import Job, Node
from study.jobs.submit import _check_room, make_order, order_of
from study.source import digest_of


def node(*, cpus: float, gpus: float = 0) -> Node:
    return Node("id", "name", head=not cpus, cpus=cpus, gpus=gpus, cpu_percent=None)


def test_a_growing_cluster_needs_its_limit():
    """Without room a study is refused, with the option that makes the cluster grow; with that option it isn't."""
    asleep = [node(cpus=0)]
    with pytest.raises(InputError, match=r"has 0 CPU and 0 GPU now; .* --workers 16"):
        _check_room(Order("demo", "study: demo", "/shared"), asleep)
    _check_room(Order("demo", "study: demo", "/shared", {"workers": 16}), asleep)
    _check_room(Order("demo", "study: demo", "/shared"), [*asleep, node(cpus=4)])


def test_gpus_are_counted_separately():
    """A study that requires GPUs is refused where there are only cores, and accepted where there is a GPU."""
    cores = [node(cpus=0), node(cpus=8)]
    with pytest.raises(InputError, match="1 CPU and a GPU, but the cluster has 8 CPU and 0 GPU"):
        _check_room(Order("demo", "study: demo", "/shared", {"device": "cuda"}), cores)
    _check_room(Order("demo", "study: demo", "/shared", {"device": "cuda", "workers": 2}), cores)
    _check_room(Order("demo", "study: demo", "/shared", {"device": "cuda"}), [*cores, node(cpus=8, gpus=1)])


def test_a_value_of_zero_is_passed_on():
    """0 seconds between checkpoints is a setting, different from no option."""
    order = Order("demo", "study: demo", "/shared", {"checkpoint_every_s": 0.0, "workers": None, "yes": False})
    assert order.entrypoint.endswith("--store /shared --checkpoint-every-s 0.0")


@pytest.mark.parametrize("uri", ["", "sqlite:///mlflow.db", "mlruns"])
def test_a_cluster_needs_an_absolute_tracking_address(uri):
    """A local file and an empty text are refused as tracking addresses; 'off' and a missing option are accepted."""
    with pytest.raises(InputError, match="--tracking-uri must be a server's URL or 'off'"):
        make_order("demo", "study: demo", "/shared", tracking_uri=uri)
    for fine in ("off", "http://tracking:5000", None):
        assert make_order("demo", "study: demo", "/shared", tracking_uri=fine).options["tracking_uri"] == fine


def test_a_resumed_job_uses_the_code_in_the_store():
    """The commands of resumed jobs name the code copy that was submitted with the first job."""
    code = {"lab.py": b"", "data.csv": b"1"}
    first = Order("demo", "study: demo", "/shared", {"workers": 2}, code)
    assert "--code-copy" not in first.entrypoint
    second_order = order_of(Job("study-demo-0", "STOPPED", first.metadata, "", None, 0.0, None, None))
    assert second_order.entrypoint == first.entrypoint.replace(
        "--store /shared", f"--store /shared --code-copy demo/{digest_of(code)}"
    )
    assert order_of(Job("study-demo-1", "STOPPED", second_order.metadata, "", None, 0.0, None, None)) == second_order


def test_a_job_whose_code_has_no_digest_is_not_resumed():
    """A job without a digest of its code isn't resumed, since another user may have written its description."""
    metadata = Order("demo", "study: demo", "/shared").metadata | {"code": "../../elsewhere"}
    with pytest.raises(InputError, match="submit the study's file again"):
        order_of(Job("study-demo-0", "STOPPED", metadata, "", None, 0.0, None, None))

"""Failed trials by reason: details that vary by seed don't split a reason, and the traceback is the user's."""

from __future__ import annotations

import pytest

from study.arrow import results_table
from study.records import Cell, Outcome, Result, Trial
from study.summaries.failures import FailureTally, failures_of
from study.summaries.reasons import failure_reason

CELLS = [Cell("function", "bad:train", {"size": size}) for size in (1, 2)]
IN_LIBRARY = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1751, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
  File "nets.py", line 12, in forward
    return x @ self.weight
           ~~^~~~~~~~~~~~~
RuntimeError: mat1 and mat2 shapes cannot be multiplied
"""


def tallied(*errors: str) -> list[tuple[str, int]]:
    tally = FailureTally()
    for seed, error in enumerate(errors):
        tally.add(f"trial{seed}", CELLS[0].id, seed, error)
    return [(failure.reason, failure.trials) for failure in tally.failures()]


def test_numbers_and_addresses_that_vary_by_seed_are_one_reason() -> None:
    """Errors that differ only in numbers are one reason; errors of other lines or types are other reasons."""
    varying = [
        "ValueError: loss is 0.173 for <Net at 0x7f1c2b> in /tmp/tmpab12cd34/x (train.py:7)",
        "ValueError: loss is 1.5e-07 for <Net at 0x7faa00> in /tmp/tmpzz98yx76/x (train.py:7)",
        "ValueError: loss is nan for <Net at 0x7faa00> in /tmp/tmpzz98yx76/x (train.py:7)",
    ]
    assert tallied(*varying) == [(varying[0], 3)]
    assert len(tallied(varying[0], varying[0].replace("py:7", "py:9"), varying[0].replace("Value", "Key"))) == 3


def test_the_most_frequent_reason_comes_first() -> None:
    """Each reason has the number of failed trials by cell, and the first failed trial as an example."""
    results = [
        Result(trial=Trial(cell, seed), outcome=Outcome.FAILED, error=f"KeyError: {'a' if seed else 'b'!r}")
        for cell in CELLS
        for seed in range(3)
    ]
    done = Result(trial=Trial(CELLS[0], 3), outcome=Outcome.FINISHED, engine="function", device="cpu")
    first, second = failures_of(results_table([*results, done]))
    assert (first.reason, first.trials, dict(first.cells)) == ("KeyError: 'a'", 4, {cell.id: 2 for cell in CELLS})
    assert (first.seed, first.trial_id) == (1, Trial(CELLS[0], 1).id)
    assert (second.reason, second.trials) == ("KeyError: 'b'", 2)


def test_a_traceback_has_the_frames_of_the_user() -> None:
    """Library frames are dropped, and the reason has the place in the user's code."""
    reason = failure_reason(IN_LIBRARY)
    assert reason.text == "RuntimeError: mat1 and mat2 shapes cannot be multiplied (nets.py:12)"
    assert "site-packages" not in reason.traceback
    assert 'File "nets.py", line 12, in forward\n    return x @ self.weight' in reason.traceback
    assert reason.traceback.endswith("RuntimeError: mat1 and mat2 shapes cannot be multiplied")


def test_a_message_of_several_lines_is_known_by_its_first() -> None:
    """The reason has the first line of a message, since the last one may be uninformative."""
    error = IN_LIBRARY.replace("multiplied\n", "multiplied\nCompile with `DEBUG` to see more.\n")
    assert failure_reason(error).text.startswith("RuntimeError: mat1 and mat2")


@pytest.mark.parametrize(
    "error",
    [
        "MemoryError",
        "study.errors.StoreAwayError: the disk is full",
        "DeviceMemoryError: 40 GiB are too few",
        "ray.exceptions.WorkerCrashedError: the worker died",
        "it died without a word",
        "it took longer than its time limit of 3 s, and was killed",
        "its process was ended by SIGKILL (perhaps the machine ran out of memory)",
        "RuntimeError: CUDA out of memory",
    ],
)
def test_failures_of_the_environment_may_pass(error: str) -> None:
    """Failures by memory, worker, store or time limit may not recur in the next run."""
    assert not failure_reason(error).is_repeated


@pytest.mark.parametrize("error", ["ValueError: no such layer (bad.py:7)", "FileNotFoundError: data.csv", ""])
def test_failures_of_the_code_are_repeated(error: str) -> None:
    """Other errors count as repeated, since the same code with the same seed raises them again."""
    assert failure_reason(error).is_repeated


def test_any_text_has_a_reason() -> None:
    """Control characters, surrogates, long lines and odd tracebacks give a printable reason."""
    for error in ("\x1b[2J\ud800", "x" * 10**6, 'Traceback (most recent call last)\n  File "a.py", line 3', "\n \n"):
        reason = failure_reason(error)
        assert 0 < len(reason.text) <= 600
        assert reason.text.isprintable()

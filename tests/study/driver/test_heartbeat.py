"""Heartbeats of a driver in its job's log and in the store."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from study.console import Console
from study.driver.heartbeat import beating, stored_heartbeat
from study.driver.progress import Board
from study.records import Progress
from study.store import Store
from study.summaries.heartbeat import (
    CellTraining,
    CellValue,
    FailureNews,
    Heartbeat,
    is_heartbeat,
    line,
    read,
    readable,
)
from tests.study.builders import small_pack

COUNT = st.integers(0, 10**7)
BEATS = st.builds(
    Heartbeat,
    st.text(max_size=20),
    *[COUNT] * 6,
    left_s=st.none() | st.floats(0, 1e9),
    workers=COUNT,
    finished=COUNT,
    at=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC)),
    failures=st.lists(
        st.builds(FailureNews, COUNT, st.text("abc (1.py:2)", max_size=20), st.booleans()), max_size=3
    ).map(tuple),
    cells=COUNT,
    training=st.lists(
        st.builds(CellTraining, st.text("lr 0.1", max_size=9), st.integers(1, 99), st.none() | st.floats(0, 1)),
        max_size=20,
    ).map(tuple),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(BEATS, BEATS, st.text(max_size=50))
def test_the_last_heartbeat_is_read_back(first, last, after):
    """The last heartbeat of a log is read unchanged, among any other text."""
    log = "\n".join(["starting", line(first), line(last), after])
    assert read(log) == (read(after) or last)
    assert "\n" not in line(last)
    assert "@study" not in readable(line(last)) or "@study" in last.study


@given(BEATS, st.sampled_from([*Heartbeat.__slots__, "more"]), JSON)
def test_forged_heartbeats_are_not_read(beat, name, value):
    """A forged line is read only if every value is valid."""
    content = json.loads(line(beat).removeprefix("@study "))
    forged = "@study " + json.dumps(content | {name: value})
    heartbeat = read(forged)
    assert is_heartbeat(forged) == (heartbeat is not None)
    if heartbeat is not None:
        assert isinstance(heartbeat.study, str)
        assert isinstance(heartbeat.at, datetime)
        assert heartbeat.left_s is None or 0 <= heartbeat.left_s < 1e12
        assert all(type(count) is int and count >= 0 for count in (heartbeat.done, heartbeat.trials, heartbeat.workers))
        assert read(line(heartbeat)) == heartbeat
        assert readable(forged) != forged


def test_times_are_in_utc():
    """Times are converted to UTC."""
    at = datetime(2026, 5, 1, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    assert read(line(Heartbeat("a", *[0] * 6, left_s=None, workers=0, at=at))).at == datetime(
        2026, 5, 1, 12, tzinfo=UTC
    )


def test_finished_trials_are_counted():
    """Without a success criterion trials are counted as finished; earlier versions' heartbeats are still read."""
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    counts = {"done": 7, "trials": 9, "solved": 0, "unsolved": 0, "finished": 4, "diverged": 1, "failed": 2}
    heartbeat = Heartbeat("a", **counts, left_s=None, workers=0, at=at)
    assert heartbeat.outcomes == "4 finished, 1 diverged, 2 failed"
    assert readable(line(heartbeat)) == "12:00:00 UTC · 7/9 trials · 4 finished · 1 diverged · 2 failed"
    assert (heartbeat.pending, read(line(heartbeat))) == (2, heartbeat)
    old_line = '@study {"study":"a","done":1,"trials":2,"solved":1,"unsolved":0,"diverged":0,"failed":0,"left_s":null,'
    old_line += '"workers":1,"at":"2026-05-01T12:00:00+00:00"}'
    assert (read(old_line).finished, read(old_line).outcomes) == (0, "1 solved, 0 unsolved, 0 diverged, 0 failed")


def test_running_values_are_reported():
    """Values are read from a log unchanged; invalid ones make the heartbeat invalid."""
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    values = (CellValue("lr 0.1", 0.8125, 12), CellValue("lr 0.01", -1, 1))
    heartbeat = Heartbeat("a", *[0] * 6, left_s=None, workers=1, at=at, metric="val acc", values=values)
    assert read(line(heartbeat)) == heartbeat
    assert readable(line(heartbeat)).endswith(
        "1 pack training · lr 0.1: val acc 0.812 on average of 12 trials so far · "
        "lr 0.01: val acc −1 on average of 1 trial so far"
    )
    for wrong in ('"mean":NaN', '"mean":"1"', '"mean":true', '"average":1'):
        assert read(line(heartbeat).replace('"mean":0.8125', wrong)) is None


def test_cells_in_training_are_reported():
    """Cells are read unchanged; invalid ones make the heartbeat invalid."""
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    cells = (CellTraining("lr 0.1", 4, 0.25), CellTraining("", 1, None))
    heartbeat = Heartbeat("a", *[0] * 6, left_s=None, workers=2, at=at, cells=30, training=cells)
    assert read(line(heartbeat)) == heartbeat
    for wrong in ('"share":1.5', '"share":NaN', '"share":true', '"part":1'):
        assert read(line(heartbeat).replace('"share":0.25', wrong)) is None


def test_the_store_has_a_heartbeat_while_a_study_runs(tmp_path, monkeypatch):
    """The heartbeat names the cells in training, and changes no file time that makes the index read results again."""
    for name in ("_EVERY_S", "_AFTER_FAILURE_S"):  # each write is due
        monkeypatch.setattr(f"study.driver.heartbeat.{name}", 0.0)
    folder = Store(tmp_path).study("little")
    folder = folder.of_attempt(folder.begin_attempt())
    first, second = small_pack(0, 1), small_pack(0, 1, iterations=0)
    board = Board()
    board.begin([first, second], {})
    board.name(lambda: {second.trials[0].cell.id: "wide", first.trials[0].cell.id: "narrow"}, "loss", "loss")
    times = folder.times()
    with stored_heartbeat(board, folder) as keep:
        keep()
        assert read(folder.read_heartbeat()).training == ()
        board.progress(Progress(first.id, 10, 100, trials=2, solved=0, diverged=0))
        board.progress(Progress(second.id, 0, 1, trials=2, solved=0, diverged=0))
        keep()
        heartbeat = read(folder.read_heartbeat())
        assert (heartbeat.study, heartbeat.cells, heartbeat.workers) == ("little", 2, 2)
        assert heartbeat.training == (CellTraining("wide", 2, None), CellTraining("narrow", 2, 0.1))
        assert folder.times() == times
        later = folder.begin_attempt()  # another driver has taken the study over
        folder.of_attempt(later).write_heartbeat("theirs")
        keep()  # fails without ending the run
    assert folder.read_heartbeat() == "theirs"
    folder.of_attempt(later).remove_heartbeat()
    assert folder.read_heartbeat() == ""


def test_only_a_driver_in_a_job_writes_heartbeats(monkeypatch):
    """In a job the first change is written and the next ones wait; elsewhere nothing is written."""
    pack, output = small_pack(0, 1), io.StringIO()
    board = Board()
    board.begin([pack], {})
    board.progress(Progress(pack.id, 10, 100, trials=2, solved=0, diverged=0))
    with beating(board, "little", Console(file=output, width=20)) as show:
        show()
        assert output.getvalue() == ""
    monkeypatch.setenv("STUDY_JOB", "1")
    with beating(board, "little", Console(file=output, width=20)) as show:
        show()
        show()
    (written,) = output.getvalue().splitlines()
    heartbeat = read(written)
    assert heartbeat is not None
    assert (heartbeat.study, heartbeat.trials, heartbeat.done, heartbeat.workers) == ("little", 2, 0, 1)

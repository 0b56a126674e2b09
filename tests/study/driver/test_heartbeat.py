"""What a driver says of itself in the log of its job."""

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
def test_the_last_one_is_read_back(first, last, after):
    """Of a log, the last heartbeat is read as it was written, whatever stands around it."""
    log = "\n".join(["starting", line(first), line(last), after])
    assert read(log) == (read(after) or last)
    assert "\n" not in line(last)
    assert "@study" not in readable(line(last)) or "@study" in last.study


@given(BEATS, st.sampled_from([*Heartbeat.__slots__, "more"]), JSON)
def test_what_is_no_heartbeat_is_never_one(beat, name, value):
    """A line that anybody could have written there is believed only if every value can be one."""
    content = json.loads(line(beat).removeprefix("@study "))
    forged = "@study " + json.dumps(content | {name: value})
    found = read(forged)
    assert is_heartbeat(forged) == (found is not None)
    if found is not None:
        assert isinstance(found.study, str)
        assert isinstance(found.at, datetime)
        assert found.left_s is None or 0 <= found.left_s < 1e12
        assert all(type(count) is int and count >= 0 for count in (found.done, found.trials, found.workers))
        assert read(line(found)) == found
        assert readable(forged) != forged


def test_a_time_of_another_zone():
    """Times are kept in UTC."""
    at = datetime(2026, 5, 1, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    assert read(line(Heartbeat("a", *[0] * 6, left_s=None, workers=0, at=at))).at == datetime(
        2026, 5, 1, 12, tzinfo=UTC
    )


def test_finished_trials_are_counted():
    """Where nothing says what success is, trials have finished; versions before this count are still read."""
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    counts = {"done": 7, "trials": 9, "solved": 0, "unsolved": 0, "finished": 4, "diverged": 1, "failed": 2}
    found = Heartbeat("a", **counts, left_s=None, workers=0, at=at)
    assert found.outcomes == "4 finished, 1 diverged, 2 failed"
    assert readable(line(found)) == "12:00:00 UTC · 7/9 trials · 4 finished · 1 diverged · 2 failed"
    assert (found.pending, read(line(found))) == (2, found)
    before = '@study {"study":"a","done":1,"trials":2,"solved":1,"unsolved":0,"diverged":0,"failed":0,"left_s":null,'
    before += '"workers":1,"at":"2026-05-01T12:00:00+00:00"}'
    assert (read(before).finished, read(before).outcomes) == (0, "1 solved, 0 unsolved, 0 diverged, 0 failed")


def test_running_values_are_told():
    """They come back from a log as they were written there, and what isn't such values is no heartbeat."""
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    values = (CellValue("lr 0.1", 0.8125, 12), CellValue("lr 0.01", -1, 1))
    found = Heartbeat("a", *[0] * 6, left_s=None, workers=1, at=at, metric="val acc", values=values)
    assert read(line(found)) == found
    assert readable(line(found)).endswith(
        "1 pack training · lr 0.1: val acc 0.812 on average of 12 trials so far · "
        "lr 0.01: val acc −1 on average of 1 trial so far"
    )
    for wrong in ('"mean":NaN', '"mean":"1"', '"mean":true', '"average":1'):
        assert read(line(found).replace('"mean":0.8125', wrong)) is None


def test_cells_in_training_are_told():
    """They come back as they were written, and what can't be such cells is no heartbeat."""
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    cells = (CellTraining("lr 0.1", 4, 0.25), CellTraining("", 1, None))
    found = Heartbeat("a", *[0] * 6, left_s=None, workers=2, at=at, cells=30, training=cells)
    assert read(line(found)) == found
    for wrong in ('"share":1.5', '"share":NaN', '"share":true', '"part":1'):
        assert read(line(found).replace('"share":0.25', wrong)) is None


def test_the_store_has_a_heartbeat_while_a_study_runs(tmp_path, monkeypatch):
    """It names the cells in training; it changes no time of a file by which the index reads results again."""
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
        found = read(folder.read_heartbeat())
        assert (found.study, found.cells, found.workers) == ("little", 2, 2)
        assert found.training == (CellTraining("wide", 2, None), CellTraining("narrow", 2, 0.1))
        assert folder.times() == times
        later = folder.begin_attempt()  # another driver has taken the study over
        folder.of_attempt(later).write_heartbeat("theirs")
        keep()  # fails, and ends nothing
    assert folder.read_heartbeat() == "theirs"
    folder.of_attempt(later).remove_heartbeat()
    assert folder.read_heartbeat() == ""


def test_a_driver_beats_and_no_other_process(monkeypatch):
    """In a job the first change says how far it is, and the next ones wait; elsewhere nothing is said."""
    pack, said = small_pack(0, 1), io.StringIO()
    board = Board()
    board.begin([pack], {})
    board.progress(Progress(pack.id, 10, 100, trials=2, solved=0, diverged=0))
    with beating(board, "little", Console(file=said, width=20)) as show:
        show()
        assert said.getvalue() == ""
    monkeypatch.setenv("STUDY_JOB", "1")
    with beating(board, "little", Console(file=said, width=20)) as show:
        show()
        show()
    (written,) = said.getvalue().splitlines()
    found = read(written)
    assert found is not None
    assert (found.study, found.trials, found.done, found.workers) == ("little", 2, 0, 1)

"""Progress of a running study, as displayed."""

from __future__ import annotations

import io

from study.console import Console
from study.driver.progress import Board, waiting
from study.records import Outcome, Preparing, Progress, Result, WorkersWait
from tests.study.builders import small_pack


def test_the_line_counts_the_start_of_workers():
    """Until the first pack trains, the line has the time since workers began to start."""
    now = [0.0]
    pack = small_pack(0, 1)
    board = Board(clock=lambda: now[0])
    board.begin([pack], {})
    assert board.line().endswith("workers are starting: 0 s")
    now[0] = 12.0
    assert board.line().endswith("workers are starting: 12 s")
    board.progress(Progress(pack.id, 10, 100, trials=2, solved=0, diverged=0))
    assert "starting" not in board.line()
    assert "training 2 in 1 pack" in board.line()


def test_workers_that_wait_for_room_are_counted():
    """The line counts workers that wait for room in the cluster, also while others train."""
    pack = small_pack(0, 1)
    board = Board()
    board.begin([pack], {})
    board.wait(WorkersWait(4, 4))
    assert board.line().endswith(" · 4 of 4 workers waiting for room")
    board.progress(Progress(pack.id, 10, 100, trials=2, solved=0, diverged=0))
    board.wait(WorkersWait(3, 4))
    assert "training 2 in 1 pack (0 solved so far) · 3 of 4 workers waiting for room" in board.line()
    board.wait(WorkersWait(0, 4))
    assert "waiting" not in board.line()


def test_compiling_is_not_reported_as_starting():
    """While workers compile or wait for compiling, the line says so, with the time."""
    now = [0.0]
    packs = [small_pack(0, 1), small_pack(2, 3)]
    board = Board(clock=lambda: now[0])
    board.begin(packs, {})
    now[0] = 5.0
    board.preparing(Preparing("fused", "here", "compiling", packs[0].id))
    now[0] = 8.0
    board.preparing(Preparing("fused", "here", "waiting", packs[1].id))
    now[0] = 17.0
    compiling = "until the fused engine is compiled, once on each machine: 12 s"
    assert board.line().endswith(f"workers wait {compiling}")
    assert "starting" not in board.line()
    board.preparing(Preparing("fused", "here", "ready", packs[0].id))
    board.progress(Progress(packs[0].id, 10, 100, trials=2, solved=0, diverged=0))
    assert f"training 2 in 1 pack (0 solved so far) · others wait {compiling}" in board.line()
    board.progress(Progress(packs[1].id, 10, 100, trials=2, solved=0, diverged=0))
    assert "compiled" not in board.line()


def test_the_rate_covers_training_only():
    """Time before the first pack trains counts neither for the rate nor for the time left."""
    now = [0.0]
    pack = small_pack(0, 1, iterations=999)
    board = Board(clock=lambda: now[0])
    board.begin([pack], {})
    now[0] = 30.0
    board.progress(Progress(pack.id, 0, 1000, trials=2, solved=0, diverged=0))
    now[0] = 40.0
    board.progress(Progress(pack.id, 500, 1000, trials=2, solved=0, diverged=0))
    assert board.line().endswith("100 trial-iterations/s · 10 s left")


def test_short_packs_count_for_the_rate():
    """Packs with a single report count for the rate; iterations before a checkpoint aren't work, nor left."""
    now = [0.0]
    packs = [small_pack(seed, iterations=99) for seed in range(6)]
    board = Board(clock=lambda: now[0])
    board.begin(packs, {})
    for pack in packs[:4]:
        now[0] += 1.0
        board.progress(Progress(pack.id, 100, 100, trials=1, solved=0, diverged=0))
        board.done(pack.id, [Result(trial=pack.trials[0], outcome=Outcome.SOLVED)])
    assert board.line().endswith("100 trial-iterations/s · 2 s left")
    now[0] += 1.0
    board.progress(Progress(packs[4].id, 90, 100, trials=1, solved=0, diverged=0, begun_at=40))
    assert board.left_s == 110 / (350 / 4)


def test_added_packs_count_as_work():
    """Added packs increase the trials and the remaining work; done trials stay done."""
    now = [0.0]
    first, second = small_pack(0, 1, iterations=99), small_pack(2, 3, 4, iterations=99)
    board = Board(clock=lambda: now[0])
    board.begin([first], {})
    board.progress(Progress(first.id, 0, 100, trials=2, solved=0, diverged=0))
    now[0] = 1.0
    board.done(first.id, [Result(trial=trial, outcome=Outcome.SOLVED) for trial in first.trials])
    board.begin([second], {Outcome.SOLVED: 2})
    assert board.counts["trials"] == 5
    assert board.counts["done"] == board.counts["solved"] == 2
    assert board.left_s == 300 / 200


def test_waiting_is_reported(monkeypatch):
    """Without a terminal, a wait is reported every few seconds until its end."""
    monkeypatch.setattr("study.driver.progress._PLAIN_EVERY_S", 0.001)
    output = io.StringIO()
    with waiting(Console(file=output), "starting Ray"):
        while output.getvalue().count("\n") < 2:
            pass
    lines = output.getvalue().splitlines()
    assert set(lines) == {"starting Ray: 0 s"}
    assert output.getvalue().splitlines() == lines


def test_training_cells_have_their_running_values():
    """Each cell in training has a line with the mean over its running and ended trials."""
    pack, other = small_pack(0, 1), small_pack(2, 3)
    cell = pack.trials[0].cell
    board = Board()
    board.name(lambda: {cell.id: "NMU", "another": "NAU"}, "loss", "loss")
    board.begin([pack, other], {})
    assert board.text() == board.line()
    board.done(other.id, [Result(trial=t, outcome=Outcome.SOLVED, metrics={"loss": 0.1}) for t in other.trials])
    assert board.text() == board.line()  # nothing trains
    board.progress(Progress(pack.id, 10, 100, trials=2, solved=0, diverged=0, latest={cell.id: (0.4, 1)}))
    assert board.text().splitlines() == [board.line(), "  NMU: loss 0.2 on average of 3 trials so far"]

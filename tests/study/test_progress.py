"""What a person sees while a study runs."""

from __future__ import annotations

from study.progress import Board
from study.records import Progress


def test_the_line_moves_before_anything_trains(small_pack):
    """Until the first pack trains, the line says for how long everything has been starting."""
    now = [0.0]
    pack = small_pack(0, 1)
    board = Board([pack], [], clock=lambda: now[0])
    assert board.line().endswith("starting for 0 s")
    now[0] = 12.0
    assert board.line().endswith("starting for 12 s")
    board.progress(Progress(pack.id, 10, 100, trials=2, solved=0, diverged=0))
    assert "starting" not in board.line()
    assert "training 2 in 1 packs" in board.line()

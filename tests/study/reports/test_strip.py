"""Strips of an index entry: a mark for each row, at the height of its number."""

from __future__ import annotations

from dataclasses import replace

from study.interface.declarations import Metric
from study.reports import cell_rows
from study.reports.strip import HEIGHT, WIDTH, strip
from study.summaries.metrics import MetricSummary
from tests.study.builders import published_cell, summaries_of


def test_rates_are_drawn_from_0_to_1(demo) -> None:
    """A higher rate is a higher mark; every mark and interval is inside, and has a label."""
    summaries, labels = demo
    rows = cell_rows(summaries, labels)
    drawn = strip(rows)
    assert drawn is not None
    assert [m.text.split(": ")[0] for m in drawn.marks] == [rows.name(row) for row in range(len(summaries))]
    by_height = sorted(zip(drawn.marks, summaries, strict=True), key=lambda pair: -pair[0].y)
    rates = [s.success_rate for _, s in by_height]
    assert rates == sorted(rates)
    assert all(0 < m.ends[1] <= m.y <= m.ends[0] < HEIGHT for m in drawn.marks)
    assert all(0 < m.x < drawn.width <= WIDTH for m in drawn.marks)
    assert (drawn.caption, drawn.limits) == ("success rate (share of trials)", ("0.00", "1.00"))
    assert f"of {len(summaries)} cells" in drawn.description


def test_rows_without_a_number_leave_a_gap() -> None:
    """A cell without judged trials has no mark, and the others keep their places; without any, the strip is omitted."""
    done, pending = {"solved": 2, "unsolved": 1}, {"pending": 3}
    places = [published_cell(hidden_size=size) for size in (2, 3, 4)]
    full_strip = strip(cell_rows(summaries_of(*((cell, done) for cell in places)), {}))
    partial = strip(cell_rows(summaries_of((places[0], done), (places[1], pending), (places[2], done)), {}))
    assert [m.x for m in partial.marks] == [full_strip.marks[0].x, full_strip.marks[2].x]
    assert strip(cell_rows(summaries_of(*((cell, pending) for cell in places)), {})) is None


def test_means_are_drawn_between_their_limits() -> None:
    """Without rates, the main metric's means are drawn, from the lowest interval end to the highest."""
    metric = Metric(title="accuracy", unit="%", higher_is_better=True)
    summaries = [
        replace(s, is_judged=False, metrics={"a": MetricSummary(metric=metric, count=3, mean=mean, mean_interval=ends)})
        for s, mean, ends in zip(
            summaries_of(*((published_cell(hidden_size=size), {"finished": 3}) for size in (2, 3, 4))),
            (0.5, 0.7, None),
            ((0.4, 0.6), (0.65, 0.8), None),
            strict=True,
        )
    ]
    drawn = strip(cell_rows(summaries, {}))
    assert (drawn.caption, drawn.limits) == ("accuracy (%)", ("0.4", "0.8"))
    assert len(drawn.marks) == 2
    assert drawn.marks[0].ends[0] > drawn.marks[0].y > drawn.marks[1].y > drawn.marks[1].ends[1]

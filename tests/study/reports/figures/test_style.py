"""Common properties of figures: files, tips, names, panels, and the list of figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from study.comparisons.sources import SUCCESS, SourceShares
from study.reports import DataRows, Report, groups
from study.reports.figures import all as all_figures
from study.reports.figures import heat_map, panels
from study.reports.figures import names as names_of_figures
from study.reports.figures.names import KINDS
from study.reports.figures.style import INK, PALETTE, PAPER, RULE, Drawn, Tips, render
from study.reports.search.figures import contour, front, history, importance, slices
from study.statistics import VarianceShares
from study.summaries.aggregate import GroupSummary
from study.summaries.learning import LearningCurve
from study.summaries.summary import Times
from study.summaries.trial_details import Gates, TrialWeights
from tasks.arithmetic import ArithmeticTask
from tests.study.builders import error_of, search_of

pytestmark = pytest.mark.usefixtures("figures")

NAMES = ("$x^2$", "_hidden", "<b>&", "a" * 300, "ünï 统", "bell\x07", "one, two, three, four, five, six", "")


def row(name, size):
    """Make a row of four trials, two of them solved."""
    until = np.repeat([5e3, 7e3, 9e3, 9e3], 3)
    times = Times(iterations=until, seconds=until * size / 1e3, solved=np.repeat([True, True, False, False], 3))
    solved_at = {"solved_at_mean": 6e3, "solved_at_s_mean": 6.0, "metrics": error_of(1e-5)}
    counts = {"seeds": 4, "solved": 2, "unsolved": 2, "success_rate": 0.5}
    return GroupSummary(values=(name, size), times=times, **counts, **solved_at)


def report():
    """Build a report with data for every figure but the heat map."""
    rows = groups([row(name, size) for name in ("NMU", "NALU") for size in (2, 3)], ["model", "hidden_size"])
    iteration = np.arange(3) * 1000
    errors = dict.fromkeys(("test_mse", "validation_mse", "sparsity_error"), np.geomspace(1, 1e-6, 15).reshape(5, 3))
    return Report(
        name="n",
        question="q",
        rows=rows,
        data=DataRows(pa.schema([]), []),
        command="c",
        metrics=ArithmeticTask.metrics,
        sources=[
            SourceShares(
                row=0,
                quantity=SUCCESS,
                sources=("init", "data", "their combination"),
                estimate=VarianceShares(
                    (0.7, 0.1, 0.2), ((0.5, 0.9), (0.0, 0.3), (0.1, 0.4)), (0.1, 0.0, 0.1), (9, 9), 81
                ),
                can_grow=True,
            )
        ],
        learning=[LearningCurve(row=0, trials=4, total=4, iteration=iteration, quantiles=errors, threshold=1e-3)],
        gates=[
            Gates(
                row=0,
                layer="layer 1",
                trials=2,
                total=2,
                validation_rows=9,
                values=np.array([0.2, 0.9]),
                solved=np.array([True, False]),
            )
        ],
        weights=TrialWeights(
            row=0, seed=0, outcome="solved", iteration=9, matrices={"layer 1, W": np.eye(3, dtype=np.float32)}
        ),
    )


@pytest.fixture(name="every_figure", scope="module")
def _every_figure():
    return all_figures.plot_all(report())


def test_a_report_has_the_figures_with_data(every_figure):
    """Figures are ordered by name; those without data are omitted."""
    names = [drawn.name for drawn in every_figure]
    assert names == [
        name
        for name in names_of_figures.NAMES
        if name
        not in ("differences", "ranking", "heat-map", "series", *names_of_figures.OVERALL, *names_of_figures.SEARCH)
    ]
    bare = all_figures.plot_all(replace(report(), learning=(), gates=(), weights=None, sources=()))
    assert [drawn.name for drawn in bare] == ["figure", "training-time", "survival"]


def test_figures_have_only_colours_that_a_dark_page_knows(every_figure):
    """Every colour of a figure without fields is a colour that the page replaces."""
    page_colours = {colour.lower() for colour in (*PALETTE, INK, PAPER, RULE)}
    for drawn in every_figure:
        if drawn.name != "weights":
            colours = set(re.findall(r"#[0-9a-f]{6}\b(?=[;\"])", render(drawn, "svg").decode()))
            assert INK in colours
            assert colours <= page_colours, drawn.name


def drawings():
    """Draw each figure: those of a report, a heat map, and those of a search."""
    grid = groups([row(size, rate) for size in (2, 3) for rate in (0.1, 1.0)], ["hidden_size", "learning_rate"])
    search, rows = search_of(["success_rate", "time_to_success"])
    of_search = [history.plot(search, rows), front.plot(search, rows), slices.plot(search, rows)]
    return [
        *all_figures.plot_all(report()), heat_map.plot(grid), *of_search, importance.plot(search), contour.plot(search)
    ]  # fmt: skip


def test_the_same_figure_has_the_same_bytes_and_no_image():
    """Two drawings of the same rows are equal files, whatever was rendered before; all parts are vector shapes.

    The page's content security policy blocks images, even embedded ones.
    """
    first, second = drawings(), drawings()
    assert {drawing.name for drawing in first} == set(names_of_figures.NAMES) - {
        "series",
        "differences",
        "ranking",
        *names_of_figures.OVERALL,
    }
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for drawing, redrawing in zip(first, second, strict=True):
        kinds = KINDS if drawing.name == "figure" else ("png", "svg")
        files = {kind: render(redrawing, kind) for kind in reversed(kinds)}
        assert {kind: render(drawing, kind) for kind in kinds} == files
        assert all(files[kind].startswith(begins[kind]) for kind in kinds)
        assert b"<image" not in files["svg"]


def test_pdf_has_fonts_that_publishers_take(every_figure):
    """Letters in a PDF are TrueType, not Type 3."""
    made = render(every_figure[0], "pdf")
    assert b"/TrueType" in made or b"/CIDFontType2" in made
    assert b"/Type3" not in made


def test_tips_lie_on_their_points():
    """A point's tip is a circle around it, a field's a rectangle over it; points outside the axes have none."""
    figure = Figure(figsize=(4, 2))
    axes = figure.add_axes((0.25, 0.5, 0.5, 0.5), xlim=(0, 10), ylim=(0, 1))
    tips = Tips()
    tips.add(axes, 5, 0.5, "middle & <more>")
    tips.add_field(axes, 0, 0, 5, 1, "left half")
    tips.add(axes, 11, 0.5, "outside")
    tips.add(axes, np.nan, 0.5, "nowhere")
    svg = ET.fromstring(render(Drawn("n", "t", "c", figure, tips), "svg"))
    (group,) = (g for g in svg.findall(".//{*}g") if g.get("class") == "tips")
    circle, rectangle = group
    assert (float(circle.get("cx")), float(circle.get("cy"))) == (4 * 72 / 2, 2 * 72 / 4)
    assert circle[0].text == "middle & <more>"
    box = [float(rectangle.get(name)) for name in ("x", "y", "width", "height")]
    assert box == [72, 0, 72, 72]
    assert rectangle[0].text == "left half"


def test_any_name_can_be_drawn():
    """Names that look like mathematics or markup, and long, empty or unprintable names, are drawn."""
    summaries = [
        GroupSummary(values=(name, size), seeds=2, solved=1, unsolved=1, success_rate=0.5)
        for name in NAMES
        for size in (2, 3)
    ]
    drawn = panels.plot(groups(summaries, ["a $key$", "hidden_size"]))
    for kind in KINDS:
        assert render(drawn, kind)
    texts = {title.text for title in ET.fromstring(render(drawn, "svg")).findall(".//{*}title") if title.text}
    assert any("ünï 统" in text for text in texts)


SCRIPT = """
import hashlib
from study.summaries.aggregate import GroupSummary
from study.reports import groups
from study.reports.figures import panels
from study.reports.figures.names import KINDS
from study.reports.figures.style import render

summaries = [
    GroupSummary(values=(name, size), seeds=2, solved=1, unsolved=1, success_rate=0.5)
    for name in "abc" for size in (1, 2)
]
drawing = panels.plot(groups(summaries, ["model", "hidden_size"]))
digests = [hashlib.sha256(render(drawing, kind)).hexdigest() for kind in KINDS]
"""


def test_bytes_are_the_same_in_another_process():
    """Files depend on the report only, not on set order or earlier drawings."""
    namespace: dict[str, list[str]] = {}
    exec(SCRIPT, namespace)  # noqa: S102 (the text above)
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT + "print(digests)"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == str(namespace["digests"])

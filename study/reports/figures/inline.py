"""Figures embedded in a page, in the page's colours and with ids and classes of their own."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox

from study.reports.figures import style
from study.reports.figures.style import Drawn, render

# Quotation marks in texts are escaped, so these patterns match only in tags.
_ATTRIBUTE = re.compile(r' (id|xlink:href|style|fill|stroke|clip-path)="([^"]*)"')
_REFERENCE = re.compile(r'(?:xlink:href="#|url\(#)([^")]*)')
_PATH = re.compile(r' d="[^"]*"')
_FIGURE_ID = "figure_1"
"""Matplotlib's id of the drawing, whose parts the page shows separately on narrow screens."""
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_COLOURS = {colour.lower(): f"var(--curve-{slot})" for slot, colour in enumerate(style.PALETTE)}
_COLOURS |= {style.INK: "var(--ink)", style.PAPER: "var(--paper)", style.RULE: "var(--rule)"}
_MARGIN_PX = 6


def inline(figure: Drawn) -> str:
    """Return a figure's drawing as SVG for a page.

    Colours of `PALETTE`, ink, paper and rules become the page's variables. Ids and the classes of styles begin with the
    figure's name; the class of texts at the pointer is ``tips``. Each style is written once, and unused ids are
    dropped, which makes drawings smaller by a tenth (curves) to two fifths (points).
    """
    svg = render(figure, "svg").decode()
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    # Matplotlib writes each text, which may be any name, as a comment beside its paths.
    drawing = re.sub(r"<!--.*?-->", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r">\n\s*<", "><", drawing)
    drawing = _PATH.sub(lambda match: match[0].replace("\n", ""), drawing)  # spaces remain
    classes: dict[str, str] = {}
    referred = {_FIGURE_ID, *_REFERENCE.findall(drawing)}

    def rewrite(match: re.Match[str]) -> str:
        attribute, value = match.groups()
        if attribute == "id":
            return f' id="{figure.name}-{value}"' if value in referred else ""
        if attribute == "xlink:href":
            return f' {attribute}="{value.replace("#", f"#{figure.name}-", 1)}"'
        value = _in_page_colours(value).replace("url(#", f"url(#{figure.name}-")
        if attribute == "style":
            return f' class="{classes.setdefault(value, f"{figure.name}-{len(classes)}")}"'
        return f' {attribute}="{value}"'

    drawing = _ATTRIBUTE.sub(rewrite, drawing)
    styles = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    described = f'aria-label="{escape(figure.title)}" aria-describedby="caption-{figure.name}"'
    drawing = drawing.replace("<svg", f'<svg role="img" {described}', 1)
    return drawing.replace(">", f"><style>{styles}</style>", 1)


def panels(figure: Drawn) -> tuple[list[str], list[str]]:
    """Return the boxes of a figure's panels and of its legends' entries as SVG's ``viewBox``.

    The list of panels is empty if there is one panel, or if a panel's axis labels are at a neighbouring panel.
    """
    drawing, renderer = figure.figure, FigureCanvasAgg(figure.figure).get_renderer()  # type: ignore[no-untyped-call]
    with mpl.rc_context(style.STYLE):
        drawing.draw_without_rendering()  # else legends are placed as for a file with other dots per inch
    shown = [axes for axes in drawing.axes if axes.axison]
    entries = [
        Bbox.union([handle.get_window_extent(renderer), text.get_window_extent(renderer)])
        for legend in drawing.legends
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
        if handle is not None
    ]
    points, height = 72 / drawing.dpi, drawing.bbox.height

    def view(box: Bbox) -> str:
        wide = box.padded(_MARGIN_PX)
        numbers = (wide.x0, height - wide.y1, wide.width, wide.height)
        return " ".join(f"{number * points:.1f}" for number in numbers)

    has_labels = (
        axes.xaxis.get_tick_params().get("labelbottom", True) and axes.yaxis.get_tick_params().get("labelleft", True)
        for axes in shown
    )
    is_divisible = len(shown) > 1 and all(has_labels)
    boxes = [box for axes in shown if is_divisible and (box := axes.get_tightbbox(renderer)) is not None]
    return [view(Bbox(box.get_points())) for box in boxes], list(map(view, entries))


# Thousands of attributes share a few dozen values: the cache saves a fifth of the time of `inline`.
@lru_cache(maxsize=1024)
def _in_page_colours(value: str) -> str:
    return _COLOUR.sub(lambda match: _COLOURS.get(match[0], match[0]), value)

"""A figure within a page: in the page's own colours, with ids that no other figure has."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox

from study.reports.figures import style
from study.reports.figures.style import Drawn, render

# Quotation marks in texts are escaped, so this matches only in tags.
_ATTRIBUTE = re.compile(r'( (id|xlink:href|style|fill|stroke|clip-path)=")([^"]*)')
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_COLOURS = {colour.lower(): f"var(--curve-{slot})" for slot, colour in enumerate(style.PALETTE)}
_COLOURS |= {style.INK: "var(--ink)", style.PAPER: "var(--paper)", style.RULE: "var(--rule)"}
_MARGIN_PX = 6


def inline(figure: Drawn) -> str:
    """Return a figure's drawing, to be put into a page as it is.

    Its colours become the page's variables, and its ids begin with the figure's name.
    """
    svg = render(figure, "svg").decode()
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    # Matplotlib writes each text, which may be any name, as a comment beside the paths that draw it.
    drawing = re.sub(r"<!--.*?-->", "", drawing, flags=re.DOTALL)
    drawing = _ATTRIBUTE.sub(lambda match: match[1] + _own(match[2], match[3], f"{figure.name}-"), drawing)
    described = f'aria-label="{escape(figure.title)}" aria-describedby="caption-{figure.name}"'
    return drawing.replace("<svg", f'<svg role="img" {described}', 1)


def panels(figure: Drawn) -> tuple[list[str], list[str]]:
    """Return the boxes of a figure's panels and of its legends' entries, as SVG's ``viewBox``, to be shown in parts.

    There are no panels if it has only one, or if one takes the labels of its axis from a neighbour.
    """
    drawing, renderer = figure.figure, FigureCanvasAgg(figure.figure).get_renderer()  # type: ignore[no-untyped-call]
    axes = [one for one in drawing.axes if one.axison]
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
        one.xaxis.get_tick_params().get("labelbottom", True) and one.yaxis.get_tick_params().get("labelleft", True)
        for one in axes
    )
    is_divisible = len(axes) > 1 and all(has_labels)
    boxes = [box for one in axes if is_divisible and (box := one.get_tightbbox(renderer)) is not None]
    return [view(Bbox(box.get_points())) for box in boxes], list(map(view, entries))


def _own(attribute: str, value: str, prefix: str) -> str:
    """Replace colours in an attribute's value by the page's, and ids by this figure's own."""
    if attribute == "id":
        return prefix + value
    if attribute == "xlink:href":
        return value.replace("#", f"#{prefix}", 1)
    return _in_page_colours(value).replace("url(#", f"url(#{prefix}")


# Thousands of attributes have a few dozen values between them: the cache saves a fifth of `inline`.
@lru_cache(maxsize=1024)
def _in_page_colours(value: str) -> str:
    return _COLOUR.sub(lambda match: _COLOURS.get(match[0], match[0]), value)

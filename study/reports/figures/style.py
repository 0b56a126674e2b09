"""The style of all figures: colours, rendering to files, and the texts at a pointer."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import starmap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

INK = "#262626"
PAPER = "#ffffff"
RULE = "#dcdcdc"
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK, "#A08000")
"""Okabe and Ito's colours, safe for colour-blind readers, with a darker yellow, since theirs is too pale for lines."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
_DARK, _LIGHT = "#111111", "#fdfdfd"
"""The colours of texts on a colour map, which is the same on a dark page."""

WIDTH_IN = 7.2
"""The width of every figure, at which its letters have the right size in a paper."""
DPI = 200
"""Dots per inch of a PNG and of the layout; with fewer, letters are wider than in SVG and PDF."""

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 7.0,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("axes.grid", "axes.axisbelow"), True),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    **dict.fromkeys(("xtick.major.pad", "ytick.major.pad"), 2),
    "axes.grid.axis": "y",
    "grid.color": RULE,
    "grid.linewidth": 0.5,
    "mathtext.fontset": "dejavusans",
    "svg.hashsalt": "study",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # TrueType: many publishers refuse Type 3, which matplotlib writes by default
    "path.simplify": False,
}
_METADATA: Mapping[str, Mapping[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_TIP_RADIUS_PT = 4.5


@dataclass
class Tips:
    """The texts of points and fields, shown at a pointer in SVG.

    Args:
        marks: text, axes, and a box (left, bottom, right, top) in data coordinates, which is empty for a point.
    """

    marks: list[tuple[str, Axes, tuple[float, float, float, float]]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The texts without their places."""
        return [text for text, *_ in self.marks]

    def add(self, axes: Axes, x: float, y: float, text: str) -> None:
        """Add the text of a point."""
        self.add_field(axes, x, y, x, y, text)

    def add_field(self, axes: Axes, left: float, bottom: float, right: float, top: float, text: str) -> None:
        """Add the text of a rectangle."""
        self.marks.append((text, axes, (left, bottom, right, top)))

    def svg(self) -> str:
        """Return the marks as invisible SVG shapes, with their texts as titles that browsers show.

        Marks outside of their axes, or at a place that isn't finite, are left out; the text is empty if none remains.
        """
        marks = "\n".join(filter(None, starmap(_mark, self.marks)))
        return f'<g class="tips" fill="none" pointer-events="all">\n{marks}\n</g>\n' if marks else ""


@dataclass(frozen=True)
class Drawn:
    """A figure, ready to be written.

    Args:
        name: the name of the files, without ending.
        title: the title above the figure.
        caption: the text below the figure, which explains the content and its computation.
        figure: the drawing; its axes are laid out here, once for all formats.
        tips: the texts of the points.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    tips: Tips = field(default_factory=Tips)
    _files: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # savefig would lay out the figure for each format again.
        layout = self.figure.get_layout_engine()
        if layout is not None:
            with mpl.rc_context(STYLE):
                layout.execute(self.figure)
            self.figure.set_layout_engine(None)


def render(drawn: Drawn, kind: str) -> bytes:
    """Return the figure as ``png`` (200 dots per inch), ``svg`` or ``pdf``, with the same bytes for the same figure.

    An SVG has the texts at the pointer, too.

    Raises:
        KeyError: if `kind` is another format.
    """
    if kind not in drawn._files:
        buffer = io.BytesIO()
        with mpl.rc_context(STYLE):
            drawn.figure.savefig(buffer, format=kind, dpi=DPI, metadata=dict(_METADATA[kind]))
        content = buffer.getvalue()
        head, end, tail = content.rpartition(b"</svg>") if kind == "svg" else (content, b"", b"")
        drawn._files[kind] = head + (drawn.tips.svg().encode() if end else b"") + end + tail
    return drawn._files[kind]


def _mark(text: str, axes: Axes, box: tuple[float, float, float, float]) -> str:
    """Return a mark's SVG shape, in points from the figure's upper left; empty outside the axes, or if not finite."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    corners = axes.transData.transform(np.reshape(box, (2, 2)))
    inside = axes.get_window_extent().padded(1.0)
    if not np.isfinite(corners).all() or not inside.contains(*corners.mean(axis=0)):
        return ""
    (left, bottom), (right, top) = (ends * 72 / figure.dpi for ends in (corners.min(axis=0), corners.max(axis=0)))
    height = 72 * figure.get_size_inches()[1]
    title = f"<title>{escape(_printable(text))}</title>"
    if left == right:
        return f'<circle cx="{left:.2f}" cy="{height - top:.2f}" r="{_TIP_RADIUS_PT}">{title}</circle>'
    size = f'width="{right - left:.2f}" height="{top - bottom:.2f}"'
    return f'<rect x="{left:.2f}" y="{height - top:.2f}" {size}>{title}</rect>'


def text_on(colour: tuple[float, ...]) -> str:
    """Choose dark or light letters for the better contrast with a colour (red, green, blue, in [0, 1]).

    Example:
        >>> text_on((1, 1, 0)), text_on((0, 0, 0.5))
        ('#111111', '#fdfdfd')
    """
    # The relative luminance of WCAG 2; at 0.18 the contrasts of black and white are equal.
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return _DARK if 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.18 else _LIGHT


def plain(text: str) -> str:
    r"""Escape a name for matplotlib, so that it is drawn literally, and in a legend despite a leading underscore.

    Whitespace becomes single spaces, other unprintable characters are dropped, and one without a glyph becomes �.

    Example:
        >>> plain("a $b$") == r"a \$b\$", plain("_c"), plain("d\x07")
        (True, ' _c', 'd')
    """
    flat = "".join(c if ord(c) in _letters() else "\N{REPLACEMENT CHARACTER}" for c in _printable(text))
    flat = flat.replace("$", r"\$")
    return f" {flat}" if flat.startswith("_") else flat


def _printable(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


@cache
def _letters() -> frozenset[int]:
    """Return the code points of the characters in the figures' font, normal and bold; others would cause warnings."""
    weights = (FontProperties(family=STYLE["font.family"], weight=weight) for weight in ("normal", "bold"))
    normal, bold = (frozenset(get_font(findfont(weight)).get_charmap()) for weight in weights)
    return normal & bold

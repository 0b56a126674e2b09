r"""LaTeX tabulars that fit a column of a two-column paper; they need the package booktabs.

A tabular sets \footnotesize, \tabcolsep and \arraystretch itself, so that its width doesn't depend on its environment.
The width is estimated from the letter widths of Computer Modern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from study.reports.text_table import Column

COLUMN_IN = 3.15
"""The greatest width of a table in a two-column paper, in inches: 3.18 in LaTeX's article, up to 3.5 at conferences."""

_PT_AN_INCH = 72.27
_GAP_PT = 8.0  # twice \tabcolsep
_SCRIPT = 0.87  # of scripts, by the size of the text
_BOLD = 1.16
_DIGIT_PT = 4.26
_WIDTHS_PT = {
    **dict.fromkeys("fijlt.,:;!|'~ ", 2.9),
    **dict.fromkeys("rsI()[]/-", 3.4),
    **dict.fromkeys("bdhknpqu", 4.8),
    **dict.fromkeys("mwMWABCDEFGHKLNOPQRSTUVXYZ%&+=<>@", 6.6),
    **{r"\;": 2.4, r"\pm": 10.4, r"\cdot": 6.2, r"\%": 7.1, r"\&": 6.6, r"\infty": 8.5, r"\mathrm": 0.0, r"\hat": 0.0},
}
"""The widths of letters and symbols in \\footnotesize; any other has the width of a digit."""
_BOLDED = re.compile(r"\\mathbf\{((?:[^{}]|\{[^{}]*\})*)\}")
_SCRIPTS = re.compile(r"\^\{([^{}]*)\}_\{([^{}]*)\}")
_TOKENS = re.compile(r"[\^_]\{((?:[^{}]|\{[^{}]*\})*)\}|(\\[A-Za-z]+|\\.|[^\\${}])")


@dataclass(frozen=True)
class _Heading:
    """The heading of a column, or of neighbouring columns with a shared title and their own titles below."""

    lines: tuple[str, ...]
    below: tuple[str, ...]
    count: int
    width_pt: float


def width_in(columns: Sequence[Column]) -> float:
    """Estimate the width of a tabular, in inches."""
    headings = _headings(columns)
    return (sum(heading.width_pt for heading in headings) + _GAP_PT * (len(headings) - 1)) / _PT_AN_INCH


def fitting(keys: Sequence[Column], columns: Sequence[Column], parts: Iterable[Sequence[Column]]) -> list[Column]:
    """Return the columns, in order and without the keys, that fit a paper's column beside the keys.

    Args:
        keys: the columns that are always kept.
        columns: all other columns, in order.
        parts: columns that are chosen together, the most important first. The first part with a column is always
            chosen, each other part only if it fits beside those chosen before.
    """
    chosen: list[Column] = []
    for part in parts:
        more = [column for column in columns if column in chosen or column in part]
        if not chosen or width_in([*keys, *more]) <= COLUMN_IN:
            chosen = more
    return chosen


def body_line(texts: Iterable[str]) -> str:
    """Return a row of a tabular from the texts of its cells."""
    return " & ".join(texts) + " \\\\"


def tabular(
    columns: Sequence[Column], body: Iterable[str] | None = None, *, comments: Sequence[str], note: str = ""
) -> str:
    """Return a tabular, ready to be put into a table environment, below its comments.

    Args:
        columns: all columns, from left to right.
        body: the lines between the header and the last rule; None to write the columns' texts.
        comments: the comments above the tabular, besides its width.
        note: a note below the tabular, in LaTeX.
    """
    width = width_in(columns)
    size = f"About {width:.1f} in wide" + (": wider than a column of a two-column paper." if width > COLUMN_IN else ".")
    lines = [
        *(f"% {' '.join(comment.split())}" for comment in comments),
        f"% Needs \\usepackage{{booktabs}}. {size}",
        "{\\footnotesize\\setlength{\\tabcolsep}{4pt}\\renewcommand{\\arraystretch}{1.25}%",
        f"\\begin{{tabular}}{{@{{}}{''.join('r' if column.is_number else 'l' for column in columns)}@{{}}}}",
        "\\toprule",
        *_header(columns),
        "\\midrule",
        *(map(body_line, zip(*(column.texts for column in columns), strict=True)) if body is None else body),
        "\\bottomrule",
        *([f"\\multicolumn{{{len(columns)}}}{{@{{}}l@{{}}}}{{{note}}} \\\\"] if note else []),
        "\\end{tabular}}",
    ]
    return "\n".join(lines) + "\n"


def _headings(columns: Sequence[Column]) -> list[_Heading]:
    headings = []
    for _, members in groupby(enumerate(columns), lambda item: item[1].title if item[1].below else item[0]):
        group = [column for _, column in members]
        units = {column.unit for column in group}
        brackets = [f" ({column.unit})" if column.unit else "" for column in group]
        title = group[0].title + (brackets[0] if len(units) == 1 else "")
        below = tuple(c.below + (unit if len(units) > 1 else "") for c, unit in zip(group, brackets, strict=True))
        widths = [max(map(_width_pt, (text, *column.texts))) for text, column in zip(below, group, strict=True)]
        span = sum(widths) + _GAP_PT * (len(group) - 1)
        # Break a title that is wider than its column into two lines.
        parts = title.split(" ")
        pairs = [(" ".join(parts[:i]), " ".join(parts[i:])) for i in range(1, len(parts))]
        is_wide = bool(pairs) and _width_pt(title) > span
        lines = min(pairs, key=lambda pair: max(map(_width_pt, pair))) if is_wide else (title,)
        width = max(span, *map(_width_pt, lines))
        headings.append(_Heading(lines, below if any(below) else (), len(group), width))
    return headings


def _header(columns: Sequence[Column]) -> list[str]:
    """Write the header's lines, with rules between shared titles and those below."""
    headings = _headings(columns)
    height = max(len(heading.lines) + bool(heading.below) for heading in headings)
    lines = []
    for row in range(height):
        cells, rules, place = [], "", 1
        for heading in headings:
            line = row - (height - len(heading.lines) - bool(heading.below))
            if line < 0:
                cells += [""] * heading.count
            elif line == len(heading.lines):
                cells += heading.below
            elif heading.count == 1:
                cells.append(heading.lines[line])
            else:
                cells.append(f"\\multicolumn{{{heading.count}}}{{c}}{{{heading.lines[line]}}}")
                if line == len(heading.lines) - 1:
                    rules += f"\\cmidrule(lr){{{place}-{place + heading.count - 1}}}"
            place += heading.count
        lines += [" & ".join(cells).strip() + " \\\\", *([rules] if rules else [])]
    return lines


def _width_pt(text: str) -> float:
    r"""Estimate the width of a text typeset in \footnotesize, in points."""
    bold = "".join(_BOLDED.findall(text))
    bold_width = (_BOLD - 1) * _width_pt(bold) if bold else 0.0
    plain = _BOLDED.sub(r"\1", text).replace("{,}", ",")
    plain = _SCRIPTS.sub(lambda pair: f"^{{{max(pair.groups(), key=_width_pt)}}}", plain)
    return bold_width + sum(
        _SCRIPT * _width_pt(script) if script else _WIDTHS_PT.get(token, _DIGIT_PT)
        for script, token in _TOKENS.findall(plain)
    )

"""Output as text in a terminal or a log, and as HTML in a notebook."""

from __future__ import annotations

import html
import io
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from study.console import Console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from study.reports import Findings
    from study.reports.text_table import TextTable
    from study.summaries.parts import Parts

PLAIN_WIDTH = 150
"""Width at which texts are folded in a file or a pipe; tables have all columns there."""


def make_console() -> Console:
    """Return a console for the output: a terminal, a notebook's cell, or a file."""
    console = Console()
    has_width = console.is_terminal or console.is_jupyter or "COLUMNS" in os.environ
    return console if has_width else Console(width=PLAIN_WIDTH, has_own_width=False)


class Printout:
    """Output of a command, to be shown by a notebook or printed.

    Args:
        content: a renderable of rich, or a function that prints to a console.
        as_data: returns the same content as JSON data; numbers may also be NaN or infinite.

    Example:
        >>> print(Printout("3 trials"))
        3 trials
    """

    def __init__(
        self,
        content: RenderableType | Callable[[Console], None],
        as_data: Callable[[], Mapping[str, Any]] = dict[str, Any],
    ) -> None:
        self._content, self._as_data = content, as_data

    @property
    def data(self) -> dict[str, Any]:
        """The same content as data, for programs."""
        return dict(self._as_data())

    def print(self, console: Console) -> None:
        """Print the output to a console."""
        if callable(self._content):
            self._content(console)
        else:
            console.print(self._content)

    def __str__(self) -> str:
        return self._written().export_text(styles=False).rstrip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        page = self._written().export_html(inline_styles=True, code_format="<pre>{code}</pre>")
        return f'<div style="overflow-x: auto">{page}</div>'

    def _written(self) -> Console:
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            console = Console(file=nowhere, record=True, width=PLAIN_WIDTH, has_own_width=False, force_jupyter=False)
            self.print(console)
        return console


def display_figures_as_pictures() -> None:
    """Make a notebook display figures that weren't made by pyplot; a no-op elsewhere."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    formatters = shell.display_formatter.formatters
    if "image/png" in formatters:
        formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", _picture)


def _picture(figure: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return content.getvalue()


def html_findings(findings: Findings, title: str, parts: Parts | None = None) -> str:
    """Return the results, the finding and the most important sections as HTML, with escaped texts.

    Args:
        findings: the findings to write.
        title: the title above them.
        parts: collects sections that fail; None to raise their errors.
    """
    from study.reports import brief_sections
    from study.reports.table import summaries_table

    blocks = [f"<p><b>{html.escape(title)}</b></p>", html_table(summaries_table(findings.rows))]
    blocks.append(f"<p>{html.escape(findings.headline)}</p>")
    for section in brief_sections(findings, parts):
        blocks.append(f"<p><b>{html.escape(section.title)}</b></p>")
        blocks.append("<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in section.items) + "</ul>")
        blocks += [html_table(section.table)] if section.table is not None else []
        blocks += [f"<p>{html.escape(sentence)}</p>" for sentence in section.sentences]
    blocks.append("<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in findings.notes) + "</ul>")
    return "".join(block for block in blocks if block != "<ul></ul>")


def html_table(content: TextTable) -> str:
    """Return a table of texts as HTML, with the best values in bold."""
    head = "".join(f"<th>{html.escape(title)}</th>" for title in content.header)
    rows = []
    for cells in content.entries:
        texts = (
            f'<td style="white-space: nowrap; text-align: {"right" if is_number else "left"}">'
            + (f"<b>{html.escape(text)}</b>" if is_best else html.escape(text))
            + "</td>"
            for text, _, is_number, is_best in cells
        )
        rows.append(f"<tr>{''.join(texts)}</tr>")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div style="overflow-x: auto">{table}</div>'

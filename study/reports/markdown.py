"""A report as Markdown, to paste into an issue or a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from study.reports.content import Findings
from study.reports.section import Section
from study.reports.sections import sections
from study.reports.text_table import TextTable
from study.summaries.parts import Parts

if TYPE_CHECKING:
    from study.reports.figures.style import Drawn

_ESCAPED = str.maketrans({character: f"\\{character}" for character in "\\|`*_<>#[]!"})


def markdown(findings: Findings, figures: Sequence[Drawn] = (), parts: Parts | None = None) -> str:
    """Return a report as Markdown: name, question, headline, and all sections but those that only a page shows.

    Args:
        findings: the findings.
        figures: the drawn figures. Those that shown sections name, and the first of those that no section names, are
            linked as PNG files.
        parts: as for `sections`.

    Raises:
        InputError: as for `sections`.
    """
    titles = {figure.name: figure.title for figure in figures}
    lines = [f"# {_escape(findings.name)}", _escape(findings.question), _escape(findings.headline)]
    for section in sections(findings, parts, list(titles)):
        lines += _section(section, titles, 2)
    return "\n\n".join(line for line in lines if line) + "\n"


def _section(section: Section, titles: Mapping[str, str], level: int) -> Iterator[str]:
    if section.is_page_only:
        return
    if section.title:
        yield f"{'#' * level} {_escape(section.title)}"
    for name in section.figures:
        yield f"![{_escape(titles[name])}]({name}.png)"
    if section.items:
        marks = [f"{number}." if section.is_numbered else "-" for number in range(1, len(section.items) + 1)]
        yield "\n".join(f"{mark} {_escape(item)}" for mark, item in zip(marks, section.items, strict=True))
    yield from map(_escape, section.details)
    if section.table is not None:
        yield _table(section.table)
    yield from map(_escape, section.sentences)
    if section.code:
        yield "\n".join(["```text", section.code.replace("```", "'''"), "```"])
    for part in section.parts:
        yield from _section(part, titles, level + 1)


def _table(content: TextTable) -> str:
    rule = ["---:" if column.is_number else "---" for column in content.columns]
    marks = {True: "**", False: ""}
    body = ([marks[is_best] + _escape(text) + marks[is_best] for text, _, _, is_best in row] for row in content.entries)
    lines = [[_escape(text) for text in content.header], rule, *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escape(text: str) -> str:
    """Escape a text, so that it neither breaks a table nor turns into markup."""
    return " ".join(text.split()).translate(_ESCAPED)

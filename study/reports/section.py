"""A section of a report, the unit that every format renders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from study.reports.text_table import TextTable


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a report: a title, sentences, a table, figures.

    A page shows everything. Markdown omits sections with `is_page_only`. A terminal and a notebook show `title`,
    `items`, `table` and `sentences`.

    Args:
        title: the heading; empty for none.
        name: identifies the section in messages and in a terminal's layout.
        items: the items of a list.
        is_numbered: whether the list is numbered.
        details: sentences that a terminal and a notebook omit.
        table: the section's table.
        label: describes the table to screen readers; empty for the title.
        sentences: sentences that every format shows.
        code: a text to show verbatim.
        entries: definitions of terms.
        figures: the names of the section's figures.
        parts: the subsections, which are folded on a page.
        is_brief: whether a terminal and a notebook show this subsection.
        is_warning: whether the section is highlighted.
        is_open: whether a subsection is unfolded at first.
        is_page_only: whether only a page shows the section.
        has_trials: whether rows of the table unfold to their trials.
    """

    title: str
    name: str = ""
    items: Sequence[str] = ()
    is_numbered: bool = False
    details: Sequence[str] = ()
    table: TextTable | None = None
    label: str = ""
    sentences: Sequence[str] = ()
    code: str = ""
    entries: Sequence[Mapping[str, Any]] = ()
    figures: Sequence[str] = ()
    parts: Sequence[Section] = ()
    is_brief: bool = False
    is_warning: bool = False
    is_open: bool = False
    is_page_only: bool = False
    has_trials: bool = False

    def with_figures(self, drawn: Sequence[str]) -> Section | None:
        """Return the section without figures that weren't drawn, and without parts that have no content.

        None if no content is left; a title isn't content.
        """
        parts = [part for child in self.parts if (part := child.with_figures(drawn)) is not None]
        section = replace(self, figures=[name for name in self.figures if name in drawn], parts=parts)
        has_content = section.items or section.details or section.table or section.sentences or section.code
        return section if has_content or any(section.entries) or section.figures or parts else None

    def every_figure(self) -> Iterator[str]:
        """Yield the names of the figures of the section and its parts."""
        yield from self.figures
        for part in self.parts:
            yield from part.every_figure()

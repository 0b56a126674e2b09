"""The building block of a report, which every format renders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from study.reports.text_table import TextTable


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a report: a title, sentences, a table, figures.

    A page shows everything; Markdown leaves out what is of the page alone; a terminal and a notebook show `title`,
    `items`, `table` and `sentences`.

    Args:
        title: its heading; empty for none.
        name: names it in messages and in the layout of a terminal.
        items: a list.
        is_numbered: whether the list is numbered.
        details: sentences that a terminal and a notebook leave out.
        table: its table.
        label: describes the table to those who can't see it; empty for the title.
        sentences: what a reader must know.
        code: a text that is shown as it is.
        entries: definitions of terms.
        figures: the names of its figures.
        parts: its subsections, which are folded on a page.
        is_brief: of a part: whether a terminal and a notebook show it.
        is_warning: whether it is set off.
        is_open: whether a folded one is open at first.
        is_of_page: whether only a page shows it.
        has_trials: whether rows of the table open to their trials.
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
    is_of_page: bool = False
    has_trials: bool = False

    def with_figures(self, drawn: Sequence[str]) -> Section | None:
        """Return the section with those of its figures that were drawn; None if nothing is left."""
        parts = [part for one in self.parts if (part := one.with_figures(drawn)) is not None]
        section = replace(self, figures=[name for name in self.figures if name in drawn], parts=parts)
        has_content = section.items or section.details or section.table or section.sentences or section.code
        return section if has_content or any(section.entries) or section.figures or parts else None

    def every_figure(self) -> Iterator[str]:
        """Yield the names of its figures and of those of its parts."""
        yield from self.figures
        for part in self.parts:
            yield from part.every_figure()

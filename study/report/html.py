"""Pieces of the page: whatever comes from outside is escaped here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from study import words
from study.report.figures import style
from study.report.figures.style import Drawn, render
from study.report.table import Column, TextTable

# A text holds no quotation mark that isn't escaped, so this is found in tags alone.
_ATTRIBUTE = re.compile(r'( (id|xlink:href|style|fill|stroke|clip-path)=")([^"]*)')
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_COLOURS = {colour.lower(): f"var(--curve-{slot})" for slot, colour in enumerate(style.PALETTE)}
_COLOURS |= {style.INK: "var(--ink)", style.PAPER: "var(--paper)", style.RULE: "var(--rule)"}


def section(title: str, content: str, kind: str = "") -> str:
    """Put content under a heading; nothing for no content."""
    if not content:
        return ""
    name = re.sub(r"[^a-z]+", "-", title.lower()).strip("-")
    return f'<section class="{kind}" id="{name}"><h2>{escape(title)}</h2>{content}</section>'


def details(title: str, content: str, *, is_open: bool = False) -> str:
    """Fold content under a title."""
    return f"<details{' open' if is_open else ''}><summary>{escape(title)}</summary>{content}</details>"


def items(sentences: Sequence[str]) -> str:
    """List sentences; nothing for none."""
    if not sentences:
        return ""
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def mapping(entry: Mapping[str, Any]) -> str:
    """Show names and values."""
    pairs = "".join(f"<dt>{escape(str(k))}</dt><dd>{_value(v)}</dd>" for k, v in entry.items())
    return f"<dl>{pairs}</dl>"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return mapping(value)
    if isinstance(value, list | tuple):
        return escape(", ".join(map(str, value)))
    return escape(words.NONE if value is None else str(value))


def table(
    text: TextTable, *, marked: Sequence[bool] = (), opens: Sequence[str] = (), label: str = "table"
) -> str:
    """Lay out a table that sorts by its columns, and filters if it is long.

    Args:
        text: what it shows.
        marked: rows to set off.
        opens: names of the rows, if they have trials to show.
        label: what it is, for those who can't see it.
    """
    head = "".join(
        f"<th class={_kind(column)} scope=col aria-sort=none><button type=button class=sort>{escape(column.title)}"
        "</button></th>"
        for column in text.columns
    )
    head = f"<th class=o><span class=hidden>trials</span></th>{head}" if opens else head
    rows = []
    for row, texts in enumerate(text.rows):
        cells = "".join(_cell(column, row, shown) for column, shown in zip(text.columns, texts, strict=True))
        opener = _opener(opens[row]) if opens else ""
        is_marked = row < len(marked) and marked[row]
        rows.append(f"<tr data-row={row}{' class=marked' if is_marked else ''}>{opener}{cells}</tr>")
    body = "\n".join(rows)
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{escape(label)}"><table class=sortable>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _opener(name: str) -> str:
    label = f"show trials of {name}" if name else "show trials"
    return (
        "<td class=o><button type=button class=open aria-expanded=false "
        f'aria-label="{escape(label)}"></button></td>'
    )


def _kind(column: Column) -> str:
    return "n" if column.is_number else "t"


def _cell(column: Column, row: int, shown: str) -> str:
    value = column.values[row]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    sort = f" data-v={float(value):.17g}" if is_number and str(value) != shown else ""
    text = f"<b>{escape(shown)}</b>" if row in column.best else escape(shown)
    return f"<td class={_kind(column)}{sort}>{text}</td>"


def figure(drawn: Drawn) -> str:
    """Set a figure into the page, in the page's own ink and with values that a pointer shows."""
    svg = render(drawn, "svg").decode()
    return (
        f'<figure id="figure-{drawn.name}"><h3>{escape(drawn.title)}</h3>'
        f"<div class=drawing>{_inline(svg, drawn)}</div>"
        f"<figcaption>{escape(drawn.caption)}</figcaption></figure>"
    )


def _inline(svg: str, drawn: Drawn) -> str:
    """Cut the figure out of its file, let its ink and paper follow the page's, and keep its ids its own."""
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    # Comments are texts, which are drawn as paths: any name may be in them.
    drawing = re.sub(r"<!--.*?-->", "", drawing, flags=re.DOTALL)
    drawing = _ATTRIBUTE.sub(lambda found: found[1] + _own(found[2], found[3], f"{drawn.name}-"), drawing)
    return drawing.replace("<svg", f'<svg role="img" aria-label="{escape(drawn.title)}"', 1)


def _own(attribute: str, value: str, prefix: str) -> str:
    """Give an attribute's value the page's colours, and ids of this figure alone."""
    if attribute == "id":
        return prefix + value
    if attribute == "xlink:href":
        return value.replace("#", f"#{prefix}", 1)
    coloured = _COLOUR.sub(lambda found: _COLOURS.get(found[0], found[0]), value)
    return coloured.replace("url(#", f"url(#{prefix}")

"""The report as one HTML page that needs nothing else: no network, no script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from study.aggregate import CellSummary
from study.reference.published import SOURCE
from study.report import figure, words
from study.report.compare import LEVEL, Comparison
from study.report.files import STATISTICS_COLUMNS
from study.report.table import TextTable, cells_table, comparison_table
from study.report.words import Labels

MOST_SENTENCES = 12
"""Compared cells told one by one; of more, those that differ."""


def page(
    *,
    name: str,
    question: str,
    summaries: Sequence[CellSummary],
    labels: Labels,
    comparison: Sequence[Comparison],
    provenance: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    command: str,
    svg: str,
) -> str:
    """Write the page. Whatever comes from outside is escaped; `svg` is a figure that this package drew."""
    css = resources.files("study.report").joinpath("page.css").read_text(encoding="utf-8")
    missing = _missing(summaries)
    body = [
        f"<header><h1>{escape(name)}</h1><p class=question>{escape(question)}</p>",
        f"<p class=counts>{escape(_counts(summaries))}</p></header>",
        _section("What is missing", _list(missing), kind="warning") if missing else "",
        f"<figure>{_inline(svg)}<figcaption>{escape(_caption(comparison))}</figcaption></figure>",
        _section("Cells", _table(cells_table(summaries, labels), [not s.complete for s in summaries])),
        _section("Against the published numbers", _comparison(comparison, labels)) if comparison else "",
        _section("Notes", _list([*notes, *_stop_note(summaries)])) if notes or _stop_note(summaries) else "",
        _section("What the columns mean", _definitions()),
        _section("Provenance", "".join(_mapping(entry) for entry in provenance)) if provenance else "",
        _section("Remake this report", f"<pre><code>{escape(command)}</code></pre>"),
    ]
    return _HEAD.format(title=escape(name), css=css) + "\n".join(part for part in body if part) + _FOOT


_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{css}</style>
</head>
<body>
<main>
"""
_FOOT = "\n</main>\n</body>\n</html>\n"


def _counts(summaries: Sequence[CellSummary]) -> str:
    planned = sum(s.seeds for s in summaries)
    parts = [f"{_count(len(summaries), 'cell')}, {_count(planned, 'trial')}"]
    for outcome in ("solved", "unsolved", "diverged", "failed", "pending"):
        count = sum(getattr(s, outcome) for s in summaries)
        parts += [f"{count:,} {outcome}"] if count else []
    return ": ".join([parts[0], ", ".join(parts[1:])])


def _missing(summaries: Sequence[CellSummary]) -> list[str]:
    pending, failed = sum(s.pending for s in summaries), sum(s.failed for s in summaries)
    lacking = sum(not s.complete for s in summaries)
    where = f"in {_count(lacking, 'cell')} of {len(summaries)}"
    sentences = []
    if pending:
        sentences.append(
            f"{_count(pending, 'trial')} not yet done. Run the study again to train what is missing."
        )
    if failed:
        sentences.append(
            f"{_count(failed, 'trial')} crashed and left no result. Run the study again to retry."
        )
    if sentences:
        sentences.append(
            f"Trials are missing {where}: rates there are over the trials that finished, marked with "
            f"done/planned seeds in the table and with half-filled markers in the figure."
        )
    return sentences


def _stop_note(summaries: Sequence[CellSummary]) -> list[str]:
    if all(s.cell.stop == "never" for s in summaries):
        return []
    early = sum(s.stopped_early for s in summaries)
    return [
        f"stop: when_decided was on: {_count(early, 'trial')} ended once the outcome could no longer change. "
        f"Outcomes and solved-at are those of full runs; seconds of training are not, and the sparsity error "
        f"is that of the best step so far."
    ]


def _caption(comparison: Sequence[Comparison]) -> str:
    text = (
        "Success rate with Wilson intervals; mean iteration at which trials were solved and mean sparsity "
        "error of the solved trials, with profile-likelihood intervals of a gamma and a beta law. All "
        "intervals are 95%. A cell that nothing solved has a rate of 0 and no point in the other panels."
    )
    return f"{text} Hollow: published, {SOURCE}." if comparison else text


def _comparison(comparison: Sequence[Comparison], labels: Labels) -> str:
    differing = [c for c in comparison if c.verdict == "differs"]
    keys = words.varying([c.summary.cell for c in comparison], labels)
    verb = "repeats" if len(comparison) == 1 else "repeat"
    finding = f"differ in {_count(len(differing), 'cell')}" if differing else "differ in none"
    head = (
        f"{_count(len(comparison), 'cell')} {verb} the protocol of {SOURCE}. Success rates {finding} "
        f"(Fisher's exact test, two-sided, at {LEVEL:g} with Holm's correction). To agree means that no "
        f"difference was detected with these seeds."
    )
    told = comparison if len(comparison) <= MOST_SENTENCES else differing
    sentences = [_verdict(c, labels, keys) for c in told]
    note = (
        "Published means are shown as printed, except for the table static_seeds, where they are estimated "
        "from the published seeds as this study's are. As printed, solved-at means are off by 1 to 2%, and "
        "most sparsity errors are half the true mean."
    )
    is_marked = [c.verdict == "differs" for c in comparison]
    table = _table(comparison_table(comparison, labels), is_marked)
    told_apart = _list(sentences) if sentences else ""
    return f"<p>{escape(head)}</p>{told_apart}{table}<p class=small>{escape(note)}</p>"


def _verdict(c: Comparison, labels: Labels, keys: Sequence[str]) -> str:
    named = [words.show(c.summary.cell, "model", labels)]
    named += [f"{words.title(k)} {words.show(c.summary.cell, k, labels)}" for k in keys if k != "model"]
    word = "differs from" if c.verdict == "differs" else "agrees with"
    incomplete = "" if c.summary.complete else ", over an incomplete cell"
    return (
        f"{', '.join(named)}: {c.summary.solved}/{c.summary.finished} {word} the published "
        f"{c.published.solved}/{c.published.seeds} (p {_equals(c.p_value)}, after Holm "
        f"{_equals(c.p_adjusted)}; {c.published.table}{incomplete})."
    )


def _equals(p: float) -> str:
    text = words.p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _definitions() -> str:
    pairs = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in STATISTICS_COLUMNS.items())
    title = "Columns of cells.csv, after the hyperparameters"
    return f"<details><summary>{title}</summary><dl>{pairs}</dl></details>"


def _section(title: str, content: str, kind: str = "") -> str:
    return f'<section class="{kind}"><h2>{escape(title)}</h2>{content}</section>'


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def _table(table: TextTable, is_marked: Sequence[bool]) -> str:
    kinds = ["n" if is_number else "t" for is_number in table.is_number]
    head = "".join(
        f"<th class={k} scope=col>{escape(text)}</th>" for k, text in zip(kinds, table.header, strict=True)
    )
    rows = []
    for row, marked in zip(table.rows, is_marked, strict=True):
        cells = "".join(f"<td class={k}>{escape(text)}</td>" for k, text in zip(kinds, row, strict=True))
        rows.append(f"<tr{' class=marked' if marked else ''}>{cells}</tr>")
    region = '<div class=scroll tabindex=0 role=region aria-label="table">'
    body = "\n".join(rows)
    return f"{region}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _mapping(entry: Mapping[str, Any]) -> str:
    pairs = "".join(f"<dt>{escape(str(k))}</dt><dd>{_value(v)}</dd>" for k, v in entry.items())
    return f"<dl>{pairs}</dl>"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, list | tuple):
        return escape(", ".join(map(str, value)))
    return escape(words.NONE if value is None else str(value))


def _inline(svg: str) -> str:
    """Cut the figure out of its file, and let its ink and paper follow the page's."""
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = drawing.replace(figure.INK, "var(--ink)").replace(figure.PAPER, "var(--paper)")
    drawing = drawing.replace(figure.RULE, "var(--rule)")
    for slot, colour in enumerate(figure.PALETTE):
        drawing = drawing.replace(colour.lower(), f"var(--curve-{slot})")
    return drawing.replace(
        "<svg", '<svg role="img" aria-label="Success rate, solved at and sparsity error"', 1
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

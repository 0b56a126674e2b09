"""The reasons of failed trials as text for a terminal, Markdown and a page."""

from __future__ import annotations

from collections.abc import Sequence

from study.summaries.failures import Failure
from study.summaries.rows import ResultRows
from study.words import count_of

MOST_REASONS = 5
"""The most reasons listed in texts; JSON has all."""

_MOST_CELLS = 3
_REPEATED = (
    "Another run fails the same way, because code, values and seed are the same: fix the code or the study file first."
)
_AGAIN = "They failed the same way in the run before: find the cause before you run the study again."


def failure_lines(failures: Sequence[Failure], rows: ResultRows, study: str, retry: str = "study run") -> list[str]:
    """List the first `MOST_REASONS` reasons as lines, with the first one's traceback if known, and advice.

    Without failures, the list is empty.

    Args:
        failures: the reasons, the most frequent first.
        rows: the study's cells.
        study: the study's name.
        retry: the command that trains failed trials again.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    if not failures:
        return []
    first = failures[0]
    trials = count_of(sum(failure.trials for failure in failures), "trial")
    if len(failures) == 1:
        lines = [f"{trials} failed: {first.reason}", f"  {example(first, rows)}"]
    else:
        lines = [f"{trials} failed, for {count_of(len(failures), 'reason')}:"]
        for failure in failures[:MOST_REASONS]:
            lines += [f"  {count_of(failure.trials, 'trial')}: {failure.reason}", f"    {example(failure, rows)}"]
    if (more := more_reasons(failures, study)) is not None:
        lines.append(f"  {more}")
    if first.traceback:
        lines += [f"Trial {first.trial_id}, seed {first.seed}:", *(f"  {line}" for line in first.traceback.split("\n"))]
    return [*lines, advice(failures, retry)]


def example(failure: Failure, rows: ResultRows) -> str:
    """Return a text that names up to three cells with the most failed trials of a reason, and an example trial.

    Cells that aren't in `rows`, or have no name there, aren't named. If any cell is named, the others are counted.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    names = {s.cell_id: (rows.name(row), s.seeds) for row, s in enumerate(rows.summaries) if hasattr(s, "cell_id")}
    by_count = sorted(failure.cells.items(), key=lambda cell: -cell[1])
    cells = [(*names[cell_id], count) for cell_id, count in by_count if cell_id in names]
    parts = [
        f"{'all' if count == seeds else f'{count:,} of {seeds:,}'} trials of {name}"
        for name, seeds, count in cells[:_MOST_CELLS]
        if name
    ]
    if parts and len(failure.cells) > len(parts):
        parts.append(f"some of {count_of(len(failure.cells) - len(parts), 'more cell')}")
    return "; ".join([*parts, f"for example trial {failure.trial_id}, seed {failure.seed}"])


def more_reasons(failures: Sequence[Failure], study: str) -> str | None:
    """Count the reasons that aren't listed, and name the command that lists them; None if all are listed."""
    count = len(failures) - MOST_REASONS
    return None if count <= 0 else f"and {count_of(count, 'more reason')}: `study show {study} --json` has all"


def advice(failures: Sequence[Failure], retry: str = "study run") -> str:
    """Return advice to fix the code for repeated failures, and to train the other trials again; empty without failures.

    Args:
        failures: the reasons.
        retry: the command that trains failed trials again.
    """
    passing = [failure for failure in failures if not failure.is_repeated]
    sentences = [_REPEATED] if len(passing) < len(failures) else []
    if passing:
        trials = sum(failure.trials for failure in passing)
        subject = count_of(trials, "trial") if sentences else "They" if trials > 1 else "It"
        sentences.append(
            f"{subject} may succeed in another run: `{retry}` trains {'it' if trials == 1 else 'them'} again."
        )
        sentences += [_AGAIN] if any(failure.again for failure in passing) else []
    return " ".join(sentences)


def markdown_failures(failures: Sequence[Failure], rows: ResultRows, study: str) -> str:
    """Write `failure_lines` as a fenced code block in Markdown; empty without failures.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    lines = failure_lines(failures, rows, study)
    return "\n".join(["```text", *(line.replace("```", "'''") for line in lines), "```"]) if lines else ""

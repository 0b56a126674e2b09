"""Tables in Markdown, from the rows of a CSV file."""

from __future__ import annotations

from collections.abc import Sequence

Row = dict[str, str]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """Return a Markdown table: the first `texts` columns are left-aligned, the others right-aligned, as numbers.

    Example:
        >>> print(markdown(["what", "us"], [["stream", "6.2"]], 1))
        | what | us |
        | --- | --: |
        | stream | 6.2 |
    """
    rule = ["---"] * texts + ["--:"] * (len(head) - texts)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rows))


def number(text: str) -> str:
    """Write a number with two decimals below 10, one below 100, else none, and thousands separators.

    An empty text becomes a dash.

    Raises:
        ValueError: if the text isn't a number.

    Example:
        >>> number("1234.56"), number("12.34"), number("1.23"), number("")
        ('1,235', '12.3', '1.23', '–')
    """
    if not text:
        return "–"
    value = float(text)
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"

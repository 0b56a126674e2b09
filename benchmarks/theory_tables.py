"""Tables of the benchmarks of units: `moments`, `curvature`, `barrier`, `starts` and `near_zero`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import Row, markdown

_CASE = ("unit", "weights", "hidden", "weight_variance", "input_variance", "input_mean")
_SHOWN_MEANS = ("0", "1.5")
_SHOWN_VARIANCES = {"NMU": "0.0833333", "NAC-mul": "0.1"}


def moments_table(rows: Sequence[Row]) -> str:
    """Return two tables: a line for each fan of equation 8, and one for some cases and means of equations 9 and 10."""
    return f"{_fans([row for row in rows if row['equation'] == '8'])}\n\n{_cases(rows)}"


def _fans(rows: Sequence[Row]) -> str:
    names = ("reach", "final", "simulated", "standard_error")
    lines = [[row["fan"], *(_digits(row[name]) for name in names)] for row in rows]
    return markdown(["fan, eq. 8", "r", "Var[W] wanted, 2 / fan", "Var[W] simulated", "standard error"], lines, 0)


def _cases(rows: Sequence[Row]) -> str:
    cases: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        if row["weight_variance"] == _SHOWN_VARIANCES.get(row["unit"]) and row["input_mean"] in _SHOWN_MEANS:
            cases.setdefault(tuple(row[name] for name in _CASE), {})[row["quantity"]] = row
    lines = []
    for (unit, weights, hidden, *numbers), quantities in cases.items():
        gradient = quantities["Var[δ ∂z/∂z_1]"]
        texts = [unit, weights, hidden, *(f"{float(text):.3g}" for text in numbers)]
        texts += [_digits(quantities["E[z]"][name]) for name in ("exact", "final")]
        texts += [_digits(quantities["Var[z]"][name]) for name in ("exact", "simulated", "final")]
        texts.append(_digits(quantities["Var[∂z/∂z_1]"]["exact"]))
        lines.append([*texts, *(_digits(gradient[name]) for name in ("exact", "simulated", "final", "draft"))])
    head = ["unit", "weights", "H", "V", "v", "m", "E[z]", "paper", "Var[z]", "simulated", "paper", "Var[∂z/∂z_1]"]
    return markdown([*head, "gradient", "simulated", "paper", "draft"], lines, 2)


def curvature_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each quantity, with a column for each observation and second layer.

    An empty value becomes ``none``, and one that the rows lack a dash.
    """
    columns = list(dict.fromkeys((row["observation"], row["second"]) for row in rows))
    lines: dict[str, dict[tuple[str, str], str]] = {}
    for row in rows:
        where = (row["observation"], row["second"])
        lines.setdefault(_place(row), {})[where] = _digits(row["value"]) if row["value"] else "none"
    head = ["", *(f"{observation}, {second}" for observation, second in columns)]
    return markdown(head, [[name, *(line.get(where, "–") for where in columns)] for name, line in lines.items()], 1)


def barrier_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each range.

    A line has the weight of a zero factor at its mean, and the share of starts beyond it.
    """
    lines = [[f"U[{row['low']},{row['high']}]", row["barrier"], row["beyond"]] for row in rows]
    return markdown(["range", "1 / (1 - x) at its mean", "share of U[1/4, 3/4] beyond"], lines, 1)


def starts_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each number of negative factors before training.

    A line has the counts of trials: by their number after 1,000 updates, as foreseen, as at the end, and solved.
    """
    names = ("trials", "then_0", "then_2", "then_4", "then_6", "as_foreseen", "as_at_the_end", "solved")
    lines = [[row["value"], *(row[name] for name in names)] for row in rows if row["of"] == "negative at the start"]
    head = ["negative before", "trials", "after 1,000 updates 0", "2", "4", "6 or more", "as foreseen"]
    return markdown([*head, "as at the end", "solved"], lines, 0)


def start_sizes_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each number of hidden units.

    A line has the shares of seeds by negative factors after 1,000 updates, those of the forecasts, the success counts
    here and published, and the share with two under ``init_signs: two_negative``.
    """
    lines = []
    for row in rows:
        if row["of"] == "hidden units":
            counts = [f"{100 * int(row[f'then_{count}']) / int(row['trials']):.1f}" for count in (0, 2, 4, 6)]
            here = f"{row['solved_here']}/{row['trials_here']}" if row.get("trials_here") else "–"
            there = f"{row['published_solved']}/{row['published_seeds']}"
            names = ("as_foreseen", "foreseen_at_most_2", "two_negative_then_2")
            right, at_most, signed = (f"{100 * int(row[name]) / int(row['trials']):.1f}" for name in names)
            lines.append([row["value"], *counts, right, at_most, here, there, signed])
    head = ["hidden units", "0, %", "2, %", "4, %", "6 or more, %", "as foreseen, %", "foreseen 0 or 2, %"]
    head += ["solved here", "published"]
    head.append("2 with `two_negative`, %")
    return markdown(head, lines, 0)


def near_zero_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each target and unit, with its floor and its relative error on each range."""
    powers = list(dict.fromkeys(row["power"] for row in rows))
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        lines.setdefault((row["target"], row["unit"]), []).append(f"{row['floor']}, {row['relative_error']}")
    head = ["", "unit", *(f"k = {power}" for power in powers)]
    return markdown(head, [[*names, *line] for names, line in lines.items()], 2)


def _place(row: Row) -> str:
    if row["w1"]:
        return f"L({row['w1']}, {row['w2']})"
    return f"{row['what'].replace('|w1|', 'abs(w1)')} at w2 = {row['w2']}" if row["w2"] else row["what"]


def _digits(text: str) -> str:
    """Write a number with four digits, or whole from 1,000 to a million; a rounding residue below 1e-20 is 0.

    Example:
        >>> _digits("0.381944"), _digits("-35497.9"), _digits("1e+28"), _digits("3.2e-30")
        ('0.3819', '-35,498', '1e+28', '0')
    """
    value = float(text)
    if 0 < abs(value) < 1e-20:
        return "0"
    if 1e3 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.4g}"

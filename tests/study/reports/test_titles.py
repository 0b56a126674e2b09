"""Declared titles of hyperparameters: a report uses them everywhere."""

from __future__ import annotations

from study.arrow import results_table
from study.comparisons.contrasts import contrasts
from study.comparisons.headline import headline
from study.reports import cell_rows
from study.reports.beside import beside
from study.reports.figures import heat_map, panels
from study.reports.latex import latex
from study.reports.table import slopes_table, summaries_table, trends_table
from study.trials.table import TrialTable
from tests.study.builders import published_cell, results_of, summarised

TITLES = {"hidden_size": "neurons", "learning_rate": "step size"}


def rows_of(**changes):
    """Make rows of a grid of sizes and learning rates, with their trials."""
    cells = [published_cell(hidden_size=h, learning_rate=lr) for h in (2, 3, 4) for lr in (0.001, 0.01, 0.1)]
    results = [result for i, cell in enumerate(cells) for result in results_of(cell, solved=2 + i, unsolved=9 - i)]
    table = results_table(results)
    return cell_rows(summarised(table, {}), {}, titles=TITLES, **changes), TrialTable(table)


def test_declared_titles_are_used_everywhere():
    """Headings, axes, row names, sentences, tests and LaTeX have only the declared title."""
    rows, trials = rows_of()
    compared = contrasts(rows, trials)
    figure = panels.plot(rows).figure
    fields = heat_map.plot(rows)
    texts_by_place = {
        "headings": [column.title for column in summaries_table(rows).columns],
        "axis": [axes.get_xlabel() for axes in figure.axes],
        "legend": [text.get_text() for text in figure.legends[0].get_texts()],
        "heat map": [fields.title, fields.figure.axes[0].get_xlabel(), fields.figure.axes[0].get_ylabel()],
        "sentence": [headline(rows, compared)],
        "trends": trends_table(compared).columns[1].texts,
        "slopes": slopes_table(compared).columns[0].texts,
        "LaTeX": [latex(rows, command="").lower()],
        "side by side": beside(rows, rows.summaries)["titles"].values(),
    }
    for place, texts in texts_by_place.items():
        text = " ".join(texts)
        assert "neurons" in text or "step size" in text, place
        assert "hidden units" not in text, place
        assert "learning rate" not in text, place

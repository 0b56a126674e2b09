"""Consistent outputs: sentence, bold mark, table and file agree on each pair's direction and p-value."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study import words
from study.comparisons.contrasts import contrasts
from study.comparisons.finding import LEVEL
from study.comparisons.headline import headline
from study.interface.declarations import Metric
from study.reports import files, groups
from study.reports.csv_text import csv_text
from study.reports.table import pairs_table, summaries_table
from study.summaries.aggregate import aggregate_by
from study.trials.table import TrialTable
from tests.study.builders import outcomes_table

OUTCOMES = {"success": ["solved", "unsolved", "diverged", "failed"], "metric": ["finished", "diverged", "failed"]}
LOSS = {"loss": Metric()}


@st.composite
def tables(draw, kind):
    """Draw trials of two or three models with partly shared seeds, whose rates or means may be far apart."""
    models = draw(st.integers(2, 3))
    trials = []
    for model in range(models):
        first, count = draw(st.integers(0, 12)), draw(st.integers(1, 14))
        center, is_clear = draw(st.integers(0, 3)), draw(st.booleans())
        for seed in range(first, first + count):
            outcome = OUTCOMES[kind][0 if is_clear and model else draw(st.integers(0, len(OUTCOMES[kind]) - 1))]
            loss = float(center + draw(st.integers(0, 3)) / 4)
            trials.append((f"m{model}", seed, outcome, loss if outcome == "finished" else None))
    model, seed, outcome, loss = zip(*trials, strict=True)
    columns = {"loss": [value if value is None else float(value) for value in loss]} if kind == "metric" else {}
    table = outcomes_table(model=list(model), seed=list(seed), outcome=list(outcome), **columns)
    return TrialTable(table, LOSS if kind == "metric" else {}, ("model",))


@pytest.mark.parametrize("kind", ["success", "metric"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_all_outputs_agree_on_each_pair(kind, data):
    """Every output about two methods follows from their finding, for any trials."""
    trials = data.draw(tables(kind))
    rows = groups(aggregate_by(trials), trials.by)
    tests = contrasts(rows, trials)
    sentence = headline(rows, tests)
    names = [rows.name(row) for row in range(len(rows.summaries))]
    compared = {name for finding in tests.pairs for name in (finding.first, finding.second)}
    winners = {
        name
        for name in compared
        if all(finding.winner == name for finding in tests.pairs if name in (finding.first, finding.second))
    }
    assert {names[row] for row in tests.winners} == winners
    for phrase in (" succeeds most often", " has the lowest loss", " has the best loss"):
        assert {name for name in names if sentence.startswith(f"{name}{phrase}")} <= winners
    column = summaries_table(rows).columns[0].texts
    assert list(column) == names
    lines = [line for line in csv.DictReader(io.StringIO(csv_text(files.tests_rows(tests)))) if line["first"]]
    laid_out = pairs_table(tests) if tests.pairs else None
    verdicts = next((c.texts for c in laid_out.columns if c.title == "verdict"), ()) if laid_out else ()
    corrected = next((c.texts for c in laid_out.columns if c.title == "p, Holm"), ()) if laid_out else ()
    for finding, line, verdict, p in zip(tests.pairs, lines, verdicts, corrected, strict=True):
        assert line["verdict"] == str(finding.verdict)
        assert verdict.startswith(line["verdict"])
        if finding.p_adjusted is None:
            assert (line["p_adjusted"], p, finding.winner) == ("", words.NONE, None)
            continue
        assert (float(line["p_adjusted"]), p) == (finding.p_adjusted, words.p_value(finding.p_adjusted))
        excess = float(line["estimate"]) - (0.5 if line["estimate_of"] == "probability" else 0.0)
        is_first_better = excess > 0 if finding.is_probability or finding.is_higher_better else excess < 0
        expected = "first better" if is_first_better else "second better"
        assert line["verdict"] == (expected if finding.p_adjusted < LEVEL and excess else "not distinguished")
        if not finding.is_probability:
            first, second = (float(line[f"{side}_value"]) for side in ("first", "second"))
            assert first - second == pytest.approx(float(line["estimate"]), abs=1e-9)

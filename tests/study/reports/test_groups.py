"""Tables of groups by columns, in the formats of a study's report."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study.comparisons.contrasts import contrasts
from study.console import Console
from study.outcomes import gather, read_source, wanted
from study.reports import Report, groups, groups_rows, latex, write_report
from study.reports import summaries_table as terminal_table
from study.reports.columns import as_published
from study.reports.files import statistics_columns
from study.reports.table import summaries_table
from study.summaries.aggregate import GroupSummary, aggregate_by
from study.trials.table import TrialTable
from tasks.arithmetic import MODELS, ArithmeticTask
from tasks.arithmetic import published as published_files
from tasks.arithmetic.symbols import SYMBOLS
from tests.study.builders import error_of, outcomes_table, summarised_by

BY = pa.schema([("operation", pa.string()), ("model", pa.string())])
HOSTILE = '50% of_a & b$ {x} ~^\\ "#|*'


def published(as_published: bool = True) -> list[GroupSummary]:
    """Summarise the published seeds."""
    gathered = gather(
        [read_source(Path(published_files.__file__).with_name("static_seeds.csv"))],
        None,
        wanted(known=ArithmeticTask.metrics),
    )
    return summarised_by(gathered.table, gathered.by, gathered.metrics, as_published=as_published)


def write(
    folder: Path,
    summaries: list[GroupSummary],
    by: pa.Schema = BY,
    formats: tuple[str, ...] = ("md", "csv", "parquet", "latex"),
    name: str = "a title",
) -> dict[str, Path]:
    """Write the tables of groups."""
    report = Report(
        name=name,
        question="",
        rows=groups(summaries, by.names),
        data=groups_rows(summaries, by),
        notes=["a note"],
        command="study report x.csv",
    )
    return {path.name: path for path in write_report(folder, report, formats)}


def body(text: str) -> list[str]:
    """Return the lines of a LaTeX tabular below its header."""
    below = text[text.index("\\midrule") : text.index("\\bottomrule")]
    return [line for line in below.splitlines() if line.endswith("\\\\")]


def plain(line: str) -> str:
    """Remove escapes from LaTeX."""
    return re.sub(r"\\[&%$#_{}]", "", line)


def test_the_published_table_and_the_right_one_stand_beside_each_other():
    """The NAU's mean solved-at on +, and the NAC+'s mean error, are in the table as published and as corrected."""
    table = summaries_table(groups(published(), BY.names))
    rows = {row[:2]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    places = [i for i, title in enumerate(table.header) if title == "as published"]
    assert [table.header[i - 1] for i in places] == ["solved at iteration, mean", "sparsity error"]
    nau = next(row for row in table.rows if row[:2] == ("+", "NAU"))
    assert [nau[places[0] - 1].split()[0], nau[places[0]].split()[0]] == ["190k", "391k"]
    nac = next(row for row in table.rows if row[:2] == ("+", "NAC₊"))
    assert [nac[places[1] - 1].split()[0], nac[places[1]].split()[0]] == ["0.454", "0.227"]
    assert rows["×", "NMU"]["success rate"] == "0.98 [0.93, 0.99]"


def test_csv_and_parquet_have_equal_statistics(tmp_path):
    """CSV and Parquet have the original columns, and every statistic to the last bit."""
    summaries = published()
    files = write(tmp_path, summaries)
    table = pq.read_table(files["cells.parquet"])
    rows = list(csv.DictReader(io.StringIO(files["cells.csv"].read_text(encoding="utf-8"))))
    columns = [*statistics_columns(summaries), *as_published("sparsity_error")]
    assert table.column_names == list(rows[0]) == [*BY.names, *columns]
    assert table.schema.field("solved").type == pa.int64()
    assert table.schema.field("complete").type == pa.bool_()
    for row, typed, group in zip(rows, table.to_pylist(), summaries, strict=True):
        assert (row["operation"], row["model"]) == group.values
        assert typed["solved_at_mean"] == group.solved_at_mean
        for name, value in typed.items():
            assert row[name] == ("" if value is None else str(value).lower() if name == "complete" else str(value))


def test_the_same_input_gives_the_same_bytes(tmp_path):
    """Reading, summarising and writing twice gives equal files."""
    first, second = write(tmp_path / "a", published()), write(tmp_path / "b", published())
    assert set(first) == {"report.md", "cells.csv", "cells.parquet", "cells.tex"}
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes(), name


def test_only_the_formats_asked_for_are_written(tmp_path):
    """Other files of an earlier report are left unchanged."""
    write(tmp_path, published())
    before = (tmp_path / "cells.csv").read_bytes()
    assert set(write(tmp_path, published()[:1], formats=("latex",))) == {"cells.tex"}
    assert (tmp_path / "cells.csv").read_bytes() == before


@pytest.mark.parametrize("as_published", [True, False])
def test_latex_has_the_published_layout(as_published):
    """Columns are operation, model, success rate, solved-at and sparsity error; a rule separates operations."""
    names = [] if as_published else ["success_rate", "solved_at", "sparsity_error_mean"]
    text = latex.latex(groups(published(as_published), BY.names), command="x", names=names)
    lines = text.splitlines()
    head = next(line for line in lines if line.startswith("Op"))
    assert head.startswith("Op & Model & rate (\\%) & Median & Mean & ")
    above = " ".join(text[text.index("\\toprule") : text.index("\\midrule")].split())
    assert above.index("Success") < above.index("Solved at iteration") < above.index("Sparsity")
    columns = len(re.search(r"begin\{tabular\}\{@\{\}(\w+)@\{\}\}", text)[1])
    assert columns == (8 if as_published else 6)
    assert {plain(line).count("&") for line in body(text)} == {columns - 1}
    assert head.count("&") == columns - 1
    assert lines.count("\\midrule") == 2
    assert sum(line.startswith("$+$") or line.startswith(r"$\times$") for line in lines) == 2
    assert text.count("{") == text.count("}")
    assert all(line.count("$") % 2 == 0 for line in lines)
    assert r"$100\;{}^{+0}_{-4}$" in text
    assert "†" not in text


def test_rows_that_beat_all_others_are_bold(tmp_path):
    """A row that ties with another, or leads by chance, isn't bold; a row that beats all others is, in every format."""
    letters = {"A": "s" * 20, "B": "u" * 20, "C": "s" * 4 + "u" * 16}
    table = outcomes_table(
        model=[model for model, outcomes in letters.items() for _ in outcomes],
        outcome=[{"s": "solved", "u": "unsolved"}[letter] for outcomes in letters.values() for letter in outcomes],
    )
    trials = TrialTable(table, by=("model",))
    rows = groups(aggregate_by(trials), trials.by)
    rows = replace(rows, winners=contrasts(rows, trials).winners)
    assert rows.winners == {0}
    assert summaries_table(rows).columns[3].best == {0}
    assert "\\mathbf{100}" in latex.latex(rows, command="x")
    console = Console(width=200, record=True, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(terminal_table(rows))
    assert "\x1b[1m1.00" in console.export_text(styles=True)
    tied = groups(published(as_published=False), BY.names)
    assert tied.winners == frozenset()


def test_incomplete_groups_are_marked_everywhere(tmp_path):
    """A group with a failed or pending trial shows its finished seeds, and a dagger in LaTeX."""
    table = pa.table(
        {
            "model": ["A", "A", "A", "B"],
            "outcome": ["solved", "failed", None, "solved"],
            "solved_at_iteration": [5, None, None, 5],
            "sparsity_error": [0.1, None, None, 0.1],
            "training_s": [1.0, None, None, 1.0],
            "trained_iterations": [None] * 4,
            "stopped_early": [False] * 4,
        }
    )
    files = write(tmp_path, summarised_by(table, ["model"]), pa.schema([("model", pa.string())]))
    assert "| A | 1/3 |" in files["report.md"].read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(files["cells.csv"].read_text(encoding="utf-8"))))
    assert [(row["complete"], row["pending"], row["failed"]) for row in rows] == [
        ("false", "1", "1"),
        ("true", "0", "0"),
    ]
    text = files["cells.tex"].read_text(encoding="utf-8")
    assert text.count(r"\dagger") == 2  # at the row, and below the table
    assert r"($1/3{}^{\dagger}$)" in text


def test_names_cannot_become_markup(tmp_path):
    """Names are escaped as text in LaTeX and Markdown, and symbols are the model's."""
    values = [(HOSTILE, name) for name in (*MODELS, *SYMBOLS.model_names, HOSTILE)]
    summaries = [GroupSummary(seeds=1, values=value, metrics=error_of(0.0)) for value in values]
    files = write(tmp_path, summaries, pa.schema([("a_b", pa.string()), ("model", pa.string())]), name=HOSTILE)
    text = files["cells.tex"].read_text(encoding="utf-8")
    assert latex.escape(HOSTILE) in text
    assert r"50\% of\_a \& b\$ \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert {plain(line).count("&") for line in body(text)} == {2}
    assert all(plain(line).count("$") % 2 == 0 for line in body(text))
    for model in MODELS:
        assert f"& {latex.latex_value('model', model)} &" in text, model
    assert text.isascii() or not re.search(r"[^\x00-\x7f]", "".join(body(text)))
    parts = files["report.md"].read_text(encoding="utf-8").split("\n\n")
    table = next(part for part in parts if part.startswith("|")).splitlines()
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {9}


def test_values_are_written_as_mathematics():
    """Ranges, operations and numbers are mathematics; a missing value is a dash."""
    assert latex.latex_value("interpolation_range", "[-6,-2]|[2,6.1]") == r"$[-6,-2] \cup [2,6.1]$"
    assert latex.latex_value("interpolation_range", "anything|_") == r"anything\textbar{}\_"
    assert latex.latex_value("hidden_size", 1000) == "$1{,}000$"
    assert latex.latex_value("model", None) == "--"
    assert latex.latex_value("operation", "squared") == "$a^2$"
    assert latex.estimate("2.5e7") == r"$2.5 \cdot 10^{7}$"


def test_an_estimate_outside_its_interval_is_written_with_the_ends():
    """A faulty estimator's estimate may lie outside its interval, where distances to the ends are undefined."""
    (group,) = published()[:1]
    beside = replace(group.as_published, solved_at_mean=100.0, solved_at_interval=(200.0, 300.0))
    text = latex.latex(groups([replace(group, as_published=beside)], BY.names), command="x")
    assert r"100\;[200, 300]" in text


def test_many_groups_are_written_in_the_order_given(tmp_path):
    """Rows keep the order of the groups, whatever their number."""
    random = np.random.default_rng(2).permutation(300).tolist()
    summaries = [GroupSummary(seeds=1, values=(n,)) for n in random]
    files = write(tmp_path, summaries, pa.schema([("n", pa.int64())]))
    assert pq.read_table(files["cells.parquet"])["n"].to_pylist() == random

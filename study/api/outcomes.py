"""Reports of outcomes from any source: a DataFrame with one row per trial."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from study.api.notebook import Printout, html_findings

if TYPE_CHECKING:
    import pandas as pd

    from study.outcomes import Source
    from study.reports import Report


def report(
    trials: pd.DataFrame,
    by: Sequence[str] | None = None,
    *,
    metrics: Sequence[str] = (),
    success: str | None = None,
    state_words: Sequence[str] = (),
    compare: pd.DataFrame | None = None,
    as_published: bool = False,
    name: str = "outcomes",
) -> OutcomesReport:
    """Summarise the outcomes of seeded trials from any source, with one row per group.

    Args:
        trials: one row per trial, with a column `seed`, columns that were varied, and `solved` or `outcome`, unless
            `success` or `metrics` is given. docs/guides/reports.md lists the known columns.
        by: columns whose values define the groups; None for all that vary.
        metrics: columns to average. ``:higher`` or ``:lower`` after a name states which values are better; it is
            required if the name doesn't imply a direction.
        success: criterion of a solved trial: a column, an operator and a number, such as ``"val_mse < 2e-3"``.
        state_words: meanings of words in a column of states, such as ``"aborted=failed"``. A meaning is finished,
            failed, stopped or running. The state words of common tools are recognised without this.
        compare: other trials, whose groups are compared with these.
        as_published: also apply the published estimators.
        name: a name for the outcomes.

    Returns:
        The report, to display or to write.

    Raises:
        InputError: if columns are missing or values are wrong (the message lists all mistakes), a column has values of
            several types, two columns have the same name, the published estimators lack a number, or no group can be
            compared.

    Example:
        >>> import pandas as pd
        >>> trials = pd.DataFrame({"model": ["NMU"] * 4 + ["NALU"] * 4, "seed": [0, 1, 2, 3] * 2,
        ...     "solved": [True, True, True, False, False, True, False, False]})
        >>> found = report(trials, by=["model"])
        >>> found.cells()[["model", "solved", "seeds", "success_rate"]].values.tolist()
        [['NMU', 3, 4, 0.75], ['NALU', 1, 4, 0.25]]
    """
    from study.outcomes import gather, read_state_words, wanted, without_states
    from study.plugins.families import family_metrics
    from study.results.groups import assemble_group_report

    columns = wanted(metrics, success, family_metrics())
    words, others = read_state_words(state_words), {*(by or ()), *columns.columns}
    outcomes = gather([without_states(_source(trials, name), others, words)], by, columns)
    other = None
    if compare is not None:
        other_name = f"other {name}"
        source = without_states(_source(compare, other_name), {*outcomes.by, *columns.columns}, words)
        other = other_name, gather([source], outcomes.by, columns), ()
    return OutcomesReport(
        assemble_group_report(
            name,
            outcomes,
            named=list(columns.columns),
            as_published=as_published,
            other=other,
            command=f"study.report(trials, by={list(outcomes.by)})",
        )
    )


def _source(trials: pd.DataFrame, name: str) -> Source:
    import numpy as np
    import pyarrow as pa

    from study.errors import InputError
    from study.outcomes import Source

    if not len(trials):
        raise InputError(f"{name}: there must be a row for each trial, but there is none")
    try:
        table = pa.Table.from_pandas(trials, preserve_index=False)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name}: {error}; give each column a name of its own, and values of one type") from None
    return Source(name, table, np.arange(1, len(trials) + 1))


class OutcomesReport:
    """Report of outcomes, to be displayed or written.

    Args:
        content: the report's content.
    """

    def __init__(self, content: Report) -> None:
        self.content = content

    @property
    def finding(self) -> str:
        """The finding, in one sentence."""
        return self.content.headline

    def cells(self) -> pd.DataFrame:
        """Return one row per group, with the columns of cells.csv: counts, rates and metrics with intervals."""
        from study.api import frames

        return frames.cells_frame(self.content.data)

    def table(self) -> Printout:
        """Return the table for a terminal, with the finding."""
        from study.results.groups import print_report, report_as_json

        return Printout(lambda console: print_report(self.content, console), lambda: report_as_json(self.content))

    def write(self, folder: str | Path, formats: Collection[str] = (), *, columns: Sequence[str] = ()) -> list[Path]:
        """Write tables, figures and one HTML page into a folder, and return their paths.

        Args:
            folder: the folder; created if it doesn't exist.
            formats: any of html, md, csv, parquet, latex, png, svg and pdf; empty for all but pdf.
            columns: statistics for cells.tex and report.md, by their names in cells.csv; empty for the default ones.

        Raises:
            InputError: if a file that isn't part of a report would be overwritten, or a format or statistic doesn't
                exist.
            ReportError: if a part of the report failed; all others are written.
            OSError: if a file can't be written.
        """
        from study.reports import USUAL, check_columns, write_report

        check_columns(self.content.rows, columns)
        return write_report(Path(folder), replace(self.content, columns=columns), formats or USUAL)

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return html_findings(self.content, self.content.name)

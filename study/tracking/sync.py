"""Synchronisation of MLflow with the store, with a comparison of all runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from study.tracking.cell_runs import CellRun
from study.tracking.charts import ChartLine
from study.tracking.experiment import Experiment
from study.tracking.packs import Packs, ReadPack, in_groups
from study.tracking.trouble import explaining_errors


def sync(
    uri: str,
    study: str,
    packs: Packs,
    *,
    question: str = "",
    spec: str = "",
    finding: str = "",
    failures: str = "",
    counts: Mapping[str, float] | None = None,
    cells: Sequence[CellRun] = (),
    charts: Callable[[], Sequence[ChartLine]] = tuple,
    files: Callable[[], Sequence[Path]] = tuple,
) -> int:
    """Publish missing runs to MLflow, and correct those that differ.

    Args:
        uri: MLflow's address.
        study: the study's name, and its experiment's.
        packs: reads the stored packs; curves are read only for packs with a missing trial.
        question: the study's question; shown above its runs.
        spec: text of the study's file.
        finding: the findings so far; shown with the question. If empty, the descriptions aren't updated.
        failures: reasons of failed trials, as Markdown; shown below the question, but only with a finding.
        counts: number of trials in each state; the experiment's tags show them only with a finding.
        cells: the study's cells in the plan's order, with the results of their trials.
        charts: returns the lines of the charts.
        files: writes the report and returns its files; called once everything is published, to allow links.

    Returns:
        The number of trials that were written; 0 if MLflow had all of them.

    Raises:
        TrackingError: if MLflow can't be reached or refuses a request; also instead of an error of `packs`, `charts` or
            `files` that isn't a StudyError.
        StudyError: an error of `packs`, `charts` or `files`; also if a family can't be imported.
    """
    with explaining_errors(uri):
        experiment = Experiment(uri, study, question=question, spec=spec, cells=cells, look_at_all=True)
        written, marks = 0, []
        read = (ReadPack(name, packs.results(name), partial(packs.curves, name)) for name in packs.names())
        for group in in_groups(read):
            written += experiment.publish(group, packs.files)
            marks += [pack.mark for pack in group]
        experiment.believe_marks(marks)
        if counts:
            experiment.study.counts(counts)
        experiment.publish_cells(cells)
        experiment.publish_charts(charts())
        if finding:
            experiment.study.describe(finding, counts, failures)
        for file in files():
            experiment.study.artifact(file)
        experiment.finish()
    return written

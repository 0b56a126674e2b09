"""Bringing MLflow up to the store, all runs compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from study.tracking.experiment import Experiment
from study.tracking.packs import Packs, mark_of
from study.tracking.rows import Point
from study.tracking.trouble import reached


def sync(
    uri: str,
    study: str,
    packs: Packs,
    *,
    question: str = "",
    spec: str = "",
    finding: str = "",
    counts: Mapping[str, float] | None = None,
    series: Sequence[Point] = (),
    files: Callable[[], Sequence[Path]] = tuple,
) -> int:
    """Publish what MLflow is missing, and mend what differs.

    Args:
        uri: of MLflow.
        study: its name, and its experiment's.
        packs: reads what is stored; learning curves only of packs of which a trial is missing.
        question: what the study asks; shown above it.
        spec: its file's text.
        finding: what was found so far; shown below the question.
        counts: trials by state.
        series: the chart's points.
        files: writes the report, once all is published and can be linked to, and gives its files.

    Returns:
        How many trials were written; 0 if MLflow had them all.

    Raises:
        TrackingError: if MLflow can't be reached or refuses.
    """
    with reached(uri):
        experiment = Experiment(uri, study, question=question, spec=spec, look_at_all=True)
        written, marks = 0, []
        for name in packs.names():
            results = packs.results(name)
            written += experiment.publish(name, results, partial(packs.curves, name))
            marks.append(mark_of(name, results))
        experiment.believe_marks(marks)
        if counts:
            experiment.study.counts(counts)
        experiment.study.series(series)
        if finding:
            experiment.study.describe(finding, counts)
        for file in files():
            experiment.study.artifact(file)
        experiment.finish()
    return written

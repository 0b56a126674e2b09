"""Import of studies from ZIP files, and of runs from MLflow, wandb, tables, Hydra or Optuna."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.api.outcomes import OutcomesReport
from study.api.where import STORE

if TYPE_CHECKING:
    import pandas as pd

    from study.driver.sweeps.finished import FinishedRuns
    from study.outcomes import RunOutcomes, Runs
    from study.results.import_export import Import


def import_study(file: str | Path, *, store: str | Path = STORE) -> Import:
    """Import a study from a ZIP file written by `Study.export`; trials in the store stay unchanged.

    Its report and certificates are left out, since they can be forged.

    Args:
        file: the ZIP file.
        store: the store's folder or URL.

    Returns:
        The numbers of new and of existing trials, and notices for the user.

    Raises:
        InputError: if the file doesn't exist, isn't an export, is damaged or from a newer package, or if the store has
            another study of that name, or one that can't be planned or has files from a newer package.
        ConflictError: if the store has a different result of a trial, by the same engine and kind of device.
        BusyError: if the store's study is running.
        StoreError: if the store can't be read or written, or the file can't be unpacked.
    """
    from study.results.import_export import import_export

    return import_export(Path(file), str(store))


def import_csv(file: str | Path, **choices: Any) -> ImportedRuns:
    """Import runs from a table: a text or Parquet file with one row per run and any column names.

    Args:
        file: the table's path.
        choices: fields of `study.outcomes.RunChoices`: ``seed``, ``without_seeds``, ``by``, ``metrics``, ``repeats``,
            ``state_words``.

    Returns:
        The outcomes of the runs, to report or to write as a table.

    Raises:
        InputError: if the table can't be read, seeds or metrics aren't found in it, or as for
            `study.outcomes.outcomes_of_runs`.
        TypeError: if a choice has another name.
        StoreError: if results of an earlier version can't be converted to the current format, which is a bug here.
    """
    from study.outcomes import read_runs

    return _imported(read_runs(Path(file)), choices)


def import_wandb(file: str | Path, **choices: Any) -> ImportedRuns:
    """Import runs of wandb from the CSV export of its table of runs.

    Args:
        file: the CSV file's path.
        choices: as for `import_csv`.

    Returns:
        The outcomes of the runs, to report or to write as a table.

    Raises:
        InputError: if the file isn't such an export, seeds or metrics aren't found in it, or as for
            `study.outcomes.outcomes_of_runs`.
        TypeError: if a choice has another name.
        StoreError: if results of an earlier version can't be converted to the current format, which is a bug here.
    """
    from study.outcomes import read_runs

    return _imported(read_runs(Path(file), is_wandb=True), choices)


def import_mlflow(uri: str, experiment: str, **choices: Any) -> ImportedRuns:
    """Import the runs of any MLflow experiment; MLflow is only read.

    Args:
        uri: MLflow's address.
        experiment: the experiment's name or id.
        choices: as for `import_csv`.

    Returns:
        The outcomes of the runs, to report or to write as a table.

    Raises:
        InputError: if `uri` isn't an address of MLflow, the experiment doesn't exist or has no runs, seeds or metrics
            aren't found in them, or as for `study.outcomes.outcomes_of_runs`.
        TrackingError: if MLflow can't be reached.
        TypeError: if a choice has another name.
    """
    from study.outcomes import of_mlflow
    from study.tracking import experiment_runs

    return _imported(of_mlflow(experiment, experiment_runs(uri, experiment)), choices)


def import_hydra(folder: str | Path, file: str | Path, *, store: str | Path = STORE) -> FinishedRuns:
    """Import the finished jobs of a Hydra multirun as trials of a study of the same program.

    A job is imported if a trial's command has the same overrides and seed, and the trial has no result. If the store
    lacks the study, its file and code are stored, too.

    Args:
        folder: the folder of the multirun.
        file: the study file, which must have a `version`.
        store: the store's folder or URL.

    Returns:
        The number of new trials, and the reasons why jobs were left out.

    Raises:
        InputError: if the study file has mistakes or no version, or runs another program; if the multirun can't be
            read; if no job matches a trial; or if a newer package wrote the study's results.
        BusyError: if the study is running.
        StoreError: if the store can't be read or written.
    """
    from study.api.study import load
    from study.driver.sweeps import finished

    study = load(file, store=store)
    return finished.import_hydra(study.planned, Path(folder), study.where.store)


def import_optuna(
    storage: str, file: str | Path, *, optuna_study: str | None = None, store: str | Path = STORE
) -> FinishedRuns:
    """Import the completed trials of an Optuna study as trials of a study with the same parameters and seeds.

    If the store lacks the study, its file and code are stored, too.

    Args:
        storage: the URL of Optuna's database, or the path of a journal file.
        file: the study file, which must have a `version`.
        optuna_study: the name of Optuna's study, if the storage has several.
        store: the store's folder or URL.

    Returns:
        The number of new trials, and the reasons why trials of Optuna were left out.

    Raises:
        InputError: if the study file has mistakes; if the study has no version, is a search, or has other metrics; if
            Optuna's storage can't be read, or its URL holds a password; if no trial of Optuna matches a trial; or if a
            newer package wrote the study's results.
        BusyError: if the study is running.
        StoreError: if the store can't be read or written.
    """
    from study.api.study import load
    from study.driver.sweeps import finished

    study = load(file, store=store)
    return finished.import_optuna(study.planned, storage, optuna_study, study.where.store)


def _imported(runs: Runs, choices: dict[str, Any]) -> ImportedRuns:
    from study.outcomes import RunChoices, outcomes_of_runs

    return ImportedRuns(outcomes_of_runs(runs, RunChoices(**choices)))


class ImportedRuns:
    """Outcomes of runs that were trained elsewhere.

    Args:
        content: the outcomes, and the decisions made in reading them.
    """

    def __init__(self, content: RunOutcomes) -> None:
        self.content = content

    @property
    def notices(self) -> tuple[str, ...]:
        """Decisions made in reading the runs, one sentence each."""
        return self.content.notices

    def trials(self) -> pd.DataFrame:
        """Return one row per trial: seed, outcome, hyperparameters and metrics."""
        import pandas as pd

        return pd.DataFrame(self.content.table.to_pydict())

    def report(self) -> OutcomesReport:
        """Return the report of these trials, with one row for each combination of values of the columns `by`.

        Raises:
            InputError: if a vocabulary or a family of tasks can't be used.
        """
        from study.results.groups import assemble_group_report

        content = self.content
        return OutcomesReport(assemble_group_report(content.name, content.outcomes, named=list(content.metrics)))

    def write(self, file: str | Path) -> str:
        """Write the trials as a CSV, TSV or Parquet file, and return the command that reports them.

        Args:
            file: a path that ends in ``.csv``, ``.tsv`` or ``.parquet``; it must not exist.

        Raises:
            InputError: if the file exists already, or has another suffix.
            StudyError: if the file can't be written.
        """
        from study.outcomes import write_outcomes

        write_outcomes(self.content.table, Path(file))
        by = ["--by", ",".join(self.content.by)] if self.content.by else []
        metrics = [word for option in self.content.metric_options for word in ("--metric", option)]
        return shlex.join(["study", "report", str(file), *by, *metrics])

    def __repr__(self) -> str:
        return "\n".join(self.notices)

"""What was trained elsewhere: a study from a ZIP file, and runs from MLflow, wandb or a table."""

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
    """Import a study from a ZIP file that `Study.export` wrote; trials that the store has stay as they are.

    Args:
        file: the ZIP file.
        store: the folder of the studies' results, or its URL.

    Returns:
        How many trials are new, how many were there, and what else there is to know.

    Raises:
        InputError: if it isn't such a file, if it is damaged, or if the store has another study of that name.
        ConflictError: if the store has another result of one of its trials, by the same engine and kind of device.
        BusyError: if the store's study is running.
    """
    from study.results.import_export import import_export

    return import_export(Path(file), str(store))


def import_csv(file: str | Path, **choices: Any) -> ImportedRuns:
    """Take the runs of a table as outcomes: a text or Parquet file with one row a run, whatever its columns are called.

    Args:
        file: its path.
        choices: fields of `study.outcomes.RunChoices`: ``seed``, ``without_seeds``, ``by``, ``metrics``, ``repeats``,
            ``state_words``.

    Raises:
        InputError: if it can't be read, or nothing in it is a seed or a metric.
    """
    from study.outcomes import read_runs

    return _imported(read_runs(Path(file)), choices)


def import_wandb(file: str | Path, **choices: Any) -> ImportedRuns:
    """Take runs of wandb as outcomes: the CSV file that its table of runs is exported to.

    Args:
        file: its path.
        choices: those of `import_csv`.

    Raises:
        InputError: if it isn't such a file, or nothing in it is a seed or a metric.
    """
    from study.outcomes import read_runs

    return _imported(read_runs(Path(file), is_wandb=True), choices)


def import_mlflow(uri: str, experiment: str, **choices: Any) -> ImportedRuns:
    """Take the runs of an experiment in MLflow as outcomes, whoever wrote them; nothing is written there.

    Args:
        uri: MLflow's address.
        experiment: the experiment's name, or its id.
        choices: those of `import_csv`.

    Raises:
        InputError: if there is no such experiment, or nothing in its runs is a seed or a metric.
        TrackingError: if MLflow can't be reached.
    """
    from study.outcomes import of_mlflow
    from study.tracking import experiment_runs

    return _imported(of_mlflow(experiment, experiment_runs(uri, experiment)), choices)


def import_hydra(folder: str | Path, file: str | Path, *, store: str | Path = STORE) -> FinishedRuns:
    """Import the jobs of a multirun of Hydra as trials of a study whose command has their overrides.

    Args:
        folder: the folder of the multirun.
        file: the study file, which has a `version`.
        store: the folder of the studies' results, or its URL.

    Returns:
        How many trials are new, and why jobs were left out.

    Raises:
        InputError: if the study has no version or runs another program, or no job is one of its trials.
        BusyError: if the study is running.
    """
    from study.api.study import load
    from study.driver.sweeps import finished

    study = load(file, store=store)
    return finished.import_hydra(study.planned, Path(folder), study.where.store)


def import_optuna(
    storage: str, file: str | Path, *, optuna_study: str | None = None, store: str | Path = STORE
) -> FinishedRuns:
    """Import the completed trials of a study of Optuna as trials of a study with their parameters and seeds.

    Args:
        storage: the database's URL, or the path of a journal file.
        file: the study file, which has a `version`.
        optuna_study: the name of Optuna's study, if the storage has several.
        store: the folder of the studies' results, or its URL.

    Returns:
        How many trials are new, and why trials of Optuna's were left out.

    Raises:
        InputError: if the study has no version or other metrics, or no trial of Optuna's is one of its trials.
        BusyError: if the study is running.
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
        content: the outcomes, and what was decided about them.
    """

    def __init__(self, content: RunOutcomes) -> None:
        self.content = content

    @property
    def notices(self) -> tuple[str, ...]:
        """What was decided, a sentence each."""
        return self.content.notices

    def trials(self) -> pd.DataFrame:
        """Return one row a trial: its seed, its outcome, its hyperparameters and its metrics."""
        import pandas as pd

        return pd.DataFrame(self.content.table.to_pydict())

    def report(self) -> OutcomesReport:
        """Return the report of these trials, one row a group."""
        from study.results.groups import assemble_group_report

        content = self.content
        return OutcomesReport(assemble_group_report(content.name, content.outcomes, named=list(content.metrics)))

    def write(self, file: str | Path) -> str:
        """Write the trials as a CSV or Parquet file, and return the command that reports it.

        Args:
            file: a path that ends in ``.csv`` or ``.parquet``; nothing may be there.

        Raises:
            InputError: if there is such a file already.
        """
        from study.outcomes import write_outcomes

        write_outcomes(self.content.table, Path(file))
        by = ["--by", ",".join(self.content.by)] if self.content.by else []
        metrics = [word for option in self.content.metric_options for word in ("--metric", option)]
        return shlex.join(["study", "report", str(file), *by, *metrics])

    def __repr__(self) -> str:
        return "\n".join(self.notices)

"""A study: planned, run and read."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.api.notebook import Printout, display_figures_as_pictures, html_findings, make_console
from study.api.where import STORE, Where
from study.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from torch import Tensor

    from study.api.deletion import Deletion
    from study.console import Console
    from study.driver.repeat import Repetition
    from study.plan.plan import Plan
    from study.plugins.scripts import TrialScript
    from study.results.adoptions import Adoption
    from study.results.certificate import Certificate
    from study.results.claims import CheckedClaims
    from study.results.load import StudyResults
    from study.run import Ending
    from study.source import SourceCode
    from study.spec import Spec
    from study.store import Export, StudyStore
    from study.summaries.failures import Failure

_PUBLISHED = "published"


def load(
    file: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    *,
    store: str | Path = STORE,
    tracking_uri: str | None = None,
    yes: bool = False,
) -> Study:
    """Load a study from a file, a preset or a mapping.

    Args:
        file: a path, a preset's name, or a mapping with the keys of a study file. In a mapping, `train` may be a
            function, or a class with a method `fit`, including one defined in a notebook.
        overrides: values that replace those of the file, such as ``seeds=50`` or ``grid.hidden_size=[2,4]``.
        store: the store's folder or URL.
        tracking_uri: MLflow's address; None for a database in the store, ``off`` for none.
        yes: allow more than 100,000 trials.

    Returns:
        The study, to plan, run and read.

    Raises:
        InputError: if the file or preset doesn't exist or has mistakes (the message lists all with their lines), an
            override is invalid, a function under `train` can't be imported by other processes, or the study has more
            than 100,000 trials without `yes`.
        StoreError: if the study has own code, and the store's copies of its code can't be read.
        OSError: if `file` is a mapping, and the module of a notebook's function or the cache of code can't be written.

    Example:
        >>> load("demo")
        <Study demo: 400 trials in 20 cells>
        >>> load("demo", ["seeds=50"])
        <Study demo: 1,000 trials in 20 cells>
        >>> load({"study": "mine", "question": "?", "task": {"name": "simple"}, "models": ["NMU"], "seeds": 3})
        <Study mine: 3 trials in 1 cell>
    """
    from study.api.files import with_import_strings
    from study.spec import check_size, dump, load_spec, parse_overrides, parse_spec

    replaced, identify = parse_overrides(overrides), _identity_at(store)
    if isinstance(file, Mapping):
        with with_import_strings(file) as content:
            text = dump(content)
            spec = parse_spec(text, source="this study", folder=Path(), overrides=replaced, identify=identify)
    else:
        spec = load_spec(file, replaced, identify=identify)
    check_size(spec, yes=yes)
    return Study(spec.study, Where(str(store), tracking_uri), spec)


def _identity_at(store: str | Path) -> Callable[[str, SourceCode], str]:
    """Return a function that identifies own code by its copies in the store; it reads the store only when called."""

    def identify(study: str, code: SourceCode) -> str:
        from study.results.stored_code import code_identity

        return code_identity(store, study, code)

    return identify


def open_study(name: str, *, store: str | Path = STORE, tracking_uri: str | None = None) -> Study:
    """Open a stored study, to read its results.

    Args:
        name: the study's name.
        store: the store's folder or URL.
        tracking_uri: MLflow's address; None for a database in the store, ``off`` for none.

    Returns:
        The study, to read; it can't be planned or run.

    Raises:
        UnknownStudyError: if the store or the study doesn't exist.
        InputError: if the name can't be a study's, or the store's address isn't valid.
        StoreError: if the store can't be read.
    """
    from study.store import Store

    Store(str(store), read_only=True).open(name)
    return Study(name, Where(str(store), tracking_uri))


class Study:
    """A study, loaded from a file by `load` or opened from a store by `open_study`.

    Results are read from the store on each access. Methods that read them raise `UnknownStudyError` if the store lacks
    the study, and `StoreError` if the store can't be read or, where a method stores something, written.

    Args:
        name: the study's name.
        where: addresses of the store and of MLflow.
        spec: the content of its file; None if only its results are to be read.
    """

    def __init__(self, name: str, where: Where, spec: Spec | None = None) -> None:
        self.name, self.where, self._spec = name, where, spec

    # --- before training ---------------------------------------------------------------------------------

    @cached_property
    def planned(self) -> Plan:
        """The plan of its file: cells, seeds, trials.

        Raises:
            InputError: if the study was opened, not loaded from a file, or as for `study.plan.plan.make_plan`.
        """
        from study.plan.plan import make_plan

        if self._spec is None:
            raise InputError(f"study {self.name!r} was opened to be read; to plan or run it, use study.load")
        return make_plan(self._spec)

    @property
    def size(self) -> str:
        """Its numbers of trials and cells, in words.

        Raises:
            InputError: as for `planned`.
        """
        return self.planned.size

    def plan(self, *, quick: bool = False, difference: float | None = None, **options: Any) -> Printout:
        """Describe the planned trials, the progress so far and the time that remains.

        Nothing is written to the store.

        Args:
            quick: skip calibration (engines, packs, memory, time) and the power of comparisons.
            difference: a difference of success rates in (0, 1], for which the required number of seeds is computed.
            options: fields of `study.driver.options.Options`, such as ``device="cuda"`` or ``cpus=4``.

        Returns:
            The description, to print; its attribute `data` has the same content as data.

        Raises:
            InputError: if `difference` isn't in (0, 1], or is combined with `quick` or a search; if an option doesn't
                exist or can't have its value; if no engine trains a cell, the device doesn't exist, or a trial fails in
                the calibration; or as for `planned`.
            StudyError: if the store, or the study's results in it, can't be read.
            OSError: if the cache of code or data can't be written in the calibration.
            Exception: the error of an engine in the calibration.

        Example:
            >>> print(load("demo", store="no-store").plan(quick=True))  # doctest: +ELLIPSIS
            demo: How do hidden size and the sparsity schedule change how often the NMU learns to multiply?
            20 cells × 20 seeds = 400 trials, 0 done already
            ...
        """
        from study.driver import outline
        from study.driver.options import options_of

        plan, store = self.planned, self.where.store
        where = options_of(store, None, options)
        if difference is not None and (quick or plan.spec.seed_design.is_search):
            raise InputError("difference can't be combined with quick or with a search: leave it out")
        if difference is not None and not 0 < difference <= 1:
            raise InputError(f"difference must be in (0, 1], but got {difference:g}")
        if not plan.spec.seed_design.is_search and not quick:
            from study.driver.estimate import preview  # imported late: it takes long to import

            estimate = preview(plan, where, difference)
            return Printout(estimate, estimate.as_json)
        if quick:
            return Printout(outline.quick(plan, store), lambda: outline.as_json(plan, store))
        from study.driver.estimate import preview_search

        return Printout(preview_search(plan, where), lambda: outline.as_json(plan, store))

    # --- training ----------------------------------------------------------------------------------------

    def run(self, **options: Any) -> Study:
        """Train the missing trials, publish them and write the report; continue a search.

        After an interruption, the next run continues from checkpoints.
        Failed trials don't raise an error; `failures` has their reasons.

        Args:
            options: fields of `study.driver.options.Options`, such as ``cpus=4`` or ``local=True``, and
                ``optuna_storage``, the database of Optuna's dashboard.

        Returns:
            This study, with results to read.

        Raises:
            KeyboardInterrupt: if Ctrl-C or SIGTERM stopped it; checkpoints are kept.
            InputError: if no engine trains a cell, the device doesn't exist, an option doesn't exist or can't have its
                value, the user's settings have mistakes, a newer package wrote one of the study's files, the record of
                a search belongs to another one, or as for `planned`.
            BusyError: if another process runs the study, or takes it over.
            ClusterError: if Ray is needed, but can't be started or has no room.
            StoreError: if the store can't be read or written, or stays away too long.
            StudyError: if the report can't be written.
            OSError: if the cache of code can't be written, or a process can't be started.
        """
        from study.run import Ending

        console = make_console()
        ending = self.train(console, **options)
        if ending is Ending.INTERRUPTED:
            raise KeyboardInterrupt(f"{self.name} was stopped; run it again to go on")
        if ending is Ending.REPORT_FAILED:
            console.print(
                "all results are stored, but parts of the report failed: report() writes it again", style="red"
            )
        return self

    def train(self, console: Console, *, optuna_storage: str | None = None, **options: Any) -> Ending:
        """Train, publish and report as `run` does, and return the ending.

        Args:
            console: the console for progress and the table.
            optuna_storage: for a search: the database of Optuna's dashboard, or ``off``; None for one in the store.
            options: fields of `study.driver.options.Options`.

        Raises:
            InputError: as for `run`.
            ClusterError: if Ray is needed, but can't be started or has no room.
            BusyError: if another process runs the study, or takes it over.
            StoreError: if the store can't be read or written, or stays away too long.
            StudyError: if the report can't be written.
            OSError: if the cache of code can't be written, or a process can't be started.
        """
        from study.driver.options import options_of
        from study.run import run, until_sure

        plan, extend = self.planned, until_sure
        if plan.spec.seed_design.is_search:
            from study.search import Searching

            def database(root: Path) -> str:
                return f"sqlite:///{root / self.name / 'optuna.db'}"

            extend = Searching(self.where.view("--optuna-storage", optuna_storage, database))
        uri = self.where.tracking
        if uri is None and self.where.tracking_uri != "off":
            console.print(
                f"nothing is published to MLflow: the store at {self.where.shown_store} has no database; "
                "name a server with --tracking-uri",
                style="yellow",
            )
        return run(plan, options_of(self.where.store, uri, options), console, extend)

    # --- results -----------------------------------------------------------------------------------------

    def results(self, compare: str = _PUBLISHED, *, from_mlflow: bool = False) -> StudyResults:
        """Read the results so far.

        Args:
            compare: ``published``, or the name of a stored study to compare with.
            from_mlflow: read the results from MLflow instead of the store.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if the study to compare with has no results, no cell with a counterpart, several such cells, or
                no measure in common; if a stored file is invalid, a newer package wrote one, or the record of a search
                belongs to another one; or, with `from_mlflow`, if no MLflow address is set.
            TrackingError: with `from_mlflow`, if MLflow can't be reached or doesn't know the study.
            StoreError: if the store can't be read.
        """
        from study.results.load import load_results

        uri = self.where.needed_tracking("--from mlflow") if from_mlflow else None
        return load_results(self.name, self.where.store, tracking_uri=uri, compare=compare)

    @property
    def finding(self) -> str:
        """The study's finding, in one sentence; read from the store.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if its stored file is invalid, or a newer package wrote one of its files.
            StoreError: if the store can't be read.
        """
        return self.results().headline

    def check(self) -> CheckedClaims:
        """Judge the study's claims by the stored results.

        A loaded study is judged by the claims of its file, an opened study by the claims of its last run.

        Returns:
            The claims, each with its verdict.

        Raises:
            InputError: if the study has no claims, its stored file is invalid, or a newer package wrote one of its
                files.
            UnknownStudyError: if the store has no such study.
            StoreError: if the store can't be read.
        """
        from study.results.claims import check_claims
        from study.results.stored_plan import stored_plan
        from study.store import Store

        if self._spec is not None:
            return check_claims(self.planned, self.where.store)
        return check_claims(stored_plan(Store(self.where.store, read_only=True).open(self.name)), self.where.store)

    def failures(self) -> Sequence[Failure]:
        """Return the reasons of failed trials, the most frequent first; empty if none failed.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if its stored file is invalid, or a newer package wrote one of its files.
            StoreError: if the store can't be read.
        """
        return self.results().failures

    def trials(self) -> pd.DataFrame:
        """Return one row per trial with a result: `study.api.frames.TRIAL_COLUMNS`, hyperparameters and metrics.

        Columns without any value are left out, except ids, seed, task, model and outcome. Only planned trials are
        included; once a search is over, these are the fresh trials of its confirmed candidates.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if its stored file is invalid, or a newer package wrote one of its files.
            StoreError: if the store can't be read.
        """
        from study.api import frames

        results = self.results()
        return frames.trials(results.table, results.plan.labels)

    def cells(self) -> pd.DataFrame:
        """Return the rows of cells.csv, one per cell: hyperparameters, counts, rates and metrics with intervals.

        Once a search is over, the cells are its confirmed candidates with their fresh trials.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if its stored file is invalid, or a newer package wrote one of its files.
            StoreError: if the store can't be read.
        """
        from study.api import frames
        from study.reports import cells_rows

        results = self.results()
        return frames.cells_frame(cells_rows(results.summaries, results.plan.labels, results.rows.named_metrics))

    def curves(self, trials: Collection[str] | None = None, metrics: Collection[str] | None = None) -> pd.DataFrame:
        """Return one row per evaluation of a trial: its iteration and metrics; only for rows of `Study.trials`.

        Args:
            trials: ids of trials; None for all, possibly many millions of rows. Unknown ids are ignored.
            metrics: names of the metrics to return; None for all. Unknown names are ignored.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if its stored file is invalid, or a newer package wrote one of its files.
            StoreError: if the store can't be read.
        """
        from study.api import frames

        results = self.results()
        return frames.curves(results.table, results.folder.read_curves(trials), metrics)

    def files(self, trial: str, into: str | Path | None = None) -> dict[str, Path]:
        """Return the paths of a trial's files, including its log, by name; the trial may still run.

        Args:
            trial: its id, or the first letters of it.
            into: the folder to copy the files to, replacing files of these names; None to return their paths in the
                store, which must be a folder.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if no trial or more than one has that id, the store isn't a folder and `into` is None, a file
                has a name that isn't valid on every system, or a newer package wrote one of the study's files.
            StoreError: if the store can't be read.
            OSError: if a file can't be written to `into`.
        """
        from study.results.trial_files import local_files, trial_named
        from study.store import Store

        folder = Store(self.where.store, read_only=True).open(self.name)
        return local_files(folder, trial_named(folder, trial), None if into is None else Path(into))

    def weights(self, trial: str) -> dict[str, Tensor]:
        """Return a trial's weights at the end of its training, as a state_dict.

        Args:
            trial: its id, or the first letters of it.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if no trial or more than one has that id, its weights aren't stored, or a stored file is
                invalid or from a newer package.
            StoreError: if the store can't be read.
        """
        import torch

        from study.arrow import table_weights
        from study.results.trials import trial_id_of

        results = self.results()
        trial_id = trial_id_of(results.table, trial)
        stored = table_weights(results.folder.read_weights({trial_id}))
        if not stored:
            raise InputError(f"trial {trial} has no stored weights; weights of failed trials are never stored")
        return {name: torch.from_numpy(array) for name, array in stored[0].arrays.items()}

    def repeat(self, trial: str, *, engine: str | None = None, device: str | None = None) -> Repetition:
        """Train one stored trial again, alone, and compare it bit for bit; nothing is written.

        Own code is that of the study's file or, if the study was opened, that of the working folder.

        Args:
            trial: its id, or the first letters of it.
            engine: the engine's name; None for the engine that trained it.
            device: ``cpu`` or ``cuda``; None for the device that it was trained on.

        Returns:
            The comparison: ``is_same``, the differences in results, and those in engine, device and versions.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if the trial doesn't exist, failed, was stopped early or can't be trained here, its code has
                changed, or a stored file is invalid or from a newer package.
            StoreError: if the store can't be read.
            OSError: if the copy of the code or the data can't be written.
            Exception: the error of a packed task or model.
        """
        from study.driver.repeat import repeat
        from study.results.trials import trial_id_of

        results = self.results()
        trial_id = trial_id_of(results.table, trial)
        return next(repeat(self._trainable(results), self.where.store, [trial_id], engine=engine, device=device))

    def script(self, trial: str) -> TrialScript:
        """Return a stored trial as one plain Python file that trains it again with torch alone.

        Args:
            trial: its id, or the first letters of it.

        Returns:
            The script: `text` is its text, and `write` writes it to a file.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if the trial doesn't exist, failed, was stopped early or has no learning curve, no scripts exist
                for its task, or a stored file is invalid or from a newer package.
            StoreError: if the store can't be read.
        """
        from study.driver.repeat import script
        from study.results.trials import trial_id_of

        results = self.results()
        return script(self.name, results.folder, results.table, trial_id_of(results.table, trial))

    def verify(
        self, share: float = 0.01, notify: Callable[[Repetition], None] = lambda repetition: None
    ) -> Certificate:
        """Train a random sample of the stored trials again, each alone, and store a certificate for the report.

        If a trial of a function differs, it and another one are trained in both orders, to find the cause.

        Args:
            share: the share to train of the trials that neither failed nor were stopped early, in (0, 1]; at least one
                is trained.
            notify: called with the comparison of each trial.

        Returns:
            The certificate.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if `share` isn't in (0, 1], there is nothing to compare with, a trial can't be trained here, or
                a stored file is invalid or from a newer package.
            BusyError: if the study is running when all of them are trained; no certificate is stored then.
            StoreError: if the store can't be read or written.
            OSError: if the copy of the code or the data can't be written.
            Exception: the error of a packed task or model.
        """
        from study.driver.repeat import verify

        if not 0 < share <= 1:
            raise InputError(f"share must be in (0, 1], but got {share:g}")
        return verify(self._trainable(self.results()), self.where.store, share, notify=notify)

    def _trainable(self, results: StudyResults) -> Plan:
        """Return a plan with the code that trains the stored trials.

        Without own code, it is the stored plan, unless a file with a fixed number of seeds was loaded. With own code,
        it is the plan of the loaded file, or of the stored one with the code in the working folder.
        """
        from study.plan.plan import make_plan
        from study.results.load import extended_plan

        stored = results.plan
        if stored.spec.family.own_code is None and (self._spec is None or stored.may_extend):
            return stored
        plan = make_plan(self._with_own_code(results.folder)) if self._spec is None else self.planned
        return extended_plan(plan, results.folder, results.folder.read_results()) if plan.may_extend else plan

    def _with_own_code(self, folder: StudyStore) -> Spec:
        """Parse the stored file, with the own code of the working folder."""
        from study.spec import parse_spec

        identify = _identity_at(self.where.store)
        return parse_spec(folder.read_spec(), source=folder.spec_where, folder=Path(), identify=identify)

    def adopt(self, *, undo: bool = False) -> Adoption:
        """Declare the results of earlier code valid for the current code; no result is trained or rewritten.

        The current code is that of the study's file or, if the study was opened, that of the working folder. The store
        records who declared it, and when, and gets the current code and study file.

        Args:
            undo: revoke the declaration for the current code.

        Returns:
            The log entry now in force; with `undo`, the revoked entry.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if the study has no own code or sets `version`; if its code hasn't changed since the results
                were made, or they are declared valid already; if its code can't be read; if a stored file is invalid,
                or a newer package wrote one; or, with `undo`, if no declaration for its code is in force.
            BusyError: if the study is running.
            StoreError: if the store can't be read or written.
        """
        from study.results.code_changes import adopt_results, revoke_adoption
        from study.results.stored_plan import keep_code
        from study.spec import parse_spec
        from study.store import Store

        folder = Store(self.where.store).open(self.name)
        with folder.lock():
            spec = self._spec or self._with_own_code(folder)
            entry = (revoke_adoption if undo else adopt_results)(spec, folder)
            again = parse_spec(
                spec.text,
                source=str(spec.source_file or folder.spec_where),
                folder=spec.source_folder,
                identify=_identity_at(self.where.store),
            )
            keep_code(again, folder)
            folder.write_spec(again.text)
        return entry

    def tags(self) -> tuple[str, ...]:
        """Return the study's tags in the store: those of its file and those added by `tag`.

        Raises:
            UnknownStudyError: if the store has no such study.
            StoreError: if the store can't be read.
        """
        return self.tag()

    def tag(self, *add: str, remove: Collection[str] = ()) -> tuple[str, ...]:
        """Add tags to the stored study, and remove others; trials, results and the study file don't change.

        Args:
            add: tags to add.
            remove: tags to remove, including those of its file.

        Returns:
            The study's tags, sorted.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if a tag isn't valid, is both added and removed, or is removed and doesn't exist.
            StoreError: if the store can't be read or written.
        """
        from study.results.tags import change_tags
        from study.store import Store

        return change_tags(Store(self.where.store).open(self.name), add, remove)

    # --- tables, figures and reports ----------------------------------------------------------------------

    def table(self, results: StudyResults | None = None) -> Printout:
        """Return the table of the current results, with the finding.

        Printing it raises InputError if no trial is done yet; its `data` can be read nevertheless.

        Args:
            results: the results to show; None to read them.

        Raises:
            UnknownStudyError: if the results must be read, and the store has no such study.
            InputError: if they must be read, and a stored file is invalid, or a newer package wrote one.
            StoreError: if they must be read, and the store can't be read.
        """
        from study.results.study import print_results, results_as_json

        read = results or self.results()
        return Printout(lambda console: print_results(read, console), lambda: results_as_json(read))

    def figure(self, name: str = "figure") -> Figure:
        """Draw a figure of the report.

        Args:
            name: one of `study.reports.figures.names.NAMES`, such as ``figure``, ``survival`` or ``learning-curves``.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if the name isn't a figure's, the study has no data for the figure, or a stored file is invalid
                or from a newer package.
            StoreError: if the store can't be read.
        """
        from study.reports.figures.names import NAMES

        if name not in NAMES:
            raise InputError(f"a figure must be one of {', '.join(NAMES)}, but got {name!r}")
        from study.reports.figures.all import plot_all
        from study.results.study import assemble_report

        display_figures_as_pictures()
        figures = {drawn.name: drawn.figure for drawn in plot_all(assemble_report(self.results()))}
        if name not in figures:
            raise InputError(f"study {self.name!r} has nothing for {name!r}; it has {', '.join(figures)}")
        return figures[name]

    def report(
        self,
        folder: str | Path | None = None,
        formats: Collection[str] = (),
        *,
        compare: str = _PUBLISHED,
        trial: str | None = None,
        columns: Sequence[str] = (),
        results: StudyResults | None = None,
    ) -> list[Path]:
        """Write the report: tables, figures and one HTML page.

        Args:
            folder: the folder to write to; None for `report` in the study's folder, or for NAME-report in the working
                folder if the store isn't a folder.
            formats: any of html, md, csv, parquet, yaml, latex, png, svg and pdf; empty for all but
                pdf.
            compare: ``published``, or the name of a stored study to compare with; unused if `results` is given.
            trial: the trial whose weights are drawn; None for a typical solved one.
            columns: statistics for cells.tex and report.md, by their names in cells.csv, such as
                ``["success_rate", "solved_at_mean"]``; empty for the default ones.
            results: the results to report; None to read them.

        Returns:
            The paths of the written files.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if a file that isn't part of a report would be overwritten, a statistic or trial doesn't exist,
                the trial's weights aren't stored, or a search has no suggestion yet; or as for `results`.
            ReportError: if a part of the report failed; all others are written.
            StudyError: if the store can't be read, or the folder can't be written.
        """
        from study.reports import USUAL
        from study.results.study import write_study_report

        into = None if folder is None else Path(folder)
        uri = self.where.tracking
        read = results or self.results(compare)
        return write_study_report(read, into, formats or USUAL, tracking_uri=uri, trial=trial, columns=columns)

    def compare(self, other: str | Study) -> pd.DataFrame:
        """Compare the study's cells with those of another stored study.

        Args:
            other: the other study, or its name.

        Returns:
            The rows of comparison.csv: one for each cell of this study that has a counterpart in the other.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if the other study has no results, or can't be compared with this one (`results`), or a stored
                file is invalid or from a newer package.
            StoreError: if the store can't be read.
        """
        import pandas as pd

        from study.reports.files import comparison_rows

        results = self.results(other if isinstance(other, str) else other.name)
        return pd.DataFrame(comparison_rows(results.rows, results.against))

    def sync(self) -> int:
        """Write the report, and publish it with the trials that MLflow lacks or has with other values.

        Returns:
            The number of published trials.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if no MLflow address is set, the study has no results, or a stored file is invalid or from a
                newer package.
            TrackingError: if MLflow can't be reached, or refuses a request.
            ReportError: if a part of the report failed; everything else is published.
            StudyError: if the store can't be read, or the report can't be written.
        """
        from study.results.load import require_results
        from study.results.study import sync

        uri = self.where.needed_tracking("sync")
        results = self.results()
        require_results(results)
        return sync(results, uri)

    # --- deletion and export -----------------------------------------------------------------------------

    def delete(self) -> Deletion:
        """Delete the study from the store and from MLflow without confirmation, and return the deleted content.

        Raises:
            UnknownStudyError: if neither the store nor MLflow has the study.
            InputError: if the study's folder is a link, or it or the experiment in MLflow has content of others.
            BusyError: if the study is running.
            TrackingError: if MLflow can't be reached or refuses; the store is untouched.
            StoreError: if the store can't be read, or a file can't be removed.
        """
        from study.api.deletion import deletion_of

        deletion = deletion_of(self.name, self.where)
        deletion.carry_out()
        return deletion

    def export(self, file: str | Path) -> Export:
        """Write the study into one ZIP file for `import_study`; it may be running.

        Args:
            file: the file's path; it must not exist.

        Returns:
            The content of the file; its `notices` name damaged files that were left out.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if the file exists already, its folder doesn't, a newer package wrote a file of the study, or a
                file of a trial has a name that isn't valid on every system.
            StoreError: if the store can't be read, or the file can't be written.
        """
        from study.store import Store, write_export

        return write_export(Store(self.where.store, read_only=True).open(self.name), Path(file))

    def __repr__(self) -> str:
        content = f"in {self.where.shown_store}" if self._spec is None else self.size
        return f"<Study {self.name}: {content}>"

    def _repr_html_(self) -> str:
        from study.errors import StudyError
        from study.reports import failure_lines

        try:
            results = self.results()
        except StudyError:  # nothing is stored yet
            return f"<p>{html.escape(repr(self))}</p>"
        shown = html_findings(results.findings, results.plan.spec.question, results.parts)
        failures = html.escape("\n".join(failure_lines(results.failures, results.rows, self.name)))
        return f"{shown}<pre>{failures}</pre>" if failures else shown

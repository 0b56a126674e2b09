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
    """Load a study: a file, a preset, or what would stand in a file.

    Args:
        file: a path, a preset's name, or a mapping with the keys of a study file; there, `train` may be a function, or
            a class with a method `fit`, also one of a notebook.
        overrides: values that stand in for those of the file, such as ``seeds=50`` or ``grid.hidden_size=[2,4]``.
        store: the folder of the studies' results, or its URL.
        tracking_uri: MLflow's address; None for a database in the store, ``off`` for none.
        yes: allow more than 100,000 trials.

    Raises:
        InputError: if there is no such file or preset, or it has mistakes; the message has each with its line.

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
    """Return what identifies own code by the copies of a store, which is read only for a study that has own code."""

    def identify(study: str, code: SourceCode) -> str:
        from study.results.stored_code import code_identity

        return code_identity(store, study, code)

    return identify


def open_study(name: str, *, store: str | Path = STORE, tracking_uri: str | None = None) -> Study:
    """Open a study of a store, to read it.

    Args:
        name: the study's name.
        store: the folder of the studies' results, or its URL.
        tracking_uri: MLflow's address; None for a database in the store, ``off`` for none.

    Raises:
        UnknownStudyError: if the store has no such study.
    """
    from study.store import Store

    Store(str(store), read_only=True).open(name)
    return Study(name, Where(str(store), tracking_uri))


class Study:
    """A study, as a file has it or as a store holds it; `load` and `open_study` make one.

    Results are read from the store whenever they are asked for.

    Args:
        name: its name.
        where: the store, and MLflow.
        spec: what its file says; None if only its results are to be read.
    """

    def __init__(self, name: str, where: Where, spec: Spec | None = None) -> None:
        self.name, self.where, self._spec = name, where, spec

    # --- before training ---------------------------------------------------------------------------------

    @cached_property
    def planned(self) -> Plan:
        """What its file asks for: cells, seeds, trials.

        Raises:
            InputError: if it was opened, and not loaded from a file.
        """
        from study.plan.plan import make_plan

        if self._spec is None:
            raise InputError(f"study {self.name!r} was opened to be read; study.load its file to plan or run it")
        return make_plan(self._spec)

    @property
    def size(self) -> str:
        """How many trials it asks for, in words."""
        return self.planned.size

    def plan(self, *, quick: bool = False, difference: float | None = None, **options: Any) -> Printout:
        """Describe what it asks for, what is done, and how long the rest takes; nothing is written.

        Args:
            quick: leave out what is measured: engines, packs, memory and time; and what can be told apart.
            difference: of success rates, to say how many seeds it takes; in (0, 1].
            options: fields of `study.driver.options.Options`, such as ``device="cuda"`` or ``cpus=4``.

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
        if difference is not None and (quick or plan.spec.seed_design.is_search or not 0 < difference <= 1):
            raise InputError(
                f"a difference must be in (0, 1], and goes neither with quick nor with a search, but got {difference:g}"
            )
        if not plan.spec.seed_design.is_search and not quick:
            from study.driver.estimate import preview  # only here: it takes long to import

            estimate = preview(plan, where, difference)
            return Printout(estimate, estimate.as_json)
        if quick:
            return Printout(outline.quick(plan, store), lambda: outline.as_json(plan, store))
        from study.driver.estimate import preview_search

        return Printout(preview_search(plan, where), lambda: outline.as_json(plan, store))

    # --- training ----------------------------------------------------------------------------------------

    def run(self, **options: Any) -> Study:
        """Train what is missing, publish it and write the report; a search is continued.

        Run again, it goes on where it stopped.

        Args:
            options: fields of `study.driver.options.Options`, such as ``cpus=4`` or ``local=True``, and
                ``optuna_storage``, the database of Optuna's dashboard.

        Returns:
            This study, whose results can be read now.

        Raises:
            KeyboardInterrupt: if Ctrl-C or SIGTERM has stopped it; checkpoints are kept.
            InputError: if no engine trains a cell.
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
        """Train what is missing, publish it and write the report, as `run` does, and return how that ended.

        Args:
            console: where progress and the table are shown.
            optuna_storage: for a search: the database of Optuna's dashboard, or ``off``; None for one in the store.
            options: fields of `study.driver.options.Options`.
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
                "--tracking-uri names a server",
                style="yellow",
            )
        return run(plan, options_of(self.where.store, uri, options), console, extend)

    # --- results -----------------------------------------------------------------------------------------

    def results(self, compare: str = _PUBLISHED, *, from_mlflow: bool = False) -> StudyResults:
        """Read its results so far.

        Args:
            compare: ``published``, or a study of the store to compare with.
            from_mlflow: read the results from MLflow instead of the store.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if there is nothing to compare.
        """
        from study.results.load import load_results

        uri = self.where.needed_tracking("--from mlflow") if from_mlflow else None
        return load_results(self.name, self.where.store, tracking_uri=uri, compare=compare)

    @property
    def finding(self) -> str:
        """What the study finds, in a sentence."""
        return self.results().headline

    def check(self) -> CheckedClaims:
        """Judge its claims by the stored results: as its file has them, or as they were when it ran, if it was opened.

        Raises:
            InputError: if it has no claims.
            UnknownStudyError: if the store has no such study.
        """
        from study.results.claims import check_claims
        from study.results.stored_plan import stored_plan
        from study.store import Store

        if self._spec is not None:
            return check_claims(self.planned, self.where.store)
        return check_claims(stored_plan(Store(self.where.store, read_only=True).open(self.name)), self.where.store)

    def failures(self) -> Sequence[Failure]:
        """Return the reasons for which trials failed, the most frequent first; empty if none failed."""
        return self.results().failures

    def trials(self) -> pd.DataFrame:
        """Return one row a trial that has a result: `study.api.frames.TRIAL_COLUMNS`, what it is, and its metrics."""
        from study.api import frames

        results = self.results()
        return frames.trials(results.table, results.plan.labels)

    def cells(self) -> pd.DataFrame:
        """Return one row a cell: what it is, counts, rates and metrics with their intervals, as cells.csv has them."""
        from study.api import frames
        from study.reports import cells_rows

        results = self.results()
        return frames.cells_frame(cells_rows(results.summaries, results.plan.labels, results.rows.named_metrics))

    def curves(self, trials: Collection[str] | None = None, metrics: Collection[str] | None = None) -> pd.DataFrame:
        """Return one row an evaluation of a trial: its iteration, and the metrics then.

        Args:
            trials: ids of trials; None for all, which may be many millions of rows.
            metrics: those to return; None for all.
        """
        from study.api import frames

        results = self.results()
        return frames.curves(results.table, results.folder.read_curves(trials), metrics)

    def files(self, trial: str, into: str | Path | None = None) -> dict[str, Path]:
        """Return the paths of what a trial wrote and printed, by name; it may still run.

        Args:
            trial: its id, or the first letters of it.
            into: the folder to copy the files to; None to name them where they are, which must be a folder.

        Raises:
            InputError: if no trial or more than one has that id, or the store isn't a folder and `into` is None.
        """
        from study.results.trial_files import local_files, trial_named
        from study.store import Store

        folder = Store(self.where.store, read_only=True).open(self.name)
        return local_files(folder, trial_named(folder, trial), None if into is None else Path(into))

    def weights(self, trial: str) -> dict[str, Tensor]:
        """Return the weights of a trial when its training ended, as a state_dict.

        Args:
            trial: its id, or the first letters of it.

        Raises:
            InputError: if no trial or more than one has that id, or its weights aren't stored.
        """
        import torch

        from study.arrow import table_weights
        from study.results.trials import trial_id_of

        results = self.results()
        trial_id = trial_id_of(results.table, trial)
        stored = table_weights(results.folder.read_weights({trial_id}))
        if not stored:
            raise InputError(f"trial {trial}: its weights aren't in the store; those of failed trials never are")
        return {name: torch.from_numpy(array) for name, array in stored[0].arrays.items()}

    def repeat(self, trial: str, *, engine: str | None = None, device: str | None = None) -> Repetition:
        """Train one stored trial again, by itself, and compare it bit for bit; nothing is written.

        Code of one's own is that of the study's file, or, if the study was opened, that of the working folder.

        Args:
            trial: its id, or the first letters of it.
            engine: the engine's name; None for that which trained it.
            device: ``cpu`` or ``cuda``; None for that on which it was trained.

        Returns:
            Whether it is the same, and if not, in what it differs and what was different when it was stored.

        Raises:
            InputError: if there is no such trial, it failed, or its code isn't what it was.
        """
        from study.driver.repeat import repeat
        from study.results.trials import trial_id_of

        results = self.results()
        trial_id = trial_id_of(results.table, trial)
        return next(repeat(self._trainable(results), self.where.store, [trial_id], engine=engine, device=device))

    def script(self, trial: str) -> TrialScript:
        """Write one stored trial as one plain Python file, which trains it again with torch alone.

        Args:
            trial: its id, or the first letters of it.

        Returns:
            The file's `text`; `write` writes it.

        Raises:
            InputError: if there is no such trial, it failed, or its task isn't one of those that come along for units.
        """
        from study.driver.repeat import script
        from study.results.trials import trial_id_of

        results = self.results()
        return script(self.name, results.folder, results.table, trial_id_of(results.table, trial))

    def verify(
        self, share: float = 0.01, notify: Callable[[Repetition], None] = lambda repetition: None
    ) -> Certificate:
        """Train a random sample of the stored trials again, each by itself, and keep a certificate for the report.

        Args:
            share: of the trials, in (0, 1]; at least one is trained.
            notify: called after each.

        Raises:
            InputError: if there is nothing to compare with, or a trial can't be trained here.
            BusyError: if the study is running.
        """
        from study.driver.repeat import verify

        if not 0 < share <= 1:
            raise InputError(f"share must be in (0, 1], but got {share:g}")
        return verify(self._trainable(self.results()), self.where.store, share, notify=notify)

    def _trainable(self, results: StudyResults) -> Plan:
        """Return the plan of what is stored, with the code that trains it."""
        from study.plan.plan import make_plan
        from study.results.load import extended_plan

        stored = results.plan
        if stored.spec.family.own_code is None and (self._spec is None or stored.may_extend):
            return stored
        plan = make_plan(self._with_own_code(results.folder)) if self._spec is None else self.planned
        return extended_plan(plan, results.folder, results.folder.read_results()) if plan.may_extend else plan

    def _with_own_code(self, folder: StudyStore) -> Spec:
        """Parse its stored file, with the own code that lies in the working folder."""
        from study.spec import parse_spec

        identify = _identity_at(self.where.store)
        return parse_spec(folder.read_spec(), source=folder.spec_where, folder=Path(), identify=identify)

    def adopt(self, *, undo: bool = False) -> Adoption:
        """Declare the results of earlier code valid for the code as it is now; nothing is trained or rewritten.

        The code is that of the study's file, or, if the study was opened, that of the working folder. The store keeps
        who declared it, and when.

        Args:
            undo: revoke what was declared for the code as it is now.

        Returns:
            The entry of the log that holds now, or, with `undo`, that which held.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if it has no own code, or the code hasn't changed since its results were made.
            BusyError: if it is running.
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
        """Return its tags in the store: those of its file and those that `tag` added."""
        return self.tag()

    def tag(self, *add: str, remove: Collection[str] = ()) -> tuple[str, ...]:
        """Add tags to the stored study, and remove some; no trial, result or study file changes.

        Args:
            add: tags to add.
            remove: tags to remove, also those of its file.

        Returns:
            Its tags.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if one can't be a tag, or isn't there to be removed.
        """
        from study.results.tags import change_tags
        from study.store import Store

        return change_tags(Store(self.where.store).open(self.name), add, remove)

    # --- what people look at ------------------------------------------------------------------------------

    def table(self, results: StudyResults | None = None) -> Printout:
        """Return the table of its results as they now stand, with the finding.

        Args:
            results: those to show; None to read them.
        """
        from study.results.study import print_results, results_as_json

        read = results or self.results()
        return Printout(lambda console: print_results(read, console), lambda: results_as_json(read))

    def figure(self, name: str = "figure") -> Figure:
        """Draw a figure of the report.

        Args:
            name: one of `study.reports.figures.names.NAMES`, such as ``figure``, ``survival`` or ``learning-curves``.

        Raises:
            InputError: if there is no such figure, or the study has nothing for it.
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
        """Write the report: tables, figures, one HTML page.

        Args:
            folder: where; None for `report` in the study's folder.
            formats: of html, md, csv, parquet, yaml, latex, png, svg and pdf; none for all but pdf.
            compare: ``published``, or a study of the store to compare with.
            trial: the trial whose weights are drawn; None for a typical solved one.
            columns: the statistics of cells.tex and report.md, by their names in cells.csv, such as
                ``["success_rate", "solved_at_mean"]``; none for the usual ones.
            results: those to report; None to read them.

        Returns:
            The files written.
        """
        from study.reports import USUAL
        from study.results.study import write_study_report

        into = None if folder is None else Path(folder)
        uri = self.where.tracking
        read = results or self.results(compare)
        return write_study_report(read, into, formats or USUAL, tracking_uri=uri, trial=trial, columns=columns)

    def compare(self, other: str | Study) -> pd.DataFrame:
        """Compare its cells with those of another study of the store.

        Args:
            other: the study, or its name.

        Returns:
            One row a cell that both have: comparison.csv as a DataFrame.

        Raises:
            InputError: if no cell of either has a counterpart in the other.
        """
        import pandas as pd

        from study.reports.files import comparison_rows

        results = self.results(other if isinstance(other, str) else other.name)
        return pd.DataFrame(comparison_rows(results.rows, results.against))

    def sync(self) -> int:
        """Publish to MLflow the trials that it lacks, and the report; return how many those were."""
        from study.results.load import require_results
        from study.results.study import sync

        uri = self.where.needed_tracking("sync")
        results = self.results()
        require_results(results)
        return sync(results, uri)

    # --- moving it ---------------------------------------------------------------------------------------

    def delete(self) -> Deletion:
        """Delete it from the store and from MLflow, without a question; return what went.

        Raises:
            BusyError: if it is running.
            TrackingError: if MLflow can't be reached; nothing is deleted then.
        """
        from study.api.deletion import deletion_of

        deletion = deletion_of(self.name, self.where)
        deletion.carry_out()
        return deletion

    def export(self, file: str | Path) -> Export:
        """Write it into one ZIP file, which `import_study` reads; also while it runs.

        Args:
            file: the file's path; nothing may be there.

        Raises:
            UnknownStudyError: if the store has no such study.
            InputError: if there is such a file already.
        """
        from study.store import Store, write_export

        return write_export(Store(self.where.store, read_only=True).open(self.name), Path(file))

    def __repr__(self) -> str:
        what = f"in {self.where.shown_store}" if self._spec is None else self.size
        return f"<Study {self.name}: {what}>"

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

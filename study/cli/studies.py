"""Commands that write, plan, run and tag a study: new, plan, run, repeat, verify, adopt, tag, search, schema."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from study.api import Study, Where, load
from study.api.notebook import make_console
from study.cli.options import (
    INTERRUPTED,
    JSON,
    OPTIONS,
    OVERRIDES,
    STORE,
    TRACKING,
    YES,
    echo_json,
    leave_out_pandas,
    local_options,
    print_addresses,
    together,
    training_options,
)
from study.driver.heartbeat import in_job
from study.driver.progress import waiting
from study.errors import InputError


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "preset",
    metavar="PRESET",
    help="Preset whose file is copied (`study list` names them). Default: a small study.",
)
@click.option(
    "--train",
    metavar="MODULE:FUNCTION",
    help="Training function of the study. It is called once now, to find its metrics.",
)
@click.option(
    "--command",
    metavar="COMMAND",
    help="Program of the study. It is run once now, for up to 30 s, to find its results.",
)
@click.option("--from-wandb", metavar="FILE", help="Translate a sweep configuration of W&B, sweep.yaml.")
@click.option("--from-optuna", metavar="STORAGE", help="Translate a study of Optuna: sqlite:///FILE, or a journal.")
@click.option("--optuna-study", metavar="NAME", help="The study of --from-optuna, if its storage has several.")
@click.option("--points", is_flag=True, help="With --from-optuna: list the values of finished trials, not ranges.")
@click.option("--from-hydra", metavar="FOLDER", help="Translate a multirun of Hydra.")
@click.option("--from-tune", metavar="FILE", help="Translate a param_space of Ray Tune, written as JSON.")
def new(
    name: str,
    preset: str | None,
    train: str | None,
    command: str | None,
    optuna_study: str | None,
    points: bool,
    **sweeps: str | None,
) -> None:
    """Write a new study file NAME.yaml.

    --train or --command sets what each trial runs, also for a translated sweep of another tool.\f

    Raises:
        InputError: if options exclude each other, NAME isn't valid, NAME.yaml exists or can't be written, a preset or
            sweep can't be read or translated, or the function or program fails.
        ValueError: if a sweep's seeds aren't valid, such as negative ones of Optuna's trials.
        OSError: if the cache of code can't be written, or a log of Hydra's jobs can't be read.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.files import new_file

    if [preset, train, command].count(None) < 2:
        raise InputError("--from, --train and --command can't be combined; give one")
    given = [(tool.removeprefix("from_"), where) for tool, where in sweeps.items() if where is not None]
    if len(given) + (preset is not None) > 1:
        options = "--from, --from-wandb, --from-optuna, --from-hydra and --from-tune"
        raise InputError(f"{options} can't be combined; give one")
    if (optuna_study is not None or points) and sweeps["from_optuna"] is None:
        raise InputError("--optuna-study and --points need --from-optuna")
    path = new_file(
        name,
        preset,
        train=train,
        command=command,
        sweep=given[0] if given else None,
        optuna_study=optuna_study,
        points=points,
        notify=lambda note: click.echo(f"check: {note}", err=True),
    )
    click.echo(f"{path}: edit it, `study plan {path}` estimates its cost, `study run {path}` runs it")


@click.command()
@click.argument("file")
@OVERRIDES
@STORE
@YES
@OPTIONS["engine"]
@OPTIONS["device"]
@OPTIONS["cpus"]
@OPTIONS["pack_size"]
@JSON
@click.option("--quick", is_flag=True, help="Skip calibration (engines, packs, memory, time).")
@click.option("--difference", type=float, metavar="D", help="Find the seeds needed to detect this difference of rates.")
def plan(
    file: str,
    overrides: tuple[str, ...],
    store: str,
    yes: bool,
    quick: bool,
    difference: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate the study in FILE (a path or a preset's name): trials, packs, memory, time. Stores nothing.

    KEY=VALUE replaces a value of the file: seeds=50, grid.hidden_size=[2,4].\f

    Raises:
        InputError: if the file has mistakes, an option isn't valid, a cell can't be trained here, a trial fails in the
            calibration, or there are over 100,000 trials without `yes`.
        StudyError: if the store, or the study's results in it, can't be read.
        OSError: if the cache of code or data can't be written in the calibration.
        Exception: the error of an engine in the calibration.
    """  # noqa: D301 - click's help ends at the form feed
    console = make_console()
    study = load(file, overrides, store=store, yes=yes)
    leave_out_pandas()
    with nullcontext() if quick or as_json else waiting(console, "measuring"):
        description = study.plan(quick=quick, difference=difference, **options)
    if as_json:
        echo_json(description.data)
    else:
        description.print(console)


_run_options = together(click.argument("file"), OVERRIDES, STORE, TRACKING, training_options, local_options)
"""Options of commands that train a study from here."""


@click.command()
@_run_options
@click.option("--debug", is_flag=True, help="Train one trial here, and open a debugger where it fails.")
@click.option("--trial", metavar="ID", help="The trial to debug, by the first letters of its id. Default: the first.")
@click.option("--code-copy", metavar="NAME/DIGEST", hidden=True, help="Write stored code beside FILE; for jobs.")
def run(file: str, yes: bool, debug: bool, trial: str | None, code_copy: str | None, **options: Any) -> None:
    """Run the study in FILE (a path or a preset's name): train missing trials, publish them, and write the report.

    A search continues where it stopped. KEY=VALUE replaces a value of the file: seeds=50, grid.hidden_size=[2,4].\f

    Exit with code 1 if trials or parts of the report failed, or with 130 after an interruption.

    With `debug`, run one trial instead and store nothing; exit with code 1 if it fails.

    Raises:
        InputError: if the file has mistakes, an option isn't valid, a cell can't be trained here, there are over
            100,000 trials without `yes`, the user's settings have mistakes, a newer package wrote one of the study's
            files, the record of a search belongs to another one, or `trial` is given without `debug`; with `debug`,
            also if no trial or several have its id, or the study trains models on a task.
        BusyError: if another process runs the study, or takes it over.
        ClusterError: if Ray is needed, but can't be started or has no room.
        StoreError: if the store can't be read or written.
        StudyError: if the report can't be written.
        OSError: if the cache of code, or a file of `code_copy`, can't be written, or a process can't be started.
    """  # noqa: D301 - click's help ends at the form feed
    if code_copy is not None:
        _lay_out(code_copy, options["store"], Path(file).parent)
    if trial is not None and not debug:
        raise InputError("--trial needs --debug; leave it out to train all trials")
    if debug:
        _debug(file, options["overrides"], options["store"], trial)
        return
    _run(file, yes=yes, **options)


def _debug(file: str, overrides: tuple[str, ...], store: str, trial: str | None) -> None:
    from study.driver.debug import debug_trial

    study = load(file, overrides, store=store, tracking_uri="off", yes=True)
    if not debug_trial(study.planned, trial, make_console()):
        sys.exit(1)


def _lay_out(code_copy: str, store: str, into: Path) -> None:
    """Write the files that were submitted with a study into a folder, from the store's copy NAME/DIGEST.

    While the store is away, retry.
    """
    from study.results.submitted_files import restore_submitted
    from study.store import Store
    from study.store.retry import Patience

    name, _, digest = code_copy.partition("/")

    def restore() -> None:
        restore_submitted(Store(store, read_only=True).open(name), digest, into)

    Patience(lambda text: click.echo(text, err=True))(restore)


@click.command()
@_run_options
def search(file: str, **options: Any) -> None:
    """Search the ranges of FILE for the best candidates, confirm them with fresh seeds, and report.

    A candidate is a cell with several seeds. After an interruption, the next run continues the search.\f

    Exit with code 1 if trials or parts of the report failed, or with 130 after an interruption.

    Raises:
        InputError: if the file has mistakes, an option isn't valid, a cell can't be trained here, there are over
            100,000 trials without `yes`, it has nothing to search for, the user's settings have mistakes, a newer
            package wrote one of the study's files, or the stored record belongs to another search.
        BusyError: if another process runs the study, or takes it over.
        ClusterError: if Ray is needed, but can't be started or has no room.
        StoreError: if the store can't be read or written.
        StudyError: if the report can't be written.
        OSError: if the cache of code can't be written, or a process can't be started.
    """  # noqa: D301 - click's help ends at the form feed
    _run(file, only_searches=True, **options)


def _run(
    file: str,
    overrides: tuple[str, ...],
    *,
    yes: bool,
    store: str,
    tracking_uri: str | None,
    only_searches: bool = False,
    **options: Any,
) -> None:
    study = load(file, overrides, store=store, tracking_uri=tracking_uri, yes=yes)
    if only_searches and not study.planned.spec.seed_design.is_search:
        raise InputError(
            f"{file} has nothing to search for: give it ranges and search: {{objective: success_rate, trials: 600}}, "
            "or use `study run`"
        )
    console = make_console()
    console.print(f"{study.name}: {study.size}")
    for notice in study.planned.spec.notices:
        console.print(notice, style="yellow")
    leave_out_pandas()
    ending = study.train(console, **options)
    # Imported late: a mistake in the file is reported without it.
    from study.run import Ending

    print_addresses(study, console)
    command = f"study resume {study.name}" if in_job() else shlex.join(["study", "run", file, *overrides])
    if ending == Ending.INTERRUPTED:
        console.print(f"interrupted: `{command}` goes on where it stopped", style="yellow")
        sys.exit(INTERRUPTED)
    if ending == Ending.FAILURES:
        sys.exit(1)
    if ending == Ending.REPORT_FAILED:
        console.print(
            f"all results are stored, but parts of the report failed: `study report {study.name}` writes it again",
            style="red",
        )
        sys.exit(1)


@click.command()
@click.argument("name")
@click.argument("trial")
@STORE
@OPTIONS["engine"]
@OPTIONS["device"]
@click.option(
    "--script",
    "file",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Write a plain Python file that trains the trial with torch alone; train nothing. Default: trial-ID.py.",
)
def repeat(name: str, trial: str, store: str, engine: str, device: str, file: str | None) -> None:
    """Train TRIAL of study NAME again on this machine, and compare it with the stored result bit for bit.

    TRIAL is an id, or its first letters, as in reports and MLflow's tag study.trial_id. NAME may be the study's file,
    for own code that isn't in the working folder.\f

    With `file`, a plain Python file that trains the trial is written instead; "" stands for trial-ID.py.

    Exit with code 1 if the results differ.

    Raises:
        InputError: if the study or trial doesn't exist, NAME is a file with mistakes, the trial failed, was stopped
            early, isn't planned any more because the file or its code has changed, can't be trained here or has no
            script, or `file` exists already, can't be written or is combined with `engine` or `device`.
        StoreError: if the store can't be read.
        OSError: if the copy of the code or the data can't be written.
        Exception: the error of a packed task or model.
    """  # noqa: D301 - click's help ends at the form feed
    leave_out_pandas()
    study, console = _stored_or_file(name, store), make_console()
    if file is not None:
        if (engine, device) != ("auto", "auto"):
            raise InputError("--script writes a program for torch: leave out --engine and --device")
        path = study.script(trial).write(file)
        click.echo(f"{path}: `{shlex.join(['python', str(path)])}` trains it and compares the learning curves")
        return
    with waiting(console, "training"):
        repeated = study.repeat(
            trial, engine=None if engine == "auto" else engine, device=None if device == "auto" else device
        )
    console.print(str(repeated), soft_wrap=True)
    if not repeated.is_same:
        sys.exit(1)


@click.command()
@click.argument("name")
@STORE
@click.option(
    "--share",
    metavar="1%",
    default="1%",
    show_default=True,
    help="Share of the trials to train again; at least one is.",
)
def verify(name: str, store: str, share: str) -> None:
    """Check stored results of study NAME: train a random sample of its trials again, and compare them bit for bit.

    Each trial is trained alone. Later reports show the result. NAME may be the study's file, as for `repeat`.\f

    Exit with code 1 if results differ.

    Raises:
        InputError: if the study doesn't exist, `share` isn't a number in (0, 1], there is no trial to compare with,
            a trial can't be trained here, or a stored file is invalid or from a newer package.
        BusyError: if the study is running when all of them are trained; no certificate is stored then.
        StoreError: if the store can't be read or written.
        OSError: if the copy of the code or the data can't be written.
        Exception: the error of a packed task or model.
    """  # noqa: D301 - click's help ends at the form feed
    leave_out_pandas()
    study, console = _stored_or_file(name, store), make_console()
    certificate = study.verify(_share(share), lambda repeated: console.print(str(repeated), soft_wrap=True))
    console.print(certificate.sentence, soft_wrap=True)
    if certificate.differing:
        sys.exit(1)


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(f"--share must be a number such as 1% or 0.01, but got {text!r}") from None


def _stored_or_file(name: str, store: str) -> Study:
    return load(name, store=store) if Path(name).is_file() else Study(name, Where(store))


@click.command()
@click.argument("name")
@STORE
@click.option("--undo", is_flag=True, help="Revoke the declaration for the current code.")
def adopt(name: str, store: str, undo: bool) -> None:
    """Declare the results of study NAME valid for its current code, although the code has changed.

    Use it only if you know that the results are the same: this isn't checked. No result is trained or rewritten.
    Reports show who declared it, and when. NAME may be the study's file, as for `repeat`.\f

    Raises:
        InputError: if the study doesn't exist, has no own code or sets `version`, its code can't be read, there is
            nothing to declare or to revoke, or a stored file is invalid or from a newer package.
        BusyError: if the study is running.
        StoreError: if the store can't be read or written.
    """  # noqa: D301 - click's help ends at the form feed
    entry = _stored_or_file(name, store).adopt(undo=undo)
    click.echo(f"revoked: {entry.sentence}" if undo else entry.sentence)


class _TagCommand(click.Command):
    """A command whose option `--remove` takes all words up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words, removes = list[str](), False
        for word in args:
            if word.startswith("-"):
                removes = word == "--remove"
                words += [] if removes else [word]
            else:
                words += ["--remove", word] if removes else [word]
        return super().parse_args(ctx, words)


@click.command(cls=_TagCommand)
@click.argument("name")
@click.argument("tags", nargs=-1, metavar="[TAG]...")
@click.option("--remove", multiple=True, metavar="TAG...", help="Tags to remove, including those of the study's file.")
@STORE
@JSON
def tag(name: str, tags: tuple[str, ...], remove: tuple[str, ...], store: str, as_json: bool) -> None:
    """Add tags to study NAME, remove others, and print its tags; the index filters studies by tags.

    Trials, results and study file don't change. The study may be running.\f

    Raises:
        InputError: if the study or a tag to remove doesn't exist, or a tag isn't valid, or is both added and removed.
        StoreError: if the store can't be read or written.
    """  # noqa: D301 - click's help ends at the form feed
    leave_out_pandas()
    current = Study(name, Where(store)).tag(*tags, remove=remove)
    if as_json:
        echo_json({"study": name, "tags": current})
    else:
        click.echo(f"{name}: {', '.join(current) or 'no tags'}")


@click.command()
def schema() -> None:
    """Print the JSON schema of a study file, for editors.\f

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """  # noqa: D301 - click's help ends at the form feed
    from study.spec import schema as spec_schema

    click.echo(json.dumps(spec_schema(), indent=2, ensure_ascii=False))


COMMANDS = (new, plan, run, repeat, verify, adopt, tag, search, schema)

"""Progress of a running study: trials done, outcomes, iterations per second, time left."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.live import Live
from rich.text import Text

from study.console import Console
from study.records import Outcome, Pack, Preparing, Progress, Result, WorkersWait
from study.summaries.failures import Failure, FailureTally
from study.summaries.heartbeat import MOST_VALUES, CellTraining, CellValue, value_texts
from study.visible import visible
from study.words import count_of, duration

_RATE_WINDOW_S = 30.0
_PLAIN_EVERY_S = 4.0
_NOTEBOOK_EVERY_S = 0.5
# smaller corrections of a clock are common
_JUMP_S = 30.0


class Board:
    """The running counts of a study.

    Args:
        clock: returns seconds, from any origin.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._total = 0
        self._ended = dict.fromkeys(Outcome, 0)
        self._running: dict[str, Progress] = {}
        self._preparing: dict[str, Preparing] = {}
        self._preparing_since = self._began
        self._waiting = WorkersWait(0, 0)
        self._work: dict[str, int] = {}
        self._packs: dict[str, Pack] = {}
        self._left = 0
        self._totals: deque[tuple[float, int]] = deque([(self._began, 0)])
        self._made = 0
        self._has_success = self._has_iterations = True
        self._failures = FailureTally()
        self._names: Callable[[], Mapping[str, str]] = dict
        self._named: dict[str, tuple[int, str]] | None = None
        self._metric = self.metric_title = ""
        self._ended_values: dict[str, tuple[float, int]] = {}

    def name(self, names: Callable[[], Mapping[str, str]], metric: str, title: str) -> None:
        """Set the metric whose mean so far is shown for each cell in training, and the cells' names.

        Args:
            names: returns a short name of each cell by id; called when a cell in training is first shown, since naming
                many cells is slow.
            metric: the name of the first metric.
            title: the metric's name for readers.
        """
        self._names, self._named = names, None
        self._metric, self.metric_title = metric, title

    def begin(self, packs: Sequence[Pack], already: Mapping[Outcome, int], *, has_success: bool = True) -> None:
        """Expect packs, at the start or once the earlier ones are done.

        Args:
            packs: the packs to run now.
            already: numbers of trials done before, by outcome.
            has_success: whether trials are judged.
        """
        self._has_success = has_success
        self._has_iterations = any(pack.trials[0].cell.iterations for pack in packs)
        self._total = sum(already.values()) + sum(len(pack.trials) for pack in packs)
        self._ended = dict.fromkeys(Outcome, 0) | dict(already)
        self._running.clear()
        self._preparing.clear()
        self._work = {pack.id: _trial_iterations(pack) for pack in packs}
        self._packs = {pack.id: pack for pack in packs}
        self._left = sum(self._work.values())

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of trials by name: all as ``trials``, ``done``, ``pending``, and each outcome."""
        done = sum(self._ended.values())
        named = {str(outcome): count for outcome, count in self._ended.items()}
        return {"trials": self._total, "done": done, "pending": self._total - done, **named}

    @property
    def running(self) -> int:
        """Number of packs in training."""
        return len(self._running)

    @property
    def left_s(self) -> float | None:
        """Estimated seconds until everything is done; None without a known rate."""
        rate = self._rate()
        return max(self._left, 0) / rate if rate else None

    def progress(self, progress: Progress) -> None:
        """Record a pack's progress, unless it has ended or was split."""
        self._preparing.pop(progress.pack_id, None)
        if progress.pack_id not in self._work:
            return
        is_first = not self._made and not self._running
        before = self._running.get(progress.pack_id)
        start = progress.begun_at if before is None else before.iteration
        self._running[progress.pack_id] = progress
        if before is None:  # an earlier run made the updates before its checkpoint
            self._left -= start * progress.trials
        self._count((progress.iteration - start) * progress.trials)
        if is_first:
            # The rate leaves out the start of Ray and the compilation of engines.
            self._totals = deque([(self._clock(), self._made)])

    def preparing(self, step: Preparing) -> None:
        """Record a step that must end before a pack can train; the step ``ready`` ends it."""
        self._preparing.pop(step.pack_id, None)
        if step.doing != "ready":
            if not self._preparing:
                self._preparing_since = self._clock()
            self._preparing[step.pack_id] = step

    def wait(self, workers: WorkersWait) -> None:
        """Record the number of workers that wait for room on the cluster."""
        self._waiting = workers

    @property
    def waiting(self) -> int:
        """Number of workers that wait for room on the cluster."""
        return self._waiting.count

    def _preparing_words(self) -> str:
        steps = self._preparing.values()
        names = " and the ".join(sorted({step.engine for step in steps}))
        who = "others wait" if self._running else "workers wait"
        elapsed = duration(self._clock() - self._preparing_since)
        return f"{who} until the {names} engine is compiled, once on each machine: {elapsed}"

    def done(self, pack_id: str, results: Sequence[Result]) -> None:
        """Record a pack's results.

        Raises:
            KeyError: if the pack has ended or was split already, or isn't one of those begun.
        """
        self._preparing.pop(pack_id, None)
        last = self._running.pop(pack_id, None)
        self._count(self._work.pop(pack_id) - (last.iteration * last.trials if last else 0))
        self._add(results)

    def _add(self, results: Sequence[Result]) -> None:
        for result in results:
            self._ended[result.outcome] += 1
            value, cell = result.metrics.get(self._metric), result.trial.cell.id
            if value is not None and math.isfinite(value):
                self._ended_values[cell] = _pooled(self._ended_values.get(cell), (value, 1))
            if result.outcome is Outcome.FAILED:
                self._failures.add(result.trial.id, result.trial.cell.id, result.trial.seed, result.error)

    @property
    def failures(self) -> Sequence[Failure]:
        """Reasons of this run's failed trials, the most frequent first; empty without failures."""
        return self._failures.failures()

    def split(self, pack_id: str, parts: Sequence[Pack]) -> None:
        """Record a pack's split into parts.

        Raises:
            KeyError: as `done` does.
        """
        self._preparing.pop(pack_id, None)
        last = self._running.pop(pack_id, None)
        self._left += last.iteration * last.trials if last else 0
        del self._work[pack_id]
        self._work |= {part.id: _trial_iterations(part) for part in parts}
        self._packs |= {part.id: part for part in parts}

    def failed(self, pack_id: str, results: Sequence[Result]) -> None:
        """Record a pack's final crash, with the failed results of its trials.

        Raises:
            KeyError: as `done` does.
        """
        self._preparing.pop(pack_id, None)
        last = self._running.pop(pack_id, None)
        self._left -= self._work.pop(pack_id) - (last.iteration * last.trials if last else 0)
        self._add(results)

    @property
    def training(self) -> Sequence[CellTraining]:
        """Cells in training that have a name by `name`, in the order of the study; empty if there are none."""
        trials, done = Counter[str](), defaultdict[str, float](float)
        for pack_id, progress in self._running.items():
            pack = self._packs[pack_id]
            in_pack = Counter(trial.cell.id for trial in pack.trials)
            trials += in_pack
            # Without a declared number of iterations, a trial's progress is unknown.
            is_known = progress.iterations and pack.trials[0].cell.iterations
            share = min(progress.iteration / progress.iterations, 1.0) if is_known else math.nan
            for cell, count in in_pack.items():
                done[cell] += share * count
        means = {cell: done[cell] / count for cell, count in trials.items()}
        return [
            CellTraining(name, trials[cell], None if math.isnan(means[cell]) else round(means[cell], 4))
            for cell, name in self._in_order(trials)
        ]

    def _in_order(self, cells: Collection[str]) -> list[tuple[str, str]]:
        """Return ids and short names of cells in the order of the study, without unnamed cells."""
        if cells and self._named is None:
            self._named = {cell: (place, name) for place, (cell, name) in enumerate(self._names().items())}
        named = self._named or {}
        return [
            (cell, named[cell][1])
            for cell in sorted((key for key in cells if key in named), key=lambda key: named[key])
        ]

    @property
    def values(self) -> Sequence[CellValue]:
        """Mean so far of the metric in each cell of `training` that reported it, in the same order; at most eight."""
        running: dict[str, tuple[float, int]] = {}
        for progress in self._running.values():
            for cell, value in progress.latest.items():
                running[cell] = _pooled(running.get(cell), value)
        return [
            CellValue(name, *_pooled(self._ended_values.get(cell), running[cell]))
            for cell, name in self._in_order(running)[:MOST_VALUES]
        ]

    def text(self) -> str:
        """Format the line of counts, followed by the metric's running mean in at most eight cells in training."""
        return "\n".join([self.line(), *(f"  {text}" for text in value_texts(self.metric_title, self.values))])

    def line(self) -> str:
        """Format the counts, the rate and the time left as one line."""
        ended = self.counts
        rate = self._rate()
        judged = [Outcome.SOLVED, Outcome.UNSOLVED] if self._has_success else []
        stopped = [Outcome.STOPPED] if self._ended[Outcome.STOPPED] else []
        parts = [f"{ended['done']}/{self._total} trials"]
        parts += [
            f"{self._ended[outcome]} {outcome}" for outcome in (*judged, *stopped, Outcome.DIVERGED, Outcome.FAILED)
        ]
        if self._running:
            trials = sum(progress.trials for progress in self._running.values())
            ahead = (
                f" ({sum(progress.solved for progress in self._running.values())} solved so far)"
                if self._has_success
                else ""
            )
            parts.append(f"training {trials} in {count_of(len(self._running), 'pack')}{ahead}")
        if self._preparing:
            parts.append(self._preparing_words())
        if self._waiting.count:
            parts.append(f"{self._waiting.count} of {count_of(self._waiting.total, 'worker')} waiting for room")
        elif not self._preparing and not self._running and not self._made and self._left > 0:
            parts.append(f"workers are starting: {duration(self._clock() - self._began)}")
        if rate:
            parts.append(f"{rate:,.0f} trial-iterations/s" if self._has_iterations else f"{rate:,.1f} trials/s")
            if self._left > 0:
                parts.append(f"{duration(self._left / rate)} left")
        return " · ".join(parts)

    def _count(self, trial_iterations: int) -> None:
        # A retried pack restarts at its checkpoint, so the iterations that it repeats count as left again.
        self._left -= trial_iterations
        self._made += max(trial_iterations, 0)
        now = self._clock()
        self._totals.append((now, self._made))
        while len(self._totals) > 2 and now - self._totals[0][0] > _RATE_WINDOW_S:
            self._totals.popleft()

    def _rate(self) -> float:
        (first, made_first), (last, made_last) = self._totals[0], self._totals[-1]
        return (made_last - made_first) / (last - first) if last > first else 0.0


def _pooled(first: tuple[float, int] | None, second: tuple[float, int]) -> tuple[float, int]:
    """Return the mean and the size of two groups together, given those of each."""
    if first is None:
        return second
    count = first[1] + second[1]
    return (first[0] * first[1] + second[0] * second[1]) / count, count


def _steady_s() -> float:
    """Return the seconds of a steady clock that includes suspension where the system has one."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class ClockJumps:
    """Detector of changes of the time of day.

    Args:
        time_of_day: returns seconds of the clock that may be set.
        steady: returns seconds of a clock that can't be set.

    Example:
        >>> day = iter([100.0, 101.0, 42.0, 43.0])
        >>> clock = ClockJumps(time_of_day=lambda: next(day), steady=iter([0.0, 1.0, 2.0, 3.0]).__next__)
        >>> clock.jump_s(), clock.jump_s(), clock.jump_s()
        (None, -60.0, None)
    """

    def __init__(self, time_of_day: Callable[[], float] = time.time, steady: Callable[[], float] = _steady_s) -> None:
        self._time_of_day, self._steady = time_of_day, steady
        self._apart_s = time_of_day() - steady()

    def jump_s(self) -> float | None:
        """Return the seconds by which the clock was set since the last call, at first since the object was made.

        They are > 0 if it was set ahead; None for less than 30 s in either direction.
        """
        apart_s = self._time_of_day() - self._steady()
        jump_s, self._apart_s = apart_s - self._apart_s, apart_s
        return jump_s if abs(jump_s) >= _JUMP_S else None


def _trial_iterations(pack: Pack) -> int:
    return len(pack.trials) * (pack.trials[0].cell.iterations + 1)


def preparation_text(step: Preparing) -> str:
    """Describe a step that prepares an engine on a machine.

    Example:
        >>> preparation_text(Preparing("fused", "node-7", "compiling"))
        'compiling the fused engine, once on node-7: it takes about half a minute'
        >>> preparation_text(Preparing("fused", socket.gethostname(), "ready"))
        'the fused engine is compiled on this machine'
    """
    where = "this machine" if step.machine == socket.gethostname() else step.machine
    match step.doing:
        case "compiling":
            return f"compiling the {step.engine} engine, once on {where}: it takes about half a minute"
        case "preparing":
            return f"loading the {step.engine} engine on {where}, or compiling it the first time"
        case "waiting":
            return f"waiting for another process, which is compiling the {step.engine} engine on {where}"
    return f"the {step.engine} engine is compiled on {where}"


@contextmanager
def live_board(board: Board, console: Console) -> Iterator[Callable[[], None]]:
    """Show a changing board: in place on a terminal or in a notebook, otherwise in lines at least four seconds apart.

    Without a terminal, the line of counts is shown once more after a block that raised nothing.

    Yields:
        A function to call after each change.
    """
    if console.is_terminal:
        with Live(Text(board.text()), console=console, refresh_per_second=4) as live:
            yield lambda: live.update(Text(board.text()))
        return
    if console.is_jupyter:
        write, every_s = _cell_line(), _NOTEBOOK_EVERY_S
    else:
        write, every_s = partial(console.print, soft_wrap=True), _PLAIN_EVERY_S
    last = -every_s

    def show() -> None:
        nonlocal last
        if time.monotonic() - last >= every_s:
            last = time.monotonic()
            write(board.text())

    yield show
    write(board.line())


def _cell_line() -> Callable[[str], None]:
    """Return a function that writes a line of a notebook cell's output and later replaces it."""
    from IPython.display import display  # notebooks have IPython

    line: list[Any] = []

    def write(text: str) -> None:
        content = {"text/plain": visible(text)}
        if line:
            line[0].update(content, raw=True)
        else:
            line.append(display(content, raw=True, display_id=True))  # type: ignore[no-untyped-call]

    return write


@contextmanager
def waiting(console: Console, work: str) -> Iterator[None]:
    """Show a message during the block: in place on a terminal, otherwise every four seconds with the time so far.

    Args:
        console: where to show it.
        work: the work that takes long.
    """
    if console.is_terminal:
        with console.status(Text(work)):  # rich would parse a str as markup here
            yield
        return
    began, over = time.monotonic(), threading.Event()
    write: Callable[[str], None] = _cell_line() if console.is_jupyter else partial(console.print, soft_wrap=True)

    def notify() -> None:
        while not over.wait(_PLAIN_EVERY_S):
            write(f"{work}: {duration(time.monotonic() - began)}")

    thread = threading.Thread(target=notify, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

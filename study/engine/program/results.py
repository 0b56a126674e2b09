"""The results of a program, read while it runs: from files in its folder, or from its output."""

from __future__ import annotations

import csv
import io
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.interface.error_text import shortened
from study.interface.json_text import parse_json
from study.interface.program import CONFIG_FILES, Results
from study.words import count_of

_STEP = "step"


class ResultsError(ValueError):
    """Results that can't be read; the message has the place and the reason."""


class Steps:
    """The numbers of a trial by step so far; they may come in any order.

    Numbers without a step belong to the current step, until one of them comes again, which begins the next step.

    Attributes:
        are_numbered: whether steps have numbers of their own, or there is more than one.
    """

    def __init__(self) -> None:
        self.numbers: dict[int, dict[str, float]] = {}
        self._current = 0
        self.are_numbered = False

    def add(self, step: int | None, numbers: Mapping[str, float]) -> None:
        """Add numbers to a step; without a step, to the current one, or to the next if that has one of them already.

        Args:
            step: the step, where they replace earlier numbers of the same name; None for the current one, which is at
                first 0, and which numbered steps don't change.
            numbers: the numbers by name.
        """
        if step is None:
            if numbers.keys() & self.numbers.get(self._current, {}).keys():
                self._current += 1
                self.are_numbered = True
            step = self._current
        else:
            self.are_numbered = True
        self.numbers.setdefault(step, {}).update(numbers)

    def clear(self) -> None:
        """Remove all numbers, for results that are written anew."""
        self.__init__()  # type: ignore[misc]

    def complete(self, metrics: Sequence[str]) -> Iterator[tuple[int, dict[str, float], dict[str, float]]]:
        """Yield each step that counts, in ascending order, with its metrics and its other numbers.

        A step counts if it has the first of `metrics` (at least one), and every metric has a value at it or at an
        earlier step. The other metrics have their latest value.
        """
        latest: dict[str, float] = {}
        for step in sorted(self.numbers):
            numbers = self.numbers[step]
            latest |= {name: number for name, number in numbers.items() if name in metrics}
            if metrics[0] in numbers and len(latest) == len(metrics):
                others = {name: number for name, number in numbers.items() if name not in metrics}
                yield step, {name: latest[name] for name in metrics}, others

    def latest(self, metric: str) -> float | None:
        """Return a metric at the latest step that has it; None if there is none."""
        step = max((step for step, numbers in self.numbers.items() if metric in numbers), default=None)
        return None if step is None else self.numbers[step][metric]

    def missing(self, metrics: Sequence[str]) -> list[str]:
        """Return the metrics that no step has, in their order; empty if each has a value at some step."""
        there = set().union(*self.numbers.values())
        return [name for name in metrics if name not in there]


class Reader(ABC):
    """A reader of a program's new results at each call.

    Args:
        results: the place of its results.
        folder: the trial's folder.
        steps: the steps to which numbers are added.
    """

    def __init__(self, results: Results, folder: Path, steps: Steps) -> None:
        self._results, self._folder, self._steps = results, folder, steps

    @abstractmethod
    def read(self, *, has_ended: bool) -> None:
        """Read new results, and add them to the steps.

        Args:
            has_ended: whether the program has ended, so that its results are complete.

        Raises:
            ResultsError: if they can't be read.
        """

    @property
    @abstractmethod
    def where(self) -> str:
        """Place of the results, for messages."""

    def _add(self, numbers: Mapping[str, Any], place: str) -> None:
        """Add the numbers of a line or object, ignoring other values; those of nested objects have dotted names.

        A step that is invalid, or missing though `results` names it, raises ResultsError; `place` is for its message.
        """
        flat = dict(_flat(numbers))
        name = self._results.step or _STEP
        step = _step(flat.pop(name, None), name, place)
        if step is None and self._results.step:
            raise ResultsError(f"{place} has no {name}, the step according to results; it has {_names(flat)}")
        if flat:
            self._steps.add(step, flat)


def reader_of(results: Results, folder: Path, steps: Steps) -> Reader:
    """Return a reader for the kind of a program's results: output, CSV, TensorBoard, MLflow, JSON lines or JSON.

    Args:
        results: the place of its results.
        folder: the trial's folder.
        steps: the steps to which numbers are added.

    Raises:
        re.error: if a pattern isn't a regular expression.
    """
    if results.kind in ("lines", "pattern"):
        return OutputReader(results, folder, steps)
    if results.kind == "csv":
        return CsvReader(results, folder, steps)
    if results.kind == "tensorboard":
        return TensorBoardReader(results, folder, steps)
    if results.kind == "mlflow":
        return MlflowReader(results, folder, steps)
    is_lines = results.where.lower().endswith((".jsonl", ".ndjson"))
    return (JsonLinesReader if is_lines else JsonReader)(results, folder, steps)


class OutputReader(Reader):
    """A reader of lines of a program's output: JSON objects, or matches of a pattern."""

    def __init__(self, results: Results, folder: Path, steps: Steps) -> None:
        super().__init__(results, folder, steps)
        self._pattern = re.compile(results.where) if results.kind == "pattern" else None
        self._unread = b""
        self._broken = ""

    @property
    def where(self) -> str:
        """The output in words, for messages; as long as it has no numbers, with the reason if that is known."""
        if self._pattern is not None:
            return "its output: no line matches the pattern" if not self._steps.numbers else "its output"
        if self._broken and not self._steps.numbers:
            return f"its output, whose line {self._broken!r} isn't JSON"
        return "the lines of JSON in its output"

    def feed(self, output: bytes) -> None:
        """Append output of the program, for the next call of `read`."""
        self._unread += output

    def read(self, *, has_ended: bool) -> None:
        """Read the complete lines from `feed`, at the end also an unfinished one; before, one beyond 1 MiB is dropped.

        Lines that aren't JSON objects, or that the pattern doesn't match, are ignored.

        Raises:
            ResultsError: if a group of the pattern matches a text that isn't a number; or if a step is invalid, or
                missing though `results` names it, even in a JSON object without numbers.
        """
        *lines, unfinished = re.split(rb"[\r\n]", self._unread)  # progress bars return to the start of their line
        self._unread = b"" if has_ended or len(unfinished) > _LONGEST_LINE else unfinished
        for line in [*lines, unfinished] if has_ended else lines:
            text = line.decode("utf-8", "replace")
            if self._pattern is None:
                self._read_json(text)
            else:
                for match in self._pattern.finditer(text):
                    self._read_match(match, text)

    def _read_json(self, line: str) -> None:
        if line.lstrip().startswith("{"):
            try:
                numbers = parse_json(line)
            except ValueError:
                self._broken = self._broken or shortened(line, 200)  # it may only look like JSON
                return
            self._add(numbers, "a line of its output")

    def _read_match(self, match: re.Match[str], line: str) -> None:
        """Add the numbers of the named groups of a match; a group that isn't a number raises ResultsError."""
        texts = {name: text for name, text in match.groupdict().items() if text is not None}
        numbers = {name: _number(text) for name, text in texts.items()}
        for name, number in numbers.items():
            if number is None:
                raise ResultsError(
                    f"the pattern's group {name} matched {texts[name]!r}, which isn't a number, in the line "
                    f"{shortened(line, 200)!r}: make the group narrower, such as [-+.0-9e]+"
                )
        self._add(numbers, f"the line {shortened(line, 200)!r}")


_LONGEST_LINE = 2**20


class FileReader(Reader):
    """A reader of one file in the trial's folder, given by a path or a pattern such as ``**/metrics.json``."""

    _known_path: Path | None = None

    @property
    def where(self) -> str:
        """The path or pattern of the file, as given."""
        return self._results.where

    def _path(self) -> Path | None:
        """Return the file's path; None before it exists. Several matching files raise ResultsError."""
        if self._known_path is None or not self._known_path.is_file():
            paths = sorted(path for path in self._folder.glob(self._results.where) if path.is_file())
            if len(paths) > 1:  # files of hyperparameters aren't results
                configs = CONFIG_FILES.values()
                paths = [path for path in paths if path.parent != self._folder or path.name not in configs]
            if len(paths) > 1:
                names = ", ".join(str(path.relative_to(self._folder)) for path in paths[:3])
                raise ResultsError(f"{self.where} matches {len(paths)} files, such as {names}: name exactly one")
            self._known_path = paths[0] if paths else None
        return self._known_path

    def _name(self) -> str:
        assert self._known_path is not None
        return self._known_path.relative_to(self._folder).as_posix()


class JsonReader(FileReader):
    """A reader of a file with one JSON value, once the program has ended.

    The value is an object of numbers, a list of such objects, one for each step, or an object of equally long lists of
    numbers.
    """

    def read(self, *, has_ended: bool) -> None:
        """Read the file once the program has ended; a no-op if there is no file.

        If it has one object, or lists of one number, they describe the end of training: `Steps.are_numbered` becomes
        False.

        Raises:
            ResultsError: if it can't be read, isn't such a JSON value, or isn't the only matching file; or if a step is
                invalid, or missing though `results` names it.
        """
        path = self._path() if has_ended else None
        if path is None:
            return
        try:
            content = parse_json(path.read_bytes())
        except ValueError as error:
            raise ResultsError(f"{self._name()} isn't valid JSON: {error}") from None
        except OSError as error:
            raise ResultsError(f"{self._name()} can't be read: {error.strerror}") from None
        entries = _entries(content, self._name())
        for entry in entries:
            self._add(entry, self._name())
        if len(entries) == 1:
            self._steps.are_numbered = False


def _entries(content: Any, name: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of numbers in a JSON value, one for each step; other values raise ResultsError.

    An object of lists of equal length, without numbers of its own, gives one object for each place in the lists.
    """
    entries = content if isinstance(content, list) else [content]
    if not all(isinstance(entry, dict) for entry in entries):
        raise ResultsError(f"{name} must be an object of numbers, or a list of such objects")
    if not isinstance(content, dict):
        return entries
    curves = {
        key: column for key, column in content.items() if isinstance(column, list) and all(map(_is_number, column))
    }
    lengths = {len(curve) for curve in curves.values()}
    if curves and len(lengths) == 1 and not any(map(_is_number, content.values())):
        return [dict(zip(curves, row, strict=True)) for row in zip(*curves.values(), strict=True)]
    return entries


class LinesReader(FileReader):
    """A reader of a file that grows by lines; when it becomes shorter, it is read anew."""

    def __init__(self, results: Results, folder: Path, steps: Steps) -> None:
        super().__init__(results, folder, steps)
        self._begin()

    def _begin(self) -> None:
        """Forget the lines that were read."""
        self._read_bytes, self._unread, self._line = 0, b"", 0

    def read(self, *, has_ended: bool) -> None:
        """Read the complete lines, at the end also an unfinished one; a no-op before the file exists.

        If the file has become shorter, all earlier numbers are removed, and it is read from its beginning.

        Raises:
            ResultsError: if the file can't be read, has an invalid line (such as one without the step that `results`
                names), or isn't the only matching file.
        """
        path = self._path()
        if path is None:
            return
        try:
            with path.open("rb") as file:
                size = file.seek(0, io.SEEK_END)
                if size < self._read_bytes:
                    self._begin()
                    self._steps.clear()
                file.seek(self._read_bytes)
                new = file.read()
        except OSError as error:
            raise ResultsError(f"{self._name()} can't be read: {error.strerror}") from None
        self._read_bytes += len(new)
        *lines, self._unread = (self._unread + new).split(b"\n")
        if has_ended and self._unread:
            lines, self._unread = [*lines, self._unread], b""
        for line in lines:
            self._line += 1
            place = f"line {self._line} of {self._name()}"
            try:
                text = line.decode("utf-8-sig").strip()
            except UnicodeDecodeError as error:
                raise ResultsError(f"{place} isn't UTF-8: {error.reason} at byte {error.start}") from None
            if text:
                self._take(text, place)

    @abstractmethod
    def _take(self, line: str, place: str) -> None:
        """Add the numbers of a line; `place` names the line in errors."""


class JsonLinesReader(LinesReader):
    """A reader of a file with a JSON object on each line."""

    def _take(self, line: str, place: str) -> None:
        try:
            numbers = parse_json(line)
        except ValueError as error:
            raise ResultsError(f"{place} isn't JSON: {error}") from None
        if not isinstance(numbers, dict):
            raise ResultsError(f"{place} must be an object of numbers")
        self._add(numbers, place)


class CsvReader(LinesReader):
    """A reader of a file of comma-separated values, whose first line that isn't blank names its columns."""

    def _begin(self) -> None:
        super()._begin()
        self._columns: Sequence[str] = ()

    def _take(self, line: str, place: str) -> None:
        """Read the names of the columns, or the numbers of a row, ignoring other values.

        A row of another length, and one that isn't CSV, raises ResultsError; `place` names the line in its message.
        """
        try:
            values = next(csv.reader([line]))
        except csv.Error as error:  # such as a carriage return within a line
            raise ResultsError(f"{place} isn't a row of comma-separated values: {error}") from None
        if not self._columns:
            self._columns = [value.strip() for value in values]
            return
        if len(values) != len(self._columns):
            counts = f"{count_of(len(values), 'value')}, and the header {count_of(len(self._columns), 'column')}"
            raise ResultsError(f"{place} has {counts}")
        pairs = zip(self._columns, map(_number, values), strict=True)
        self._add({name: number for name, number in pairs if number is not None}, place)


class FolderReader(Reader):
    """A reader of a folder of several growing files."""

    @property
    def where(self) -> str:
        """The folder in words, for messages."""
        return f"the folder {self._results.where}" if self._results.where != "." else "its folder"

    def _files(self, pattern: str) -> list[Path]:
        return sorted(path for path in (self._folder / self._results.where).rglob(pattern) if path.is_file())


class TensorBoardReader(FolderReader):
    """A reader of scalars in TensorBoard's event files, by their tags."""

    def __init__(self, results: Results, folder: Path, steps: Steps) -> None:
        super().__init__(results, folder, steps)
        self._loaders: dict[Path, Any] = {}

    def read(self, *, has_ended: bool) -> None:
        """Read the new events.

        Raises:
            ResultsError: if there are event files, and tensorboard isn't installed; or if a step is negative.
            OSError: if a folder or a file can't be read.
        """
        for path in self._files("*tfevents*"):
            if path not in self._loaders:
                self._loaders[path] = _event_loader(path)
            for event in self._loaders[path].Load():
                for value in event.summary.value:
                    if (number := _scalar(value)) is not None:
                        self._steps.add(_step(event.step, "step", f"an event of {path.name}"), {value.tag: number})


def _event_loader(path: Path) -> Any:
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    except ImportError:
        raise ResultsError(
            "results in TensorBoard's files need the package tensorboard here: pip install 'seeded-study[tensorboard]'"
        ) from None
    return EventFileLoader(str(path))


def _scalar(value: Any) -> float | None:
    """Return the scalar of an event's value; None for other data, such as an image."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if value.HasField("tensor"):
        from tensorboard.util.tensor_util import make_ndarray

        array = make_ndarray(value.tensor)
        return float(array.item()) if array.size == 1 and array.dtype.kind in "fiub" else None
    return None


class MlflowReader(FolderReader):
    """A reader of metrics in the files of MLflow's runs, one per metric: a time, a value and a step on each line."""

    def __init__(self, results: Results, folder: Path, steps: Steps) -> None:
        super().__init__(results, folder, steps)
        self._read_bytes: dict[Path, int] = {}

    def read(self, *, has_ended: bool) -> None:
        """Read the new complete lines; a metric's name is its file's path below the run's folder ``metrics``.

        Raises:
            ResultsError: if a file can't be read, or a line isn't a time, a value and a step.
            OSError: if a folder can't be read.
        """
        paths = [(folder, path) for folder in self._folders() for path in sorted(folder.rglob("*")) if path.is_file()]
        for folder, path in paths:
            try:
                with path.open("rb") as file:
                    file.seek(self._read_bytes.get(path, 0))
                    complete, end, _ = file.read().rpartition(b"\n")
            except OSError as error:
                raise ResultsError(f"{path.relative_to(self._folder)} can't be read: {error.strerror}") from None
            self._read_bytes[path] = self._read_bytes.get(path, 0) + len(complete) + len(end)
            name = path.relative_to(folder).as_posix()
            for line in complete.decode("utf-8", "replace").splitlines():
                try:
                    _, value, step = line.split()[:3]
                    self._steps.add(_step(int(step), "step", line), {name: float(value)})
                except (ValueError, ResultsError):
                    where = path.relative_to(self._folder).as_posix()
                    raise ResultsError(
                        f"{where} must have a time, a value and a step of at least 0 on each line, as MLflow writes "
                        "them, but has "
                        f"{shortened(line, 200)!r}"
                    ) from None

    def _folders(self) -> list[Path]:
        folders = sorted((self._folder / self._results.where).rglob("metrics"))
        return [folder for folder in folders if (folder.parent / "meta.yaml").is_file()]


def _flat(numbers: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of an object by their dotted names."""
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif _is_number(value):
            yield f"{before}{name}", _as_float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of floats
        return math.inf if value > 0 else -math.inf


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _step(value: float | None, name: str, place: str) -> int | None:
    if value is None:
        return None
    if not math.isfinite(value) or value != int(value) or not 0 <= value < 2**53:
        raise ResultsError(f"{place} has {name} {value:g}, but steps must be integers of at least 0")
    return int(value)


def _names(numbers: Mapping[str, float]) -> str:
    return ", ".join(list(numbers)[:10]) or "no numbers"

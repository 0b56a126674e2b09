"""Programs that train: the command with its placeholders, and the location of results."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

CONFIG_FILES: Final = {"config": "config.json", "config.yaml": "config.yaml"}
"""Names of the files of hyperparameters, by placeholder."""

GIVEN: Final = ("seed", "folder", *CONFIG_FILES, "code")
"""Placeholders that aren't hyperparameters: the seed, the trial's folder, files of hyperparameters, the code."""

SEEDS: Final = ("seed", "random_seed", "rng_seed", "manual_seed")
"""Names that are recognised as seeds."""

NAME: Final = r"[A-Za-z_]\w*(?:[.-]\w+)*"
"""Pattern of a hyperparameter's name."""

_SHELL_OPERATORS = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", "&>"})
_PLACEHOLDER = re.compile(rf"\{{\{{(?P<plain>[^{{}}]*)\}}\}}|\{{(?P<name>{NAME})(?::(?P<text>[^{{}}]*))?\}}")

ResultsKind = Literal["file", "csv", "lines", "pattern", "tensorboard", "mlflow"]


@dataclass(frozen=True)
class Results:
    """Location and format of a program's results.

    Args:
        kind: the format:

            - ``file``: a JSON file, or a file with a JSON object per line
            - ``csv``: a CSV file with a header
            - ``lines``: JSON objects in the program's output
            - ``pattern``: matches of a pattern in the program's output
            - ``tensorboard``: event files of TensorBoard
            - ``mlflow``: runs of MLflow
        where: a path in the trial's folder, or the pattern.
        step: name of the number that is the step; empty for ``step``, if there is such a number.
    """

    kind: ResultsKind
    where: str
    step: str = ""

    @property
    def are_files(self) -> bool:
        """True if results are in files; a resumed program still has them in its folder."""
        return self.kind not in ("lines", "pattern")

    def __str__(self) -> str:
        return f"{self.kind} {self.where}" + (f", step {self.step}" if self.step else "")


@dataclass(frozen=True)
class Program:
    r"""A program with placeholders in its command.

    | placeholder | replaced by |
    | --- | --- |
    | ``{name}`` | the hyperparameter's value |
    | ``{name:text}`` | the text if the value is true, nothing if it is false |
    | ``{name:text|other}`` | the text if the value is true, the other text if it is false |
    | ``{{name}}`` | ``{name}`` itself |

    A word that consists of a placeholder with a text is omitted if nothing replaces it. If a hyperparameter is None,
    its word is omitted. If the word is only the placeholder, a word before it that begins with ``-`` is omitted, too,
    as in ``--lr {lr}``. A shell's command gets ``null`` instead, and ``{name:text|other}`` the other text.

    Args:
        words: the words of the command; for a shell, a single word with the text of the command.
        results: location and format of its results.
        is_shell: True if a shell runs it.
        resumes: True if it can resume from the files of an interrupted attempt in the trial's folder.

    Example:
        >>> program = Program(("train", "--lr={lr}", "{fast:--fast}"), Results("file", "metrics.json"))
        >>> program.filled({"lr": 0.5, "fast": True}), program.filled({"lr": 1, "fast": False})
        (['train', '--lr=0.5', '--fast'], ['train', '--lr=1'])
        >>> program = Program(("train", "-m", "{momentum}", "--seed", "{seed}"), program.results)
        >>> program.filled({"momentum": None, "seed": 3}), program.placeholders
        (['train', '--seed', '3'], ['momentum', 'seed'])
    """

    words: tuple[str, ...]
    results: Results
    is_shell: bool = False
    resumes: bool = False

    @property
    def command(self) -> str:
        """The command as text, for `words_of` to split into words again; a shell's command is unchanged.

        Empty words and words with whitespace, quotes or backslashes are quoted, but not a shell's operators and ``$``.
        """
        if self.is_shell:
            return self.words[0]
        return " ".join(word if re.fullmatch(r"[^\s\"'\\]+", word) else shlex.quote(word) for word in self.words)

    @property
    def shell_words(self) -> list[str]:
        """Shell operators among the words of a program that runs without a shell; probably mistakes."""
        return [] if self.is_shell else [word for word in self.words if word in _SHELL_OPERATORS]

    @property
    def placeholders(self) -> list[str]:
        """Names of the placeholders, each once, in order."""
        names = (match["name"] for word in self.words for match in _PLACEHOLDER.finditer(word))
        return list(dict.fromkeys(filter(None, names)))

    def filled(self, values: Mapping[str, Any]) -> list[str]:
        """Return the words to run, with placeholders replaced; for a shell, ``/bin/sh -c`` and its command.

        Args:
            values: values by placeholder.

        Raises:
            KeyError: if a placeholder has no value.
            TypeError: if a value that is inserted isn't JSON data.
        """
        if self.is_shell:
            return ["/bin/sh", "-c", _filled(self.words[0], values, quote=shlex.quote)]
        words: list[str] = []
        for previous, word in pairwise(["", *self.words]):
            if _lacks_value(word, values):
                is_value = _PLACEHOLDER.fullmatch(word) and not _is_flag(word)
                if previous.startswith("-") and is_value and not _PLACEHOLDER.search(previous):
                    words.pop()
            elif (text := _filled(word, values)) or not _is_flag(word):
                words.append(text)
        return words


def _lacks_value(word: str, values: Mapping[str, Any]) -> bool:
    return any(match["name"] and values[match["name"]] is None for match in _PLACEHOLDER.finditer(word))


def _is_flag(word: str) -> bool:
    match = _PLACEHOLDER.fullmatch(word)
    return match is not None and match["text"] is not None


def _filled(word: str, values: Mapping[str, Any], quote: Any = str) -> str:
    """Replace the placeholders in a word; `quote` quotes values for a shell. KeyError if one has no value."""

    def text(match: re.Match[str]) -> str:
        if match["name"] is None:
            return f"{{{match['plain']}}}"
        value = values[match["name"]]
        if match["text"] is None:
            return str(quote(text_of(value)))
        yes, _, no = match["text"].partition("|")
        return yes if value else no

    return _PLACEHOLDER.sub(text, word)


def text_of(value: Any) -> str:
    """Return a hyperparameter's value as text for a program: a string unchanged, other values as JSON.

    Raises:
        TypeError: if another value isn't JSON data.

    Example:
        >>> [text_of(value) for value in (0.001, 1e-05, 3, True, None, "adam", [8, 8])]
        ['0.001', '1e-05', '3', 'true', 'null', 'adam', '[8, 8]']
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as nested tables of a configuration, split at the dots in their names.

    No name may be a table of another one, as ``model`` is of ``model.width``: the later one would raise TypeError or
    AttributeError, or replace the other.

    Example:
        >>> nested({"lr": 0.1, "model.width": 8, "model.depth": 2})
        {'lr': 0.1, 'model': {'width': 8, 'depth': 2}}
    """
    config: dict[str, Any] = {}
    for name, value in values.items():
        *tables, last = name.split(".")
        table = config
        for key in tables:
            table = table.setdefault(key, {})
        table[last] = value
    return config


def variable_of(name: str) -> str:
    """Return the name of the environment variable that passes a hyperparameter to a program.

    Example:
        >>> variable_of("model.width")
        'STUDY_PARAM_MODEL_WIDTH'
    """
    return f"STUDY_PARAM_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"


def words_of(command: str) -> Sequence[str]:
    """Split a command into words as a shell does.

    Raises:
        ValueError: if a quotation isn't closed.
    """
    return shlex.split(command)

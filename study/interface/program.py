"""A program that trains: the words of its command, with placeholders, and where its results are."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

CONFIG_FILES: Final = {"config": "config.json", "config.yaml": "config.yaml"}
"""Names of the files of the hyperparameters, by their placeholders."""

GIVEN: Final = ("seed", "folder", *CONFIG_FILES, "code")
"""Placeholders that aren't hyperparameters: the seed, the trial's folder, a file of the hyperparameters, the code."""

SEEDS: Final = ("seed", "random_seed", "rng_seed", "manual_seed")
"""Names of arguments and parameters that are known to be seeds."""

NAME: Final = r"[A-Za-z_]\w*(?:[.-]\w+)*"
"""Pattern of a hyperparameter's name."""

_OF_SHELLS = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", "&>"})
_PLACEHOLDER = re.compile(rf"\{{\{{(?P<plain>[^{{}}]*)\}}\}}|\{{(?P<name>{NAME})(?::(?P<text>[^{{}}]*))?\}}")

ResultsKind = Literal["file", "csv", "lines", "pattern", "tensorboard", "mlflow"]


@dataclass(frozen=True)
class Results:
    """Where a program's results are.

    Args:
        kind: ``file`` of JSON, or of a JSON object a line; ``csv`` with a header; ``lines`` of JSON or a ``pattern`` in
            its output; events of ``tensorboard``; runs of ``mlflow``.
        where: a path in the trial's folder, or the pattern.
        step: the name of the numbers that are steps; empty for ``step``, where there is such a name.
    """

    kind: ResultsKind
    where: str
    step: str = ""

    @property
    def are_files(self) -> bool:
        """Whether they are in files, and so there when the program goes on in the folder of an earlier attempt."""
        return self.kind not in ("lines", "pattern")

    def __str__(self) -> str:
        return f"{self.kind} {self.where}" + (f", step {self.step}" if self.step else "")


@dataclass(frozen=True)
class Program:
    r"""A program, and what it is given.

    In a word of the command, ``{name}`` is replaced by a value, ``{name:text}`` by the text where the value is true,
    and by nothing where it is false; ``{name:text|other}`` has another text for false. A word of such a placeholder
    alone is left out where nothing replaces it. Where a hyperparameter has no value, its word is left out, and an
    option before it, as in ``--lr {lr}``. ``{{name}}`` stands for ``{name}``.

    Args:
        words: the words of the command; for a shell, its text alone.
        results: where its results are.
        is_shell: whether a shell runs it.
        resumes: whether it goes on from what an interrupted attempt has left in the trial's folder.

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
        """The command as a text."""
        if self.is_shell:
            return self.words[0]
        return " ".join(word if re.fullmatch(r"[^\s\"'\\]+", word) else shlex.quote(word) for word in self.words)

    @property
    def shell_words(self) -> list[str]:
        """The words that only a shell would understand, of a program that none runs."""
        return [] if self.is_shell else [word for word in self.words if word in _OF_SHELLS]

    @property
    def placeholders(self) -> list[str]:
        """The names of the placeholders, once each."""
        found = (match["name"] for word in self.words for match in _PLACEHOLDER.finditer(word))
        return list(dict.fromkeys(filter(None, found)))

    def filled(self, values: Mapping[str, Any]) -> list[str]:
        """Return the words to run, with values in place of the placeholders."""
        if self.is_shell:
            return ["/bin/sh", "-c", _filled(self.words[0], values, quote=shlex.quote)]
        words: list[str] = []
        for before, word in pairwise(["", *self.words]):
            if _lacks_value(word, values):
                if before.startswith("-") and _PLACEHOLDER.fullmatch(word) and not _PLACEHOLDER.search(before):
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
    """Return a hyperparameter's value as a program is given it: JSON, but for texts.

    Example:
        >>> [text_of(value) for value in (0.001, 1e-05, 3, True, None, "adam", [8, 8])]
        ['0.001', '1e-05', '3', 'true', 'null', 'adam', '[8, 8]']
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as the tables of a configuration: dots in names separate tables.

    Example:
        >>> nested({"lr": 0.1, "model.width": 8, "model.depth": 2})
        {'lr': 0.1, 'model': {'width': 8, 'depth': 2}}
    """
    config: dict[str, Any] = {}
    for name, value in values.items():
        *tables, last = name.split(".")
        table = config
        for one in tables:
            table = table.setdefault(one, {})
        table[last] = value
    return config


def variable_of(name: str) -> str:
    """Return the environment variable in which a program finds a hyperparameter.

    Example:
        >>> variable_of("model.width")
        'STUDY_PARAM_MODEL_WIDTH'
    """
    return f"STUDY_PARAM_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"


def words_of(command: str) -> Sequence[str]:
    """Split a command as a shell would.

    Raises:
        ValueError: if a quotation isn't closed.
    """
    return shlex.split(command)

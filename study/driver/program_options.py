"""The arguments of a program, from its command and its --help text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from study.interface.program import SEEDS, Program, Results

_FOLDERS = re.compile(r"(out|output|save|log|result|results|checkpoint|work|run)_?(dir|path|folder)?")
_OPTION = re.compile(r"^\s{1,8}(?:-\w(?:[ =][^\s,]+)?,\s+)?--(?P<name>[\w.-]+)(?:[ =](?P<value>\{[^}]*\}|[^\s/]+))?")
_DEFAULT = re.compile(r"[(\[]\s*default(?: is|:|=)?\s*(?P<value>[^)\]]+?)\s*[)\]]", re.IGNORECASE)
_MOST_FIXED = 6


@dataclass
class Arguments:
    """The arguments of a program.

    Args:
        words: words of the command, with placeholders.
        values: the values of the placeholders.
        others: other options of the program, for readers.
    """

    words: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def options_in(help_text: str) -> dict[str, tuple[str | None, str]]:
    """Return the long options, such as ``--lr``, in a help text, except ``help`` and ``version``.

    Only indented lines that begin with an option count, and the first long option of each.

    Returns:
        By option, without its leading hyphens: its value's name, None for a flag; and its default, empty if unknown.
    """
    options: dict[str, tuple[str | None, str]] = {}
    blocks: list[list[str]] = []
    for line in help_text.splitlines():
        if _OPTION.match(line):
            blocks.append([line])
        elif blocks and line.startswith("  "):
            blocks[-1].append(line.strip())
    for block in blocks:
        match = _OPTION.match(block[0])
        assert match is not None
        default = _DEFAULT.search(" ".join(block))
        if match["name"] not in ("help", "version"):
            options[match["name"]] = (match["value"], "" if default is None else default["value"])
    return options


def arguments_of(
    words: Sequence[str], options: Mapping[str, tuple[str | None, str]], swept: Mapping[str, str]
) -> Arguments:
    """Return a command's arguments, with placeholders for the values of its ``--options``, and missing options added.

    Options are added for the seed, the folder and swept hyperparameters; the latter unless the words have the
    placeholder ``{config}``. Without any words, the first six options with a number or text as default are added, too.
    `Arguments.others` lists the remaining ones.

    Args:
        words: the words after the program.
        options: the program's options, from `options_in`.
        swept: the option of each swept hyperparameter.
    """
    arguments, given, place = Arguments(), set[str](), 0
    while place < len(words):
        word = words[place]
        place += 1
        option, equals, value = word.partition("=")
        option = option.removeprefix("--")
        if not word.startswith("--") or not option or _placeholders([word]):
            arguments.words.append(word)
            given.add(option)
            continue
        given.add(option)
        if not equals:
            if place == len(words) or words[place].startswith("--") or options.get(option, ("", ""))[0] is None:
                arguments.words.append(word)  # a flag
                continue
            value, place = words[place], place + 1
            if _placeholders([value]):
                arguments.words += [word, value]
                continue
        _add(arguments, option, _value(value), with_equals=bool(equals))
    placeholders = _placeholders(arguments.words)
    spelled = {_name(option): option for option in options}
    for name, option in swept.items():
        if name not in placeholders and "config" not in placeholders:
            option = spelled.get(_name(option), option)
            is_flag = options.get(option, ("", ""))[0] is None
            arguments.words += [f"{{{name}:--{option}}}"] if is_flag else [f"--{option}", f"{{{name}}}"]
            given.add(option)
    if "seed" in placeholders:
        given.update(option for option in options if _name(option) in SEEDS)
    for option, (kind, default) in options.items():
        if option in given:
            continue
        if kind is not None and (_name(option) in SEEDS or _FOLDERS.fullmatch(_name(option))):
            _add(arguments, option, None)
        elif not words and kind is not None and _has_value(default) and len(arguments.values) < _MOST_FIXED:
            _add(arguments, option, _value(default))
        else:
            arguments.others.append(f"--{option}" + (f" (default {default})" if default else ""))
    return arguments


def _add(arguments: Arguments, option: str, value: Any, *, with_equals: bool = False) -> None:
    """Add an option with a placeholder: of the seed, of the folder, or of a hyperparameter with this value."""
    name = _name(option)
    if name in SEEDS:
        placeholder = "{seed}"
    elif value is None or (_FOLDERS.fullmatch(name) and isinstance(value, str)):
        placeholder = "{folder}"
    else:
        placeholder = f"{{{name}}}"
        arguments.values[name] = value
    arguments.words += [f"--{option}={placeholder}"] if with_equals else [f"--{option}", placeholder]


def _name(option: str) -> str:
    return option.replace("-", "_")


def _has_value(default: str) -> bool:
    return default not in ("", "None", "True", "False", "==SUPPRESS==")


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text


def _placeholders(words: Sequence[str]) -> list[str]:
    return Program(tuple(words), Results("file", "metrics.json")).placeholders

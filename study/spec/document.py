"""Conversion of YAML text to plain data with line numbers, and back.

Scalars follow YAML 1.2: `1e6` is a number, `off` and `no` are text, `010` is ten. But `1_000` is a number, and `0x1f`
and `0o17` are text. Anchors, aliases and tags are rejected, and size and depth are limited, so that no file can exhaust
memory or run code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from study.errors import Problem

Path = tuple[str | int, ...]
"""Place of a value: keys and list indices from the top."""

_MOST_BYTES = 2**20
_MOST_EVENTS = 50_000
_MOST_DEPTH = 20

_NULL = re.compile(r"|~|null|Null|NULL")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.nan|\.NaN|\.NAN")
_HALF = re.compile(r"[\ud800-\udfff]")
_MOST_DIGITS = 400


@dataclass
class Document:
    """Content of a file, with line numbers.

    Args:
        data: plain dicts, lists, text, numbers, booleans and None.
        lines: the 1-based line of each key or list item.
        problems: the mistakes found so far.
        replaced: places with overridden values, which have no line.
        notices: sentences on side effects of overrides.
        places: for each value from a configuration file, that file's name and the line.
    """

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    replaced: set[Path] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    places: dict[Path, str] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """Return the line of a value, or of the nearest table around it; None for overridden values or without one."""
        if self._is_replaced(path):
            return None
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def problem(self, path: Path, message: str) -> Problem:
        """Return the problem at a place, with the place's line in the file, or the source of its value."""
        if (place := self.places.get(path[:2])) is not None:
            return Problem(where(path), None, message, place)
        return Problem(where(path), self.line(path), message, "KEY=VALUE" if self._is_replaced(path) else "file")

    def _is_replaced(self, path: Path) -> bool:
        return any(path[: len(place)] == place for place in self.replaced)


def where(path: Path) -> str:
    """Format a place, with list items counted from 1; ``study file`` for the top.

    Example:
        >>> where(("zip", "schedule", 2, "sparsity_end"))
        'zip.schedule[3].sparsity_end'
    """
    text = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "study file"


def read(content: bytes | str) -> Document:
    """Read YAML into plain data; mistakes are in the document's `problems`.

    If the content isn't YAML or is refused (see the module), `data` is None. Of a key that is given twice, the first
    value is kept.

    Args:
        content: the file's content; bytes must be UTF-8.
    """
    document = Document()
    if len(content) > _MOST_BYTES:
        return _refusal(f"must have at most {_MOST_BYTES:,} bytes, but has {len(content):,}", None)
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1 if isinstance(content, bytes) else None
        return _refusal("must be text in UTF-8, but has other bytes here", line)
    try:
        refusal = _find_danger(text)
        if refusal is not None:
            return _refusal(*refusal)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        return _refusal(f"must be YAML, but {_message(error)}", _line_of(error))
    except (ValueError, OverflowError):  # of "\U00110000"
        return _refusal("has an escape in a text that isn't a character of Unicode", None)
    if node is None:
        return _refusal("is empty; it must have study, seeds, and one of task with models, train, or command", None)
    document.data = _build(node, (), document)
    return document


def _refusal(message: str, line: int | None) -> Document:
    return Document(problems=[Problem("study file", line, message)])


def _line_of(error: yaml.YAMLError) -> int | None:
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark is not None else None


def _message(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be read"
    return str(problem).replace("\n", " ")


def _find_danger(text: str) -> tuple[str, int | None] | None:
    """Return the message and line of the first forbidden parser event; None without one."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        line = event.start_mark.line + 1 if event.start_mark is not None else None
        if count >= _MOST_EVENTS:
            return f"must have at most {_MOST_EVENTS:,} values, but has more", line
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            return "anchors and aliases (& and *) aren't allowed; write the values out", line
        tag = getattr(event, "tag", None)
        if tag is not None:
            return f"tags aren't allowed, but got {tag!r}", line
        if isinstance(event, yaml.ScalarEvent) and _HALF.search(event.value):
            return (
                "must be Unicode text, but has half of a surrogate pair (\\ud800 to \\udfff): write \\U0001f600",
                line,
            )
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                return "must be one document, but another starts here", line
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            return f"values must nest at most {_MOST_DEPTH} deep, but nest deeper", line
    return None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _build(node: yaml.Node, path: Path, document: Document) -> Any:
    document.lines.setdefault(path, _line(node))
    if isinstance(node, yaml.MappingNode):
        return _build_table(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, i), document) for i, item in enumerate(node.value)]
    return _scalar(node)


def _build_table(node: yaml.MappingNode, path: Path, document: Document) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, line, value in _keys(node):
        inside = (*path, key)
        if key in table:
            before = document.lines[inside]
            message = f"the key is given twice, first on line {before}; keep one"
            document.problems.append(Problem(where(inside), line, message))
            continue
        document.lines[inside] = line
        table[key] = _build(value, inside, document)
    return table


def _keys(node: yaml.MappingNode) -> Iterator[tuple[str, int, yaml.Node]]:
    for key, value in node.value:
        # A key that is a list or table is always unknown, so its text suffices.
        yield str(key.value), _line(key), value


def _scalar(node: yaml.Node) -> Any:
    text = str(node.value)
    if getattr(node, "style", None) is not None:  # quoted, or a block of text
        return text
    return read_scalar(text)


def read_scalar(text: str) -> Any:
    """Return the value of a plain YAML scalar: None, a boolean, a number, or otherwise the text itself.

    Of more than 400 characters, it is always text.

    Example:
        >>> [read_scalar(text) for text in ("1e6", "010", "no", "null", "2001-01-02", "0-99")]
        [1000000.0, 10, 'no', None, '2001-01-02', '0-99']
    """
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if len(text) > _MOST_DIGITS:
        return text
    if _WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    if _REAL.fullmatch(text):
        return float(text.replace("_", ""))
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text


class _Dumper(yaml.SafeDumper):
    """Dumper for `read`: without anchors, and with quotes around texts that look like other values."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # PyYAML quotes by YAML 1.1, in which 1e6 and 08 are texts.
    style = None if read_scalar(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def as_yaml(data: Any, *, width: float = 80, is_inline: bool = False) -> str:
    """Return plain data as YAML that `read` reads back to equal data, with tuples as lists and keys as texts.

    `read` refuses texts with lone surrogates, data beyond its limits of size and depth, and bytes and sets. It changes
    the character U+0085 in texts, and reads dates and numbers of more than 400 digits as texts.

    Args:
        data: texts, numbers, booleans, None, and lists, tuples and dicts of these.
        width: the greatest line length in characters, where lines can be broken.
        is_inline: whether to write tables on one line, as lists of plain values always are.

    Raises:
        yaml.YAMLError: if a value has a type that PyYAML's `SafeDumper` can't write.

    Example:
        >>> print(as_yaml({"name": "1e6", "rate": 1e-5, "layers": (8, 8)}), end="")
        name: '1e6'
        rate: 1.0e-05
        layers: [8, 8]
    """
    flow = True if is_inline else None
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow, width=width)

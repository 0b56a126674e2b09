"""The digest of a user's code by its syntax tree."""

from __future__ import annotations

import pytest

from study.source import parsed_digest

CODE = b'''"""Train."""
from __future__ import annotations

import os, random as r
from .a import *

RATES = {"a": 0.1, **{}, 2: -1j, 3: b"\\xff", 4: 1e999, 5: None, 6: ...}


@r.seed(1)
class Trial(Base, metaclass=Meta):
    """A trial."""

    width: int = 4
    (depth): int

    async def run(self, a, /, b=1, *rest, c, d=None, **more) -> None:
        """Run it."""
        async with a as x, b:
            return [i async for i in x if i for k in i]


def text(x, w):
    "Write it."
    return f"{x!r:>{w}.2f} {x=} {w:}" f"" "a" 'b' f"{{{x:%Y-%m}}}" f"{ x = !s:^20}"


match x:
    case [1, *rest] if rest: pass
    case {"k": v, **r} | P(1, y=None) | True | -1 as n: pass
    case _: lambda z: (yield z)
try:
    raise E from e
except* (A, B) as g:
    del a[1:2, ...], b.c
assert (a := 5) if x else not y, "\\u00e9\\U0001f600\\ud800"
'''


def digest(code: bytes | str, name: str = "train.py") -> str:
    return parsed_digest({name: code.encode() if isinstance(code, str) else code})


def test_the_digest_is_the_same_on_every_python():
    """Digests are in the ids of stored trials: they don't depend on Python's version, and never change."""
    assert digest(CODE) == "a8ed40aee6a4acd154c761e1d034c21a2a931ee0994d1ae61e59eeb26193560e"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1", "# one\nx  =  1;\n\n"),
        ("def f(x):\n    'Return it.'\n    return x", "def f(x):\n\n    return (x)\r\n"),
        ("'''Doc.'''\nclass A:\n    'Doc.'\n    y = 1", "'''Other.'''\nclass A:\n  'Other.'\n  y = 1"),
        ("x = 'a' 'b' + u'c'", 'x = ("ab"\n + "c")'),
        ("f(1, 2)", "f(\n    1,\n    0x2,\n)"),
    ],
)
def test_comments_docstrings_and_formatting_do_not_count(before: str, after: str):
    """Edits of comments, docstrings and formatting keep the digest."""
    assert digest(before) == digest(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = None", "x = 'None'"),
        ("x = 1\n'a'", "x = 1\n'b'"),
        ("def f(a=1, *, b): pass", "def f(a, *, b=1): pass"),
        ("def f(a: int): pass", "def f(a: float): pass"),
        ("x = {**a, b: c}", "x = {b: c, **a}"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("x = f'{a:2}'", "x = f'{a}'"),
        ("x = f'{a}b'", "x = f'a{b}'"),
        ("from __future__ import annotations\nx = 1", "x = 1"),
        ("from . import a", "from .. import a"),
        ("x: int", "(x): int"),
        ("def f(): pass", "async def f(): pass"),
        ("[a, [b]]", "[[a], b]"),
        ("f(x)(y)", "f(x, y)"),
    ],
)
def test_other_edits_of_the_code_count(before: str, after: str):
    """An edit of constants and their types, defaults, annotations, order or imports changes the digest."""
    assert digest(before) != digest(after)


def test_docstrings_count_where_code_reads_them():
    """If any file reads docstrings, docstrings of all files change the digest."""
    reader = b"import a\nprint(a.f.__doc__)"
    first, second = b"def f():\n    'A prompt.'", b"def f():\n    'Another prompt.'"
    assert digest(first) == digest(second)
    assert parsed_digest({"a.py": first, "b.py": reader}) != parsed_digest({"a.py": second, "b.py": reader})


def test_all_bytes_count_where_code_reads_its_own_text():
    """If code calls `inspect.getsource`, every byte changes the digest, even of comments."""
    code = "import inspect\ninspect.getsource(f)\n"
    assert digest(code) != digest(f"{code}# more\n")


def test_non_python_files_count_byte_by_byte():
    """Each byte of data and of unparsable sources changes the digest, and so do file names."""
    assert digest("a  b", "data.txt") != digest("a b", "data.txt")
    assert digest("a  b") != digest("a b")
    assert digest("x = 1", "a.py") != digest("x = 1", "b.py")
    assert digest("x = 1", "a.py") != digest("x = 1", "a.txt")


def test_deep_code_is_parsed():
    """A long sum, a deep tree, is digested without recursion."""
    deep = "x = " + " + ".join(["1"] * 900)
    assert digest(deep) == digest(f"{deep}  # long")

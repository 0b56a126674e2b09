"""Objects of a copy: the right code at any time, the user's line in import errors, and required marks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from study.errors import InputError
from study.source import CodeFolder, parse_import_string
from tests.study.source.builders import copied, deactivate, installed, marked, train, write

TRAIN = "mylab.spirals:train"


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch):
    """Deactivate copies before and after each test, check the search path, and remove new modules."""
    deactivate()
    modules, path = set(sys.modules), list(sys.path)
    yield
    deactivate()
    monkeypatch.undo()
    assert sys.path == path
    for name in sys.modules.keys() - modules:
        del sys.modules[name]


@pytest.fixture
def cache(tmp_path):
    """Return the folder of copies."""
    return tmp_path / "cache"


def test_two_versions_one_after_the_other(tmp_path, cache):
    """Each copy runs its own submodules and neighbours, in any order, and earlier objects still work."""
    lazy = "\ndef lazy():\n    from mylab.parts import part\n    import helpers\n    return part, helpers.HELP\n"
    folders, functions = [], []
    for value in (1, 2):
        text = marked("lazy()", "") + lazy
        write(tmp_path, mylab__="", mylab__spirals=text, mylab__parts=f"part = {value}", helpers=f"HELP = {value * 10}")
        folders.append(copied(tmp_path, TRAIN, cache))
    for value in (1, 2, 1, 2):
        code = folders[value - 1]
        function = code.load(parse_import_string(TRAIN))
        assert function(0) == (value, value * 10)
        functions.append(function)
    assert functions[0] is functions[2]
    folders[0].activate()
    assert functions[0](0) == (1, 10)
    assert sum(entry.startswith(str(cache)) for entry in sys.path) == 1


def test_modules_may_be_imported_meanwhile(tmp_path, cache, monkeypatch):
    """Another thread may import modules while a folder scans the loaded modules."""

    class Importing(list):
        def __iter__(self):
            sys.modules.setdefault("imported_meanwhile", ModuleType("imported_meanwhile"))
            return super().__iter__()

    package = ModuleType("importing")
    package.__path__ = Importing(["/elsewhere"])
    folder = copied(write(tmp_path, mylab__spirals=marked("1")), TRAIN, cache)
    monkeypatch.setitem(sys.modules, "importing", package)
    assert folder.load(parse_import_string(TRAIN))(0) == 1
    assert "imported_meanwhile" in sys.modules


def test_objects_of_an_earlier_copy_still_work(tmp_path, cache):
    """A function loaded from one copy computes the same after another copy is activated."""
    first = copied(write(tmp_path, mylab__spirals=marked("helper()", "def helper():\n    return 1\n")), TRAIN, cache)
    function = first.load(parse_import_string(TRAIN))
    second = copied(write(tmp_path, mylab__spirals=marked("2")), TRAIN, cache)
    assert (train(second), function(0)) == (2, 1)


def test_edits_do_not_matter(tmp_path, cache, monkeypatch):
    """Edits of the user's folder don't affect a running copy, even if the folder is on Python's path."""
    monkeypatch.syspath_prepend(
        write(tmp_path / "live", mylab__spirals=marked("lazy()", "from mylab import lazy_part\n"))
    )
    write(tmp_path / "live", mylab__lazy_part="def lazy():\n    from mylab.late import VALUE\n    return VALUE\n")
    write(tmp_path / "live", mylab__late="VALUE = 1", mylab__="")
    write(tmp_path / "live", mylab__spirals=marked("lazy_part.lazy()", "from mylab import lazy_part\n"))
    code = copied(tmp_path / "live", TRAIN, cache)
    write(tmp_path / "live", mylab__late="VALUE = 2", mylab__spirals="raise AssertionError")
    assert train(code) == 1


def test_a_module_imported_before_is_restored(tmp_path, cache, monkeypatch):
    """A user's module that a process imported itself is replaced by the copy, and restored afterwards."""
    monkeypatch.syspath_prepend(
        write(tmp_path / "live", helpers="VALUE = 1", mylab__spirals=marked("0", "import helpers\n"))
    )
    import helpers

    code = copied(tmp_path / "live", TRAIN, cache)
    with code:
        train(code)
        assert sys.modules["helpers"] is not helpers
    assert sys.modules["helpers"] is helpers
    assert "mylab" not in sys.modules


def test_code_is_read_past_the_active_copy(tmp_path, cache, monkeypatch):
    """While a copy is active, code is read from the user's folder, never from the copy."""
    monkeypatch.syspath_prepend(write(tmp_path / "src", mylab__spirals=marked("1")))
    with copied(tmp_path, TRAIN, cache) as first:
        write(tmp_path / "src", mylab__spirals=marked("2"))
        second = copied(tmp_path, TRAIN, cache)
        assert (train(first), train(second)) == (1, 2)


def test_a_search_path_of_the_users_own(tmp_path, cache):
    """Folders that the code adds to the search path, and modules from them, are removed with the copy."""
    before = "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\nimport part\n"
    folders = []
    for value in (1, 2):
        write(tmp_path, mylab__spirals=marked("part.VALUE", before), mylab__part=f"VALUE = {value}")
        folders.append(copied(tmp_path, TRAIN, cache))
    assert [train(folders[index]) for index in (0, 1, 0)] == [1, 2, 1]
    folders[0].deactivate()
    assert "part" not in sys.modules
    assert not any(entry.startswith(str(cache)) for entry in sys.path)


def test_data_lie_beside_the_code(tmp_path, cache):
    """Included files are beside the code's own `__file__`."""
    text = marked("TEXT", "from pathlib import Path\nTEXT = Path(__file__).with_name('a.csv').read_text()\n")
    write(tmp_path, mylab__spirals=text)
    (tmp_path / "mylab/a.csv").write_text("1,2")
    assert train(copied(tmp_path, TRAIN, cache, "mylab/*.csv")) == "1,2"
    with pytest.raises(InputError, match=r"mylab/spirals\.py, line 2:\n.*\nFileNotFoundError"):
        train(copied(tmp_path, TRAIN, cache))


IN_SPIRALS = "mylab/spirals.py, line "
FAILURES = {
    "A = 1\nimport helprs": "2:\n    import helprs\nModuleNotFoundError: No module named 'helprs'\n"
    "It must be installed, or lie in the folder of the study file",
    "import tasks.mine": "1:\n    import tasks.mine\nModuleNotFoundError: No module named 'tasks.mine'\n"
    "tasks is a package of this program: a folder of yours with that name must be renamed",
    "def f():\n    return 1 / 0\nf()": "2:\n    return 1 / 0\nZeroDivisionError: division by zero",
    "A = (\n": "1:\n    A = (\nSyntaxError: '(' was never closed",
    "import json\njson.loads('{')": "2:\n    json.loads('{')\njson.decoder.JSONDecodeError: "
    "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    "import sys\nsys.exit(3)": "2:\n    sys.exit(3)\nSystemExit: 3\n"
    "A module must not end the program that imports it: write this under `if __name__ == '__main__':`",
    "raise ValueError('\\x1b[2J')": "1:\n    raise ValueError('\\x1b[2J')\nValueError: \\x1b[2J",
}


@pytest.mark.parametrize(("text", "reason"), FAILURES.items())
def test_an_import_that_fails_shows_the_users_line(tmp_path, cache, text, reason):
    """The message has the user's file, line and text, and the error's own message, without a traceback."""
    write(tmp_path, mylab__spirals=text)
    with pytest.raises(InputError) as caught:
        train(copied(tmp_path, TRAIN, cache))
    assert str(caught.value) == f"{TRAIN} can't be imported: {IN_SPIRALS}{reason}"
    assert caught.value.__suppress_context__


def test_an_undecodable_file_has_no_line(tmp_path, cache):
    """An undecodable file is refused with Python's own message."""
    write(tmp_path, mylab__spirals="A = '\0'")
    with pytest.raises(InputError, match=r"mylab\.spirals:train can't be imported: .*null bytes"):
        train(copied(tmp_path, TRAIN, cache))


def test_an_installed_module_that_fails_shows_its_line(tmp_path, monkeypatch):
    """Installed code is shown with its full path, and a missing module is named."""
    site = installed(write(tmp_path / "site-packages", mylab__="", mylab__spirals="1 / 0"))
    monkeypatch.syspath_prepend(site)
    with pytest.raises(InputError, match=rf"imported: {site}/mylab/spirals\.py, line 1:\n    1 / 0\nZeroDivisionError"):
        train(CodeFolder(None))
    with pytest.raises(InputError, match=r"no module is called mylab\.spiral, neither in the copy"):
        train(CodeFolder(None), "mylab.spiral:train")


def test_only_marked_objects_are_returned(tmp_path, cache):
    """An unmarked object is refused and never called; subclasses of a required base class need no mark."""
    text = """
    import os
    from os import system
    class Base: pass
    class Task(Base): pass
    def plain(seed): raise AssertionError
    number = 1
    """
    code = copied(write(tmp_path, mylab__spirals=text + marked("1").replace("\n", "\n    ")), TRAIN, cache)
    base = code.load(parse_import_string("mylab.spirals:Task"), (object,)).__mro__[1]
    assert code.load(parse_import_string("mylab.spirals:Task"), (base,)).__name__ == "Task"
    for name in ("system", "plain", "number", "os", "Base", "Task"):
        bases = (base,) if name != "Task" else ()
        with pytest.raises(InputError, match=rf"mylab\.spirals:{name} isn't marked .*: write @seeded above it"):
            code.load(parse_import_string(f"mylab.spirals:{name}"), bases)
    with pytest.raises(InputError, match=r"has no trian; did you mean 'train'"):
        code.load(parse_import_string("mylab.spirals:trian"))
    with pytest.raises(InputError, match=r"has no xyz; a study may call Task, train"):
        code.load(parse_import_string("mylab.spirals:xyz"), (base,))


def test_an_import_by_a_computed_name_is_refused(tmp_path, cache, monkeypatch):
    """An import by a computed name is refused, as the copy lacks the module, unless the study includes the module."""
    text = marked("1", "import importlib\nhelpers = importlib.import_module('help' + 'ers')\n")
    monkeypatch.syspath_prepend(write(tmp_path / "live", mylab__spirals=text, helpers=""))
    with pytest.raises(
        InputError, match=r"imports helpers from .*helpers\.py, which isn't in the copy.*`import helpers`"
    ):
        train(copied(tmp_path / "live", TRAIN, cache))
    assert train(copied(tmp_path / "live", TRAIN, cache, "helpers.py")) == 1


def test_a_package_of_the_same_name_here(tmp_path, cache, monkeypatch):
    """The copy is preferred to an installed package of its name, but an error if that package is already imported."""
    code = copied(write(tmp_path / "study", mylab__="", mylab__spirals=marked("1")), TRAIN, cache)
    site = installed(write(tmp_path / "site-packages", mylab__="", mylab__spirals=marked("2")))
    monkeypatch.syspath_prepend(site)
    with code:
        assert train(code) == 1
    import mylab

    assert mylab.__file__ == str(site / "mylab/__init__.py")
    with pytest.raises(InputError, match=r"two modules are called mylab: the study's, and .*site-packages/mylab"):
        train(code)
    assert sys.modules["mylab"] is mylab


def test_a_copy_without_init_is_refused_beside_an_installed_package(tmp_path, cache, monkeypatch):
    """If Python would prefer an installed package to a copy without `__init__.py`, the copy is refused."""
    code = copied(write(tmp_path / "study", mylab__spirals=marked("1")), TRAIN, cache)
    site = installed(write(tmp_path / "site-packages", mylab__="", mylab__spirals=marked("2")))
    monkeypatch.syspath_prepend(site)
    with pytest.raises(InputError, match=r"two modules are called mylab: the study's, and .*site-packages/mylab"):
        train(code)


def test_the_code_of_this_program_cannot_be_replaced(tmp_path):
    """A folder's `study`, `tasks` and `units` never replace this program's packages, even before their first import."""
    write(tmp_path, tasks__="raise AssertionError", mylab__spirals=marked("1"))
    script = (
        "import sys\nfrom pathlib import Path\nfrom study.errors import InputError\n"
        "from study.source import CodeFolder, parse_import_string\n"
        "try:\n    CodeFolder(Path(sys.argv[1])).load(parse_import_string('mylab.spirals:train'))\n"
        "except InputError as error:\n    print(error)\nfrom tasks import arithmetic\nprint(arithmetic.TASKS.keys())"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    words = [sys.executable, "-c", script, str(tmp_path)]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert "two modules are called tasks: the study's, and " in completed.stdout
    assert completed.stdout.endswith("dict_keys(['arithmetic', 'simple', 'single-module'])\n")

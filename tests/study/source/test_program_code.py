"""The code of a program: the files that its command names, and their imports from the user's code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from study.errors import InputError
from study.interface.program import Program, Results, words_of
from study.source import SourceCode, program_words, read_program_code
from tests.study.source.builders import installed, write


def code_of(folder: Path, command: str, *include: str, is_shell: bool = False) -> SourceCode:
    words = (command,) if is_shell else tuple(words_of(command))
    return read_program_code(Program(words, Results("file", "metrics.json"), is_shell), folder, include)


def names(folder: Path, command: str, *include: str, is_shell: bool = False) -> list[str]:
    return sorted(code_of(folder, command, *include, is_shell=is_shell).files)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with scripts, a package, configuration and more."""
    folder = tmp_path / "project"
    write(
        folder,
        train="import os, numpy\nimport helper\n",
        helper="import lab.data\nSCALE = 1\n",
        lab__="",
        lab__data="from . import deeper\n",
        lab__deep__er="",
        lab__train="import helper\n",
        other="",
        scripts__fit="import tools\n",
        scripts__tools="import lab\n",
    )
    (folder / "conf").mkdir()
    (folder / "conf/a.yaml").write_text("depth: 3\n")
    (folder / "conf/b.yaml").write_text("depth: 4\n")
    (folder / "train.sh").write_text("echo $1\n")
    (folder / "simulate").write_text("#!/bin/sh\n")
    return folder


LAB = ["lab/__init__.py", "lab/data.py", "lab/deep/er.py", "lab/train.py"]


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("python other.py {lr}", ["other.py"]),
        ("python ./other.py {lr}", ["other.py"]),
        ("sh train.sh {lr}", ["train.sh"]),
        ("./simulate {lr}", ["simulate"]),
        ("python other.py --config=conf/a.yaml -c conf/b.yaml", ["conf/a.yaml", "conf/b.yaml", "other.py"]),
        ("python other.py conf/{name}.yaml conf {folder}/x.py", ["other.py"]),
        ("cat {code}/conf/a.yaml --b={code}/conf/b.yaml", ["conf/a.yaml", "conf/b.yaml"]),
        ("simulate {lr} 3 --out ./results --save=model.bin", ["simulate"]),
        ("python -c 'print(1)'", []),
    ],
)
def test_the_files_that_a_command_names_are_its_code(project: Path, command: str, files: list[str]) -> None:
    """A file belongs to the code as a word or after an equals sign; folders and names with a placeholder don't."""
    assert names(project, command) == files


def test_imports_are_followed(project: Path) -> None:
    """Imports are followed from the script to modules beside it and in packages; other files are left out."""
    assert names(project, "python train.py {lr}") == ["helper.py", *LAB, "train.py"]


def test_a_module_is_run_from_its_package(project: Path) -> None:
    """After -m, all Python files of the module's package belong to the code, as for functions."""
    assert names(project, "python -m lab.train {lr}") == ["helper.py", *LAB]
    assert names(project, "python -u -m other") == ["other.py"]
    assert names(project, "python -m json.tool conf/a.yaml") == ["conf/a.yaml"]


def test_modules_beside_a_script_come_first(project: Path) -> None:
    """As in Python, the script's folder precedes the study's folder; trials have the latter in PYTHONPATH."""
    write(project, tools="raise SystemExit\n")
    assert names(project, "python scripts/fit.py") == ["helper.py", *LAB, "scripts/fit.py", "scripts/tools.py"]


def test_standard_modules_arent_code(project: Path) -> None:
    """A file with the name of a standard module is imported only if it lies beside the script."""
    write(project, scripts__fit="import json, random, time\n", scripts__json="", random="", time="", numpy="")
    assert names(project, "python scripts/fit.py") == ["scripts/fit.py", "scripts/json.py"]
    write(project, scripts__fit="import numpy\n")
    assert names(project, "python scripts/fit.py") == ["scripts/fit.py"]


def test_an_editable_package_is_code(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editable package belongs to the code, even in the study's folder as src/mine; an installed copy doesn't."""
    write(project, src__mine__="", src__mine__net="import theirs, far\n", train="import mine\n")
    installed(write(project.parent / "site", theirs=""), name="theirs")
    write(project.parent / "elsewhere", far="")
    for folder in (project / "src", project.parent / "site", project.parent / "elsewhere"):
        monkeypatch.syspath_prepend(folder)
    files = ["far.py", "mine/__init__.py", "mine/net.py"]
    assert names(project, "python train.py") == [*files, "train.py"]
    assert names(project, "python -m mine.net") == files


def test_included_files_are_code(project: Path) -> None:
    """Patterns add files; imports of an included script are still followed."""
    assert names(project, "python other.py", "conf/*.yaml") == ["conf/a.yaml", "conf/b.yaml", "other.py"]
    assert names(project, "python train.py", "*.py") == ["helper.py", *LAB, "other.py", "train.py"]
    assert names(project, "simulate2", "conf") == ["conf/a.yaml", "conf/b.yaml"]
    with pytest.raises(InputError, match=r"'conf/\*.toml' matches no file"):
        names(project, "python other.py", "conf/*.toml")


def test_nothing_outside_the_folder_is_code(project: Path) -> None:
    """Absolute paths, paths to parent folders and links to other folders don't belong to the code."""
    outside = write(project.parent / "outside", secret="") / "secret.py"
    assert names(project, f"python {outside} ../outside/secret.py --a={outside}") == []
    (project / "link.py").symlink_to(outside)
    with pytest.raises(InputError, match=r"link.py is part of the study's code, but leads by a link to .*secret.py"):
        names(project, "python link.py")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python trian.py", "the command names trian.py, and there is no such file in .*; did you mean 'train.py'?"),
        ("sh scripts/train.sh", "the command names scripts/train.sh, and there is no such file in .*'train.sh'"),
        ("./simulat {lr}", "the command names ./simulat, and there is no such file in "),
        ("cat {code}/conf/c.yaml", "the command names conf/c.yaml, and there is no such file in "),
    ],
)
def test_a_missing_script_is_reported(project: Path, command: str, message: str) -> None:
    """A missing file is an error for words with a script's suffix, words below {code}/, and a local program."""
    with pytest.raises(InputError, match=message):
        names(project, command)


def test_words_that_cannot_be_file_names_are_words(project: Path) -> None:
    assert names(project, f"echo {'x' * 5000} a\0b 'other.py and more' {{seed}}.py --x= =") == []


def test_a_shell_names_files_of_the_code(project: Path) -> None:
    """In a shell command, files of the code are those written {code}/..., since it runs in the trial's folder."""
    command = "cat {code}/conf/a.yaml | python {code}/train.py --b={code}/conf/b.yaml > log.txt"
    assert names(project, command, is_shell=True) == ["conf/a.yaml", "conf/b.yaml", "helper.py", *LAB, "train.py"]
    with pytest.raises(InputError, match=r"the command names the file train.py, which a shell .* write \{code\}/train"):
        names(project, "cd x; python train.py", is_shell=True)
    assert names(project, "# it's\npython {code}/other.py", is_shell=True) == ["other.py"]


def test_comments_change_no_identity_and_values_do(project: Path) -> None:
    """Comments of Python files don't change the identity; in other files each byte does."""
    before = code_of(project, "python train.py").identity()
    (project / "helper.py").write_text('"""Help."""\nimport lab.data  # data\nSCALE = 1\n')
    assert code_of(project, "python train.py").identity() == before
    (project / "helper.py").write_text("import lab.data\nSCALE = 2\n")
    changed = code_of(project, "python train.py").identity()
    (project / "lab/deep/er.py").write_text("A = 1\n")
    assert len({before, changed, code_of(project, "python train.py").identity()}) == 3
    shell = code_of(project, "sh train.sh").identity()
    (project / "train.sh").write_text("echo $1  # each byte counts\n")
    assert code_of(project, "sh train.sh").identity() != shell


def test_files_that_do_not_belong_change_nothing(project: Path) -> None:
    before = code_of(project, "python train.py")
    (project / "other.py").write_text("A = 1\n")
    (project / "metrics.json").write_text("{}")
    assert code_of(project, "python train.py").digest == before.digest


def test_words_lead_to_the_copy(tmp_path: Path) -> None:
    """Words that name files of the code become paths in the copy; a value that looks like such a path stays."""
    words = ["python", "./train.py", "--config=conf/a.yaml", "--x=y=conf/a.yaml", "conf", "train", "--out=o.yaml", ""]
    assert program_words(words, ["train.py", "conf/a.yaml"], tmp_path) == [
        "python", f"{tmp_path}/train.py", f"--config={tmp_path}/conf/a.yaml", f"--x=y={tmp_path}/conf/a.yaml",
        "conf", "train", "--out=o.yaml", "",
    ]  # fmt: skip


def test_the_copy_runs_as_the_original_did(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the copy, a script can import the modules beside it, in packages and in the study's folder."""
    write(project, scripts__fit="import tools, lab.data\nprint(tools.__file__)\n", lab__data="", scripts__tools="")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = code_of(project, "python scripts/fit.py")
    copy = code.unpacked()
    assert copy is not None
    words = program_words([sys.executable, "scripts/fit.py"], list(code.files), copy)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment["PYTHONPATH"] = str(copy)
    completed = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert completed.stdout == f"{copy / 'scripts/tools.py'}\n"

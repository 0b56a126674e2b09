"""A study's tags are one set, from its file and from `study tag`; they change no trial, result or study file."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from study.errors import InputError, SpecError, StoreError
from study.plan.plan import make_plan
from study.results.tags import change_tags, study_tags
from study.spec import parse_spec
from study.store import Store, StudyStore
from tests.commands import invoke

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(name="folder")
def _folder(finished_study: Path, tmp_path: Path) -> StudyStore:
    """Return a study of a copied store without tags."""
    return Store(shutil.copytree(finished_study / "studies", tmp_path / "studies")).open("little")


def contents(folder: StudyStore) -> dict[str, bytes | None]:
    """Return all files of a study except its tags."""
    return {key: folder.read_file(key) for key in folder.sizes() if key != "tags.json"}


def test_tags_of_file_and_command_are_one_set(folder: StudyStore) -> None:
    """The command adds to the file's tags, removes from them, and adds again; nothing else is written."""
    folder.write_spec(folder.read_spec() + "tags: [smoke, 2026]\n")
    before = contents(folder)
    assert study_tags(folder) == ("2026", "smoke")
    assert change_tags(folder, ["paper", "smoke"], ["2026"]) == ("paper", "smoke")
    assert change_tags(folder, ["2026"], ["paper", "smoke"]) == study_tags(folder) == ("2026",)
    assert contents(folder) == before
    with folder.lock():  # a running study
        assert change_tags(folder, ["smoke"], []) == ("2026", "smoke")


def test_reading_the_tags_of_an_old_store_writes_nothing(folder: StudyStore) -> None:
    """A study from before tags has none, and reading them writes nothing."""
    assert study_tags(folder) == change_tags(folder, [], []) == ()
    assert "tags.json" not in folder.sizes()


def test_the_command_prints_the_tags(folder: StudyStore) -> None:
    """All words after --remove, up to the next option, are removed."""
    store = ("--store", str(folder.path.parent if folder.path else ""))
    assert invoke("tag", "little", "a", "b", "c", *store).stdout == "little: a, b, c\n"
    assert invoke("tag", "little", "d", "--remove", "a", "b", *store).stdout == "little: c, d\n"
    assert json.loads(invoke("tag", "little", "--json", *store).stdout) == {"study": "little", "tags": ["c", "d"]}
    listed = json.loads(invoke("list", "--json", *store).stdout)["studies"]
    assert [row["tags"] for row in listed] == [["c", "d"]]
    assert invoke("tag", "nosuch", "a", *store).exit_code == 2


@pytest.mark.parametrize(
    ("add", "remove", "reason"),
    [(["a b"], [], "spaces"), ([], ["x"], "no tag 'x'"), (["a"], ["a"], "both"), (["a\x1b"], [], "characters")],
)
def test_a_wrong_tag_changes_nothing(folder: StudyStore, add: list[str], remove: list[str], reason: str) -> None:
    """Invalid tags, removing an absent tag, and adding and removing the same tag are errors."""
    change_tags(folder, ["a"], [])
    with pytest.raises(InputError, match=reason):
        change_tags(folder, add, remove)
    assert study_tags(folder) == ("a",)


@pytest.mark.parametrize("content", ["[", "{}", '{"added": [1], "removed": []}', '{"added": ["a b"], "removed": []}'])
def test_damaged_tags_are_an_error(folder: StudyStore, content: str) -> None:
    """The error names unreadable tags and has instructions."""
    folder.write_file("tags.json", content.encode())
    with pytest.raises(StoreError, match="remove it"):
        study_tags(folder)


def test_tags_travel_with_an_export(folder: StudyStore, tmp_path: Path) -> None:
    """An imported study has the tags; only exports with tags have a format that earlier versions refuse."""
    store = str(folder.path.parent if folder.path else "")
    for name, tags in {"without": [], "with": ["paper"]}.items():
        change_tags(folder, tags, [])
        assert invoke("export", "little", str(tmp_path / f"{name}.zip"), "--store", store).exit_code == 0
        with zipfile.ZipFile(tmp_path / f"{name}.zip") as archive:
            assert json.loads(archive.read("little/export.json"))["format"] == (2 if tags else 1)
    assert invoke("import", str(tmp_path / "with.zip"), "--store", str(tmp_path / "other")).exit_code == 0
    assert study_tags(Store(tmp_path / "other").open("little")) == ("paper",)


def test_tags_are_in_no_id() -> None:
    """A study file with tags plans the same trials; invalid tags are named with their line."""
    text = "study: a\ntask: {name: simple}\nmodels: [NMU]\nseeds: 3\n"
    plain, tagged = (make_plan(parse_spec(text + more, source="a.yaml")) for more in ("", "tags: smoke\n"))
    assert tagged.spec.tags == ("smoke",)
    assert [trial.id for trial in plain.trials] == [trial.id for trial in tagged.trials]
    with pytest.raises(SpecError, match=r"line 5: tags: must be .* but got 'a,b'(.|\n)*unknown key"):
        parse_spec(text + "tags: [fine, 'a,b']\nseedz: 3\n", source="a.yaml")

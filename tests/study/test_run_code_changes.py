"""Results of own code after an edit of the code: kept, discarded with a warning, or adopted by the user."""

from __future__ import annotations

import json
import shutil
import zipfile
from io import StringIO
from pathlib import Path

import pytest
import yaml

from study import api
from study.console import Console
from study.errors import InputError
from study.store import Store
from tests.study.lab import PACKED_STUDY, STUDY

BY_BYTES = Path(__file__).parent / "stores" / "code-by-bytes"
"""A store written by the version that compared own code byte by byte."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return the path of a store that doesn't exist yet."""
    return tmp_path / "studies"


def study(folder: Path, store: Path, **changed: object) -> api.Study:
    """Load the study of a folder's function; None removes a key."""
    return of_file(folder, store, STUDY | changed)


def of_file(folder: Path, store: Path, content: dict[str, object]) -> api.Study:
    text = yaml.safe_dump({name: value for name, value in content.items() if value is not None}, sort_keys=False)
    file = folder / "study file.yaml"
    file.write_text(text)
    return api.load(file, store=store, tracking_uri="off")


def run(loaded: api.Study) -> tuple[str, list[str]]:
    """Run a study in this process; return its output, and the packs in the store."""
    console = Console(file=StringIO(), width=500)
    loaded.train(console, local=True, pack_size=4)
    return console.file.getvalue(), packs(loaded)


def packs(loaded: api.Study) -> list[str]:
    return sorted(Store(loaded.where.store).study(loaded.name).pack_ids())


def edit(folder: Path, before: str, after: str, file: str = "mylab/training.py") -> None:
    """Replace a text in a file; the file must contain the text."""
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after))


COMMENT = ("@seeded\ndef train", "# A comment, and a docstring:\n@seeded\ndef train")
CHANGE = ("step * width / 16", "step * width / 8")


def warnings(loaded: api.Study) -> list[str]:
    return loaded.plan(quick=True).data["warnings"]


def test_a_comment_trains_nothing(lab: Path, store: Path) -> None:
    """Edits of comments and docstrings discard no result, and results are readable without the code."""
    _, before = run(study(lab, store))
    edit(lab, *COMMENT)
    edit(lab, '"""Return one number."""', '"""Return a number."""')
    assert study(lab, store).plan(quick=True).data["left"] == 0
    assert run(study(lab, store))[1] == before
    assert api.open_study("mine", store=store).results().counts["done"] == 6


@pytest.mark.parametrize("name", ["coin", "double"])
def test_results_of_code_compared_by_bytes_stay_valid(name: str, lab: Path, store: Path) -> None:
    """Results stored by an earlier version stay valid after a new comment, for functions and for proven tasks."""
    shutil.copytree(BY_BYTES, store)
    folder = store / name
    zipfile.ZipFile(next((folder / "code").glob("*.zip"))).extractall(lab)
    code = lab / f"{name}.py"
    code.write_text("# A comment.\n" + code.read_text())
    content = yaml.safe_load((folder / "spec.yaml").read_text())
    layouts = (folder / "layouts.json").read_bytes() if name == "double" else b""
    loaded = of_file(lab, store, content)
    before = packs(loaded)
    assert loaded.plan(quick=True).data["left"] == 0
    assert run(loaded)[1] == before

    extended = of_file(lab, store, content | {"seeds": 3})
    data = extended.plan(quick=True).data
    assert (data["done"], data["warnings"]) == (len(loaded.trials()), [])
    run(extended)
    counts = Store(store).study(name).trials_by_code()
    assert list(counts) == [extended.planned.spec.family.code]
    assert extended.planned.spec.family.code.startswith("sha256:")
    assert (folder / "layouts.json").read_bytes() == layouts if layouts else True
    assert len(list((folder / "code").glob("*.json"))) == len(list((folder / "code").glob("*.zip"))) == 2


def test_another_study_of_the_store_gives_its_results(lab: Path, store: Path) -> None:
    """A new study with equal code adopts another study's trials, even those stored by bytes of code."""
    shutil.copytree(BY_BYTES, store)
    zipfile.ZipFile(next((store / "coin" / "code").glob("*.zip"))).extractall(lab)
    (lab / "coin.py").write_text("# A comment.\n" + (lab / "coin.py").read_text())
    content = yaml.safe_load((store / "coin" / "spec.yaml").read_text()) | {"study": "again"}
    printed, names = run(of_file(lab, store, content))
    assert "4 trials are done already in other studies of this store" in printed
    assert all(name.startswith("adopted-") for name in names)


def test_plan_and_run_name_the_changed_file(lab: Path, store: Path) -> None:
    """After a change of the code, plan and run name the file, the number of lost trials, and the way to keep them."""
    run(study(lab, store))
    assert warnings(study(lab, store, seeds=4)) == []
    (lab / "mylab" / "more.py").write_text("x = 1")
    edit(lab, *CHANGE)
    (warning,) = warnings(study(lab, store))
    assert warning.startswith(
        "mylab/more.py and mylab/training.py changed since 6 trials of this study were run, so they don't count any "
        f"more. `study adopt '{lab}/study file.yaml'` keeps"
    )
    printed, _ = run(study(lab, store))
    assert warning in printed
    printed, _ = run(study(lab, store, seeds=4))  # counts cover results of the present code
    assert "changed since" not in printed


def test_adopted_results_count(lab: Path, store: Path) -> None:
    """Adopted results count after a change; reports say so, results stay unchanged, and more seeds can be added."""
    run(study(lab, store))
    before = {file: file.read_bytes() for file in (store / "mine" / "results").iterdir()}
    edit(lab, *CHANGE)
    entry = study(lab, store).adopt()
    assert (entry.trials, entry.changed) == (6, ["mylab/training.py"])
    assert study(lab, store).plan(quick=True).data["left"] == 0
    run(study(lab, store))
    assert {file: file.read_bytes() for file in (store / "mine" / "results").iterdir()} == before
    results = api.open_study("mine", store=store).results()
    assert results.counts["done"] == 6
    assert entry.sentence in results.notes
    table = api.open_study("mine", store=store).table()
    assert table.data["adopted"] == [entry.provenance()]
    page = (store / "mine" / "report" / "report.html").read_text()
    assert "6 trials were run before mylab/training.py changed" in page
    assert "adopted_by" in page or "adopted by" in page

    edit(lab, *COMMENT)
    run(study(lab, store, seeds=4))
    assert api.open_study("mine", store=store).results().counts["done"] == 8


def test_an_adoption_can_be_revoked(lab: Path, store: Path) -> None:
    """After a revocation, results of earlier code don't count until their code returns; the log has both entries."""
    run(study(lab, store))
    edit(lab, *CHANGE)
    study(lab, store).adopt()
    with pytest.raises(InputError, match="has already adopted these results"):
        study(lab, store).adopt()
    study(lab, store).adopt(undo=True)
    assert study(lab, store).plan(quick=True).data["left"] == 6
    assert api.open_study("mine", store=store).results().counts["done"] == 0
    assert [entry["earlier"] is None for entry in json.loads((store / "mine/code/adopted.json").read_text())] == [
        False,
        True,
    ]
    with pytest.raises(InputError, match="there is nothing to revoke"):
        study(lab, store).adopt(undo=True)
    edit(lab, *reversed(CHANGE))
    assert study(lab, store).plan(quick=True).data["left"] == 0


def test_code_after_an_adoption_is_compared_with_the_adopted_one(lab: Path, store: Path) -> None:
    """After an adoption, the next change is compared with the adopted code, and only it is named."""
    run(study(lab, store))
    edit(lab, *CHANGE)
    study(lab, store).adopt()
    (lab / "mylab" / "__init__.py").write_text("x = 1")
    (warning,) = warnings(study(lab, store))
    assert warning.startswith("mylab/__init__.py changed since 6 trials")


def test_an_imported_adoption_does_not_change_an_existing_study(lab: Path, store: Path, tmp_path: Path) -> None:
    """A ZIP file may bring code and results, but can't adopt code for a study in the store."""
    run(study(lab, store))
    other_store = shutil.copytree(store, tmp_path / "there")
    edit(lab, *CHANGE)
    changed = study(lab, store)
    changed.adopt()
    changed.export(tmp_path / "mine.zip")
    api.import_study(tmp_path / "mine.zip", store=other_store)
    assert study(lab, other_store).plan(quick=True).data["left"] == 6


def test_adoption_without_a_change_is_refused(lab: Path, store: Path) -> None:
    """Without own code, without a change, or with a fixed version, adoption is an error that names the reason."""
    run(study(lab, store))
    with pytest.raises(InputError, match="has no results that a change of its code discards"):
        study(lab, store).adopt()
    with pytest.raises(InputError, match="sets version: 3, which stands for its code"):
        study(lab, store, version=3).adopt()
    builtin = api.load("demo", ["seeds=1"], store=store, tracking_uri="off")
    Store(store).study("demo").write_spec(builtin.planned.spec.text)
    with pytest.raises(InputError, match="runs no code of your own"):
        builtin.adopt()


def test_adopted_code_is_proven_by_itself(packed_lab: Path, store: Path) -> None:
    """Adopted code has its own proof of packing, separate from that of the earlier code."""
    content = PACKED_STUDY | {"models": ["mylab.models:mlp"], "seeds": 2}
    run(of_file(packed_lab, store, content))
    edit(packed_lab, "nn.Tanh(), *middle", "nn.Dropout(0.5), *middle", "mylab/models.py")
    of_file(packed_lab, store, content).adopt()
    printed, _ = run(of_file(packed_lab, store, content | {"seeds": 4}))
    assert "train one after another" in printed

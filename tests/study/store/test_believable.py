"""A results file that this package can't have written is set aside with the reason, and doesn't count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from study.arrow import results_table
from study.errors import StoreError
from study.store import Store, StudyStore
from study.store.files import parquet
from study.store.validated import key_of
from tests.study.store.test_store import OTHER_PACK, PACK, SOURCE, failed, fill, put, solved


@pytest.fixture
def study(tmp_path: Path) -> StudyStore:
    """Return a study in a local store."""
    study = Store(tmp_path / "root").study("demo")
    study.write_spec("name: demo\n")
    return study


def with_column(name: str, change: Callable[[pa.ChunkedArray], pa.Array]) -> pa.Table:
    """Return the results of two trials, with other values in a column."""
    table = results_table([solved(1), solved(2)])
    field = table.field(name)
    return table.set_column(table.column_names.index(name), field, change(table[name]).cast(field.type))


def store(study: StudyStore, pack_id: str, table: pa.Table, provenance: dict[str, object] | None = None) -> None:
    put(study, key_of("results", pack_id), parquet(table, provenance or SOURCE, compression="snappy"))


FORGED: dict[str, tuple[pa.Table, str]] = {
    "another model": (with_column("model", lambda column: pa.array(["NAU"] * 2)), "cell id .* doesn't match its task"),
    "other seeds": (with_column("seed", lambda column: pc.add(column, 100)), "trial id .* doesn't match its cell and"),
    "another value": (with_column("learning_rate", lambda column: pc.add(column, 1)), "cell id .* doesn't match its"),
    "code": (with_column("engine", lambda column: pa.array(['"""\nimport os\n'] * 2)), "engine must be the name of"),
    "an outcome of its own": (with_column("outcome", lambda column: pa.array(["won"] * 2)), "outcome must be one of"),
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("forgery", FORGED)
def test_forged_rows_count_nowhere(study: StudyStore, forgery: str, read_only: bool) -> None:
    """A file with changed rows is named with the reason; its trials aren't done, and other files are read."""
    table, reason = FORGED[forgery]
    fill(study, OTHER_PACK, [solved(3)])
    store(study, PACK, table)
    reader = Store(study.where.rpartition("/")[0], read_only=read_only).study("demo")
    assert reader.done() == {solved(3).trial.id}
    assert reader.read_results()["seed"].to_pylist() == [3]
    assert reader.trials_of(PACK) == set()
    assert not reader.has_pack(PACK)
    assert reader.files_of(PACK) == {}
    with pytest.raises(StoreError, match="no readable results"):
        reader.read_pack(PACK)
    (notice,) = reader.notices
    assert pc.match_substring_regex(pa.array([notice]), reason)[0].as_py(), notice
    assert "\n" not in notice
    is_there = (Path(study.where) / key_of("results", PACK)).exists()
    assert is_there == read_only


def test_many_files_are_checked_together_and_only_the_forged_ones_go(study: StudyStore) -> None:
    """Among files with several columns, only the changed ones are rejected."""
    for number in range(20):
        results = [solved(number)] if number % 2 else [failed(number)]
        store(study, f"{number:04x}", results_table(results), SOURCE)
    for forgery, (table, _) in FORGED.items():
        store(study, forgery.replace(" ", "-"), table)
    assert sorted(study.read_results()["seed"].to_pylist()) == list(range(20))
    assert len(study.notices) == len(FORGED)
    assert len(study.pack_ids()) == 20


def test_a_file_that_is_changed_after_it_was_read_is_checked_again(study: StudyStore) -> None:
    """An earlier read doesn't vouch for a changed file of the same name."""
    fill(study, PACK, [solved(1), solved(2)])
    assert len(study.done()) == 2
    store(study, PACK, FORGED["other seeds"][0])
    assert study.done() == set()


@pytest.mark.parametrize("provenance", [{"git_commit": "a\x1b]0;title\x07"}, {"packages": {"torch\r": "1"}}])
def test_versions_that_cannot_be_shown_are_refused(study: StudyStore, provenance: dict[str, object]) -> None:
    """A provenance with a control character anywhere is set aside with its file."""
    store(study, PACK, results_table([solved(1)]), provenance)
    assert study.provenances() == []
    assert "its provenance has control characters" in study.notices[0]
    assert study.notices[0].isprintable()


def test_a_failure_of_any_length_is_stored_and_read(study: StudyStore) -> None:
    """Error texts are unrestricted, but readers get a limited length."""
    long = results_table([failed(1)])
    error = long.field("error")
    place = long.column_names.index("error")
    store(study, PACK, long.set_column(place, error, pa.array(['"""\x1b[2J\n' + "x" * 10**6])))
    (text,) = study.read_results()["error"].to_pylist()
    assert text.startswith('"""\x1b[2J\n')
    assert len(text) == 100_000
    assert study.notices == []

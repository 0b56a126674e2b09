"""Agreement of the hyperparameter tables in docs/reference/study-file.md with the declarations."""

from __future__ import annotations

from docs import hyperparameters

TEXT = hyperparameters.PAGE.read_text(encoding="utf-8")


def test_the_tables_are_as_declared() -> None:
    """docs/reference/study-file.md has a row for each hyperparameter, with its values and its default."""
    assert hyperparameters.updated(TEXT) == TEXT, "stale: run `python -m docs.hyperparameters`"
    rows = {name: declaration.meaning for name, declaration in hyperparameters.HYPERPARAMETERS.items()}
    assert all(f"| `{name}`" in TEXT and meaning in TEXT for name, meaning in rows.items())


def test_a_changed_row_is_stale() -> None:
    """A changed row is restored; text outside the marks is kept."""
    row = "| `learning_rate` | > 0 | 1e-3 |\n"
    assert row in TEXT
    for changed in (row.replace("1e-3", "1e-2"), ""):
        assert hyperparameters.updated(TEXT.replace(row, changed)) == TEXT

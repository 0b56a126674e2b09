"""Proven pack layouts of packed tasks, in a file of the study's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from study.interface.json_text import parse_json
from study.results.adoptions import adopted_identity
from study.spec.packed_tables import PackedSpec
from study.store import StudyStore

LAYOUTS = "layouts.json"
"""The file's name. Its keys are made by `_key`."""


def stored_layouts(recipes: Iterable[str], spec: PackedSpec, folder: StudyStore) -> dict[str, str]:
    """Return the layouts that were proven for recipes and the current code.

    Args:
        recipes: texts of recipes, by `study.interface.packed_family.recipe_text`.
        spec: the study.
        folder: its folder of the store.

    Returns:
        Layouts by recipe, without the recipes that weren't proven.

    Raises:
        StoreError: if the store can't be read.
    """
    layouts = _read(folder) if folder.exists else {}
    keys = {recipe: _key(recipe, spec, folder) for recipe in recipes} if layouts else {}
    return {recipe: layouts[key] for recipe, key in keys.items() if key in layouts}


def keep_layouts(layouts: Mapping[str, str], spec: PackedSpec, folder: StudyStore) -> None:
    """Add the layouts of recipes to the stored ones, replacing those of the same recipes and code.

    A file that isn't valid is replaced.

    Args:
        layouts: proven layouts by recipe.
        spec: the study.
        folder: its folder of the store.

    Raises:
        StoreError: if the store can't be read or written.
        StudyError: if `folder.check` fails.
    """
    proven = {_key(recipe, spec, folder): layout for recipe, layout in layouts.items()}
    folder.write_file(LAYOUTS, json.dumps(_read(folder) | proven, indent=1).encode())


def _read(folder: StudyStore) -> dict[str, str]:
    """Return the stored layouts by key; empty without a valid file, since layouts can be proven again."""
    try:
        layouts = parse_json(folder.read_file(LAYOUTS) or b"{}")
    except ValueError:
        return {}
    are_texts = isinstance(layouts, dict) and all(isinstance(layout, str) for layout in layouts.values())
    return layouts if are_texts else {}


def _key(recipe: str, spec: PackedSpec, folder: StudyStore) -> str:
    """Return the key of a recipe's layout.

    It is the recipe itself. Code whose identity comes from `version` or an adoption may have changed, so for such code
    the code's own identity is added.
    """
    code = spec.source_code
    if code is None or (spec.version is None and adopted_identity(folder, code.identity()) is None):
        return recipe
    return f"{recipe} {code.identity()}"

"""The published studies and the demo, as study files."""

from __future__ import annotations

from importlib import resources

_SUFFIX = ".yaml"


def preset_names() -> list[str]:
    """Return the names of the presets.

    Example:
        >>> "demo" in preset_names()
        True
    """
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(_SUFFIX) for file in files if file.name.endswith(_SUFFIX))


def preset_text(name: str) -> str:
    """Return the text of a preset.

    Args:
        name: one of `preset_names`.
    """
    return resources.files(__package__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")

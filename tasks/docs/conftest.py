"""Settings for the examples in these pages: those of docs/."""

from docs.conftest import restored_registries

__all__ = ["restored_registries"]

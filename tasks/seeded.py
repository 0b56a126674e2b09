"""The names of `study.interface.seeded`, for code that was written, or stored, when they were here."""

from study.interface.seeded import is_seeded, seeded

__all__ = ["is_seeded", "seeded"]

"""Names of `study.interface.seeded`, for older or stored code that imports them from here."""

from study.interface.seeded import is_seeded, seeded

__all__ = ["is_seeded", "seeded"]

"""The names and formats of all figures, known before anything is drawn."""

from __future__ import annotations

SEARCH = ("search-history", "search-front", "search-importance", "search-slices", "search-contour")
"""Names of the figures that only a search has."""

OVERALL = ("profiles", "improvement")
"""Names of the figures of methods aggregated over tasks."""

NAMES = (
    *SEARCH, "differences", "ranking", "figure", "training-time", "sources", *OVERALL, "series", "survival", "heat-map",
    "learning-curves", "gates", "weights",
)  # fmt: skip
"""Names of the figures' files, in the order of the page."""

KINDS = ("svg", "png", "pdf")
"""The formats they are written in."""

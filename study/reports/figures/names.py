"""The names and formats of all figures, known before anything is drawn."""

from __future__ import annotations

SEARCH = ("search-history", "search-front", "search-importance", "search-slices", "search-contour")
"""The names of the figures of a search."""

OVERALL = ("profiles", "improvement")
"""The names of the figures of methods aggregated over tasks."""

NAMES = (
    *SEARCH, "differences", "ranking", "figure", "training-time", "sources", *OVERALL, "series", "survival", "heat-map",
    "learning-curves", "gates", "weights",
)  # fmt: skip
"""The names of the figures' files, in the order of the page."""

KINDS = ("svg", "png", "pdf")
"""The formats of the figures' files."""

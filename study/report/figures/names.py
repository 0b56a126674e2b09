"""What figures there are, known before anything is drawn."""

from __future__ import annotations

NAMES = ("figure", "training-time", "survival", "heat-map", "learning-curves", "gates", "weights")
"""Names of the figures' files, in the order of the page."""

KINDS = ("svg", "png", "pdf")
"""The formats they are written in."""

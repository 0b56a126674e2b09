"""Marks around the generated tables of a page, and the folder of the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- map -->\n", "<!-- end -->\n"

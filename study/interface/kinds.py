"""The kinds of hyperparameters' values, by which their columns hold them; `study.arrow.kinds` says how."""

from __future__ import annotations

WHOLE, NUMBER, TEXT, FLAG, RANGE, JSON, NONE = "whole", "number", "text", "flag", "range", "json", "none"

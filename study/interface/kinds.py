"""Kinds of hyperparameter values, for the types of their columns (`study.arrow.kinds`)."""

from __future__ import annotations

WHOLE, NUMBER, TEXT, FLAG, RANGE, JSON, NONE = "whole", "number", "text", "flag", "range", "json", "none"

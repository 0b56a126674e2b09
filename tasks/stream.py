"""The names of `study.stream.stream`, for code that was written, or stored, when they were here."""

from study.stream.stream import Purpose

__all__ = ["Purpose"]

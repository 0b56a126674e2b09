"""Names of `study.stream.stream`, for older or stored code that imports them from here."""

from study.stream.stream import Purpose

__all__ = ["Purpose"]

"""The names of `study.stream.trial_stream`, for code that was written, or stored, when they were here."""

from study.stream.trial_stream import Dropout, Stream, noise

__all__ = ["Dropout", "Stream", "noise"]

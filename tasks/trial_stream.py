"""Names of `study.stream.trial_stream`, for older or stored code that imports them from here."""

from study.stream.trial_stream import Dropout, Stream, noise

__all__ = ["Dropout", "Stream", "noise"]

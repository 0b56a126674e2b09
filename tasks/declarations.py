"""The names of `study.interface.declarations`, for code that was written, or stored, when they were here."""

from study.interface.declarations import Hyperparameter, Metric, check_series

__all__ = ["Hyperparameter", "Metric", "check_series"]

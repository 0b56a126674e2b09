"""Names of `study.interface.declarations`, for older or stored code that imports them from here."""

from study.interface.declarations import Hyperparameter, Metric, check_series

__all__ = ["Hyperparameter", "Metric", "check_series"]

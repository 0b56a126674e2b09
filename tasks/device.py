"""The names of `study.stream.device`, for code that was written, or stored, when they were here."""

from study.stream.device import current_device, on_device, use_device

__all__ = ["current_device", "on_device", "use_device"]

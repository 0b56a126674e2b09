"""Names of `study.stream.device`, for older or stored code that imports them from here."""

from study.stream.device import current_device, on_device, use_device

__all__ = ["current_device", "on_device", "use_device"]

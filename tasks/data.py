"""Names of `study.interface.data`, for older or stored code that imports them from here."""

from study.interface.data import DataFile, data_path, is_digest, provide_data

__all__ = ["DataFile", "data_path", "is_digest", "provide_data"]

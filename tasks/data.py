"""The names of `study.interface.data`, for code that was written, or stored, when they were here."""

from study.interface.data import DataFile, data_path, is_digest, provide_data

__all__ = ["DataFile", "data_path", "is_digest", "provide_data"]

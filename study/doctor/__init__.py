"""Checks of machines, stores and servers before a study runs."""

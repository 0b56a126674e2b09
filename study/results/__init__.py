"""Stored results as tables, reports and lists."""

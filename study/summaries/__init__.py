"""Summaries: one row a cell or group, with counts, estimates and intervals, and the names that tell rows apart."""

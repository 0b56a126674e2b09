"""Summaries of trials: one row a cell or group, with counts, estimates, intervals and names."""

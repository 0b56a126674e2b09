"""Comparisons between rows of a report: plan, tests, and findings."""

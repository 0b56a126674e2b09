"""Comparisons between rows of a report: what is compared, by which test, and what can be said of it."""

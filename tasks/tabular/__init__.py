"""Tabular task: predict columns of a table from others."""

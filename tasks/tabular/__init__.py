"""The tabular task: learn columns of a table from others."""

"""Trials as one table: the only reader of results, whoever they are from."""

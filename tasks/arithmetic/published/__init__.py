"""Published results as data: CSV files, described in README.md."""

"""Published results as data: the CSV files that README.md describes."""

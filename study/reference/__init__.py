"""Published results as data: the CSV files that README.md describes, and `published` to read them."""

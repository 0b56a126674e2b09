"""Report parts of a search."""

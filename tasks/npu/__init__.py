"""The tasks of neural power units."""

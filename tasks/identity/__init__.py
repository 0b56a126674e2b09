"""Identity task: learn y = x, and extrapolate beyond the trained numbers."""

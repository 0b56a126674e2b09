"""Benchmarks of speed, scale and statistics; see README.md."""

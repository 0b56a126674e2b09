"""Measurements and checks of the fused GPU engine: `python -m benchmarks.gpu`."""

"""The fused GPU engine measured and checked on a GPU: `python -m benchmarks.gpu`."""

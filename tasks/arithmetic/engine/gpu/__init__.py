"""The `fused-gpu` engine: the arithmetic task on a CUDA device, where trials of a seed share rows."""

"""The `fused-gpu` engine: the arithmetic task on a CUDA device, each trial in a block of threads."""

"""The `fused-gpu` engine: the arithmetic task on a CUDA device, in blocks of threads that share the rows of a seed."""

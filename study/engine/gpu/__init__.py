"""The `fused-gpu` engine: the arithmetic task on a CUDA device, by blocks of threads that share a seed's rows."""

"""The `fused-gpu` engine: the arithmetic task on a CUDA device, in blocks of threads that draw rows for trials of one seed."""

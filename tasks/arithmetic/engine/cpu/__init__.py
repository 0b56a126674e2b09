"""The `fused` engine: the arithmetic task, compiled for the CPU."""

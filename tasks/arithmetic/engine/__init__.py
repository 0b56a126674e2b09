"""The engines of the arithmetic family: compiled for the CPU, compiled for the GPU, and torch."""

"""Code shared by the compiled engines of the CPU and the GPU."""

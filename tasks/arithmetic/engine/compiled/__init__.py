"""What the two compiled engines share, that of the CPU and that of the GPU."""

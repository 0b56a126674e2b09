"""The engine compiled for the CPU."""

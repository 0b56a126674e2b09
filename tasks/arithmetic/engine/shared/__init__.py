"""Code shared by the engines of the arithmetic family in `torch/`, `cpu/` and `gpu/`."""

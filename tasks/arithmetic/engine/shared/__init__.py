"""What the engines of the arithmetic family share: `torch/`, `cpu/` and `gpu/` are one each.

`gates` says what trained weights do.
"""

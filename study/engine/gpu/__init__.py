"""The fused GPU engine: `engine` is its door, `layout` says who does what in a block of threads."""

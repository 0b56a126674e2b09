"""Speed and scale, measured; see README.md."""

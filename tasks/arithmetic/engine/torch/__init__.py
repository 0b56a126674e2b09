"""The `torch` engine: any unit, on any device."""

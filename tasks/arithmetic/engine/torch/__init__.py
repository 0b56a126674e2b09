"""The `torch` engine, for any unit and any device."""

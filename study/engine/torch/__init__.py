"""The engine on PyTorch: any unit, on any device."""

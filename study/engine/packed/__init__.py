"""The `packed` engine: any task and any torch module, with trials side by side by `torch.func.vmap`."""

"""The `packed` engine: any task and any torch module, trials side by side by `torch.func.vmap`."""

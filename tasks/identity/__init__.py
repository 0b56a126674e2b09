"""The identity task: learn y = x, and be asked for numbers beyond the trained ones."""

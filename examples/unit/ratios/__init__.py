"""A unit that multiplies and divides, a task for it, and a plain network for comparison."""

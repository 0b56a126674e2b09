"""A unit that multiplies and divides, a task to try it on, and a plain network beside it."""

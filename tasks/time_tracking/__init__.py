"""Time-tracking task: enter a cell of a grid world at a given time."""

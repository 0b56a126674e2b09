"""The time-tracking task: enter a place of a grid-world at a given time."""

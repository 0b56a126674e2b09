"""Tables of trials, from stored results or any other file."""

"""The counter-based random stream: the same numbers for a trial, whatever trains beside it and wherever."""

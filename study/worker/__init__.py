"""The process that trains a pack."""

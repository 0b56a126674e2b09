"""The tasks of handwritten digits in a sequence: add, multiply or count them."""

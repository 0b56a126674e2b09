"""Tasks on sequences of handwritten digits: add, multiply or count them."""

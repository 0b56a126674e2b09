"""Language task: translate the words of a number into the number."""

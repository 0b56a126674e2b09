"""Recurrent arithmetic task: sums of subsets over a sequence."""

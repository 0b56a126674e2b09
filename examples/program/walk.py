"""A program of its own: it knows nothing of studies, and prints a number."""

import argparse
import random

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--drift", type=float, required=True)
arguments = parser.parse_args()

random.seed(arguments.seed)
print(sum(random.gauss(arguments.drift, 1.0) for _ in range(arguments.steps)))

"""A training function that runs another program, and reads the number that it prints."""

import subprocess
import sys
from pathlib import Path

from study import seeded

PROGRAM = Path(__file__).with_name("walk.py")


@seeded
def train(seed: int, *, steps: int = 1000, drift: float = 0.0):
    """Return how far a random walk has come, as another program says it."""
    command = [sys.executable, str(PROGRAM), f"--seed={seed}", f"--steps={steps}", f"--drift={drift}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr.strip() or f"{PROGRAM.name} ended with exit code {ended.returncode}")
    return {"distance": float(ended.stdout)}

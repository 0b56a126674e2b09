"""A study of own code whose trials last until they may hurry, with the same results either way."""

from __future__ import annotations

from collections.abc import Mapping

SEEDS = 4
_STUDY = f"""
study: NAME
train: counting:train
metrics: {{loss: lower}}
fixed: {{waits: WAITS, steps: STEPS}}
seeds: {SEEDS}
"""
TRAINING = """
import subprocess, time
from pathlib import Path
from study import seeded

@seeded
def train(seed, *, waits: str = "", steps: int = 1, resume=None):
    total, first = resume or (0, 0)
    Path(waits).mkdir(exist_ok=True)
    for step in range(first, steps):
        total += (seed + 1) * (step + 1) % 7
        if step - first == 5:
            address = subprocess.check_output(["hostname", "--all-ip-addresses"], text=True).split()[0]
            Path(waits, f"{seed}-{step}-{address}").touch()
        if not Path(waits, "hurry").exists():
            time.sleep(0.1)
        yield {"step": step, "loss": -float(total), "state": [total, step + 1]}
"""
"""The module `counting`: a trial writes its node's address into `waits`, and hurries on request."""


def study_file(waits: str, steps: int, name: str = "counting") -> str:
    """Return the study file; `waits` is a folder on the nodes, and a step lasts 0.1 s unless trials may hurry."""
    return _STUDY.replace("NAME", name).replace("WAITS", waits).replace("STEPS", str(steps))


def is_undisturbed(metrics: Mapping[int, Mapping[str, float]], steps: int) -> bool:
    """Return True if results, by seed, are those of an undisturbed run."""
    totals = {seed: sum((seed + 1) * (step + 1) % 7 for step in range(steps)) for seed in range(SEEDS)}
    return metrics == {seed: {"loss": -float(total)} for seed, total in totals.items()}

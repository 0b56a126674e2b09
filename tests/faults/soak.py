"""Random faults on one study after another, for a given time.

python -m tests.faults.soak --minutes 15 [--seed 7]
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import time

from tests.faults.bed import Bed, opened, undisturbed
from tests.faults.laws import check
from tests.faults.places import missing
from tests.faults.strikes import FAULTS, Fault

# Faults that a driver survives, after any earlier ones.
BLOWS = ("worker killed", "queue killed", "node cut off for a moment", "worker paused", "raylet killed and back")
ONE_IN_OTHERS = 2
PAUSE_S = 12.0


def main() -> int:
    """Strike until the time is over; print the faults, and the seed that repeats them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    reason = missing()
    if reason is not None:
        sys.exit(reason)
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, {arguments.minutes:g} minutes", flush=True)
    draw = random.Random(seed)
    undisturbed()
    until = time.monotonic() + 60 * arguments.minutes
    studies = 0
    with opened() as bed:
        while time.monotonic() < until:
            disturb(bed, draw, studies)
            studies += 1
    print(f"seed {seed}: {studies} studies disturbed, every law held", flush=True)
    return 0


def disturb(bed: Bed, draw: random.Random, number: int) -> None:
    """Disturb one study at random moments, by any fault or by several that its driver survives, and check it."""
    if draw.randrange(ONE_IN_OTHERS):
        name = draw.choice([name for name, fault in FAULTS.items() if not fault.own_clock])
        fault, names = FAULTS[name], [(name, 0.0)]
    else:
        names = [(draw.choice(BLOWS), draw.uniform(0, PAUSE_S)) for _ in range(draw.randint(2, 4))]
        # The messages of several faults depend on their order, so none is required.
        fault = Fault("several", lambda study: None, options=("--silent-after-s", "8"))
    print(f"study {number}: {', then '.join(f'{name} after {s:.1f} s' for name, s in names)}", flush=True)
    study = fault.begun(bed)
    for name, pause_s in names:
        until = time.monotonic() + pause_s
        while study.drivers[-1].runs and time.monotonic() < until:
            time.sleep(0.1)  # wait for the drawn moment
        if study.drivers[-1].runs and (len(names) == 1 or bed.trainers()):
            FAULTS[name].strike(study)
    cost = check(study, fault if study.strikes else Fault("none", lambda study: None))
    print(f"  every law held; {cost.recovered_s:.1f} s to recover, published by {cost.published}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

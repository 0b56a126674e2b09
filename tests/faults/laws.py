"""Invariants after a fault, and its costs."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from socket import gethostname

from study.arrow import table_results
from study.records import Outcome
from study.store import Store
from tests.faults.bed import TRIALS, Bed, Study, bits, undisturbed
from tests.faults.strikes import Fault


@dataclass(frozen=True)
class Cost:
    """A line of the table.

    Args:
        fault: the fault.
        lost: number of results that existed at the fault but not at the end.
        again_s: upper bound of repeated training in seconds: age of the checkpoint used.
        duplicated: results in more than one file, and runs of MLflow beyond one a trial.
        recovered_s: seconds from the fault until every pack in training had made progress, including the time that
            the broken part stayed broken.
        published: publisher of the last runs: ``driver`` or ``study sync``.
        told: the message to the user.
    """

    fault: str
    lost: int
    again_s: float
    duplicated: int
    recovered_s: float
    published: str
    told: str


def check(study: Study, fault: Fault) -> Cost:
    """Wait for the last driver's end, check every invariant, and return the fault's costs.

    Raises:
        AssertionError: if an invariant doesn't hold.
    """
    bed, driver = study.bed, study.drivers[-1]
    code = driver.wait()
    assert code == 0, f"exit code {code}: {driver.told[-3000:]}"
    output = " ".join(driver.told for driver in study.drivers)
    for phrase in fault.told:
        assert phrase in output, f"{phrase!r} isn't in: {output[:8000]}"
    assert "Traceback" not in output, output[-5000:]
    published = "driver"
    if "aren't published yet" in output:
        published = "study sync"
        sync = bed.command(f"{study.name}-sync.log", "sync", study.name, "--store", study.root)
        assert sync.wait() == 0, sync.told
    duplicated = _check_store(study) + _check_runs(bed, study)
    strike = study.strikes[0]
    return Cost(
        fault=fault.description,
        lost=len(_trials_of(study, strike.done) - {r.trial.id for r in bits(study.folder)}),
        again_s=strike.since_checkpoint_s,
        duplicated=duplicated,
        recovered_s=(strike.recovered_at or time.monotonic()) - strike.at,
        published=published,
        told=_sentence(study, fault),
    )


def _trials_of(study: Study, packs: frozenset[str]) -> set[str]:
    rows = [study.folder.read_pack(pack)[0] for pack in packs if pack in study.folder.pack_ids()]
    return {trial for table in rows for trial in table["trial_id"].to_pylist()}


def _check_store(study: Study) -> int:
    """Check that every trial has exactly one result, in one valid file, with the undisturbed bits."""
    folder = study.folder
    results = [r for pack in folder.pack_ids() for r in table_results(folder.read_pack(pack)[0])]
    counts = Counter(result.trial.id for result in results)
    twice = {trial: count for trial, count in counts.items() if count > 1}
    assert not twice, f"{len(twice)} trials have several results"
    assert len(counts) == TRIALS
    assert not [r for r in results if r.outcome is Outcome.FAILED]
    assert bits(folder) == undisturbed()
    assert not Store(study.root, read_only=True).study(study.name).checkpoints()
    return len(twice)


def _check_runs(bed: Bed, study: Study) -> int:
    """Check that every trial and cell has exactly one finished run, and no run is active."""
    runs = bed.runs_of(study.name)
    states = Counter(state for _, _, state in runs.elements())
    trials = Counter(trial for kind, trial, _ in runs.elements() if kind == "trial")
    assert set(states) == {"FINISHED"}, states
    assert set(trials) == {result.trial.id for result in undisturbed()}, f"{len(trials)} trials have a run"
    assert set(trials.values()) == {1}, trials.most_common(3)
    assert runs["study", None, "FINISHED"] == 1
    assert runs["cell", None, "FINISHED"] == len({result.trial.cell for result in undisturbed()})
    return sum(trials.values()) - TRIALS


def _sentence(study: Study, fault: Fault) -> str:
    """Return the line that told the user, without paths and numbers of this run."""
    for driver in study.drivers:
        for line in driver.log.read_text(errors="replace").splitlines():
            if fault.told and fault.told[0] in line:
                sentence = line.strip().replace(study.name, "NAME")
                for root in (study.root, "/".join(study.root.split("/")[-2:])):  # some paths are relative
                    sentence = sentence.replace(root, "STORE")
                return re.sub(r"(//[\d.]+):\d+", r"\1:PORT", sentence.replace(gethostname(), "HOST"))
    return ""

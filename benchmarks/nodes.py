"""A study on many Ray nodes, while two are killed and one is added: its time, and its lost trials.

    python -m benchmarks.nodes [--nodes N] [--kinds function packs] [--out benchmarks/results/nodes.csv]

The nodes are processes of this machine, started by Ray's own cluster utility. Each has one core for Ray, a fraction of
a real one. The kind `function` is a study of a training function. The kind `packs` is one of an engine's packs, which
needs 500 MB of memory for each node. One node is killed when a quarter of the trials have results. Another is killed,
and one added, at a half. Prints a row for each kind, and writes it with `--out`: seconds in all and until the first
pack, packs a second, and the number of trials lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import finish, parser, tell
from benchmarks.scale import stored_at
from study.store import Store

_TRAINING = """
import time
from study import seeded

@seeded
def train(seed: int, *, lasts_s: float = 0.0) -> dict[str, float]:
    time.sleep(lasts_s)
    return {"loss": float(seed)}
"""
_FUNCTION = (
    "study: function\ntrain: training:train\nmetrics: {{loss: lower}}\nfixed: {{lasts_s: 0.1}}\nseeds: {trials}\n"
)
_PACKS = (
    "study: packs\ntask: {{name: simple}}\nmodels: [NMU]\nseeds: {trials}\nprotocol: {{iterations: 2000, "
    "evaluate_every: 1000}}\n"
)
STUDIES = {"function": (_FUNCTION, 10_000), "packs": (_PACKS, 2_000)}
_DEADLINE_S = 1800.0


def measure(nodes: Any, folder: Path, name: str, trials: int, options: Sequence[str]) -> dict[str, Any]:
    """Run a study, kill two of its nodes, add one, and return the row of its times and losses.

    Args:
        nodes: the `ray.cluster_utils.Cluster`.
        folder: folder for the study file, the log and the store; it has training.py for the kind ``function``.
        name: the kind of study, a key of `STUDIES`.
        trials: number of trials.
        options: further options of `study run`.

    Raises:
        TimeoutError: if the study takes more than half an hour; the message has its log.
        AssertionError: if `study run` fails, or ends before all nodes have been killed and added.
        StoreError: if the store can't be read.
        ZeroDivisionError: if there is only one pack.
    """
    (folder / f"{name}.yaml").write_text(STUDIES[name][0].format(trials=trials))
    command = [sys.executable, "-m", "study", "run", f"{name}.yaml", "--store", "studies", "--tracking-uri", "off"]
    command += ["--address", nodes.address, *options]
    began, began_at = time.monotonic(), time.time()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), str(folder)])}
    with (folder / f"{name}.log").open("wb") as log:
        driver = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
    steps = [(0.25, "kill"), (0.5, "kill"), (0.5, "add")]
    study = Store(folder / "studies", read_only=True).study(name)
    while driver.poll() is None:
        if time.monotonic() - began > _DEADLINE_S:
            driver.kill()
            raise TimeoutError(f"{name} took more than {_DEADLINE_S:.0f} s: {(folder / f'{name}.log').read_text()}")
        if steps and stored_at(folder / "studies", name) and len(study.done()) >= steps[0][0] * trials:
            _, what = steps.pop(0)
            tell(f"{name}: {what}s a node after {time.monotonic() - began:.0f} s")
            if what == "kill":
                nodes.remove_node(nodes.worker_nodes.copy().pop(), allow_graceful=False)
            else:
                nodes.add_node(num_cpus=1)
        time.sleep(0.5)
    whole_s = time.monotonic() - began
    assert (driver.returncode, steps) == (0, []), (folder / f"{name}.log").read_text()
    stored, seeds = stored_at(folder / "studies", name), study.read_results()["seed"].to_pylist()
    return {
        "study": name,
        "trials": trials,
        "packs": len(stored),
        "whole_s": round(whole_s, 1),
        "first_pack_s": round(stored[0] - began_at, 1),
        "packs_a_second": round(len(stored) / (stored[-1] - stored[0]), 1),
        "lost": trials - len(set(seeds)),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Run each study while nodes are killed and added; print the table, and write it with `--out`.

    Raises:
        TimeoutError: if the nodes don't start, or a study doesn't end, in half an hour.
        AssertionError: if `study run` fails, or ends before all nodes have been killed and added.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=1, seconds=0)
    options.add_argument("--nodes", type=int, default=50, help="number of Ray nodes")
    options.add_argument("--kinds", nargs="+", default=["function"], choices=STUDIES, help="studies to run")
    options.add_argument("--share", type=float, default=1.0, help="share of each study's trials to run")
    arguments = options.parse_args(words)
    from ray.cluster_utils import Cluster

    # Where tens of nodes share a core, their processes need longer to start than Ray allows for by default.
    os.environ["RAY_worker_register_timeout_seconds"] = f"{_DEADLINE_S:.0f}"  # noqa: SIM112
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "training.py").write_text(_TRAINING)
        nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        try:
            for study in arguments.kinds:
                for _ in range(arguments.nodes - len(nodes.worker_nodes)):
                    nodes.add_node(num_cpus=1, wait=False)
                nodes.wait_for_nodes(timeout=_DEADLINE_S)
                tell(f"{arguments.nodes} nodes")
                asked = ["--pack-size", "1"] if study == "packs" else []
                trials = round(arguments.share * STUDIES[study][1])
                rows.append({"nodes": arguments.nodes} | measure(nodes, folder, study, trials, asked))
                tell(str(rows[-1]))
        finally:
            nodes.shutdown()
    finish(rows, arguments)


if __name__ == "__main__":
    main()

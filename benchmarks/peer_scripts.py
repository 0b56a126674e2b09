"""Scripts that run the same trials with other libraries instead of a study.

python peer_scripts.py WAY KIND TRIALS SECONDS
python peer_scripts.py start program TIMES 0

This file is copied into an empty folder and run there, because the time of its whole process is measured. So each
library is imported only where it is needed. The second form prints the mean milliseconds of the program alone.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

CORES = 2
PROGRAM = 'echo "{\\"loss\\": 0.0}" > metrics.json\n'
"""A program for `sh` that only writes its result."""

SCRIPT = "prog.sh"
Train = Callable[[int], float]
"""Trains with a seed, and returns the loss."""


def train_function(seed: int, seconds: float) -> float:
    """Compute for this many seconds of the thread's CPU time, in place of a training, and return a loss of 0."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return 0.0


def train_program(seed: int) -> float:
    """Run the program in a new folder for the seed, with a log, and return its loss.

    Raises:
        FileExistsError: if the seed has been run before.
        subprocess.CalledProcessError: if the program fails.
        FileNotFoundError: if it doesn't write metrics.json.
    """
    folder = Path(__file__).parent / "trials" / str(seed)
    folder.mkdir(parents=True)
    with (folder / "log.txt").open("w") as log:
        words = ["sh", "../../" + SCRIPT, str(seed)]
        subprocess.run(words, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=True)
    return float(json.loads((folder / "metrics.json").read_text())["loss"])


def pool(train: Train, trials: int) -> list[float]:
    """Map the seeds over two processes, and return the losses in their order.

    Raises:
        Exception: an error of `train`.
    """
    import multiprocessing

    with multiprocessing.Pool(CORES) as workers:
        return workers.map(train, range(trials))


def joblib(train: Train, trials: int) -> list[float]:
    """Map the seeds over joblib's two processes, and return the losses in their order.

    Raises:
        ImportError: if joblib isn't installed.
        Exception: an error of `train`.
    """
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    return list(Parallel(n_jobs=CORES)(delayed(train)(seed) for seed in range(trials)))


def ray_tune(train: Train, trials: int, *, reuse_actors: bool = False, mlflow: bool = False) -> list[float]:
    """Search the grid of seeds by Ray Tune, which stores results in files, and return the losses in their order.

    Args:
        train: trains with a seed.
        trials: number of seeds.
        reuse_actors: True if a process runs several trials; Ray Tune's default is one trial.
        mlflow: True to log to MLflow, in an SQLite database, by Ray Tune's callback.

    Raises:
        ImportError: if Ray Tune isn't installed, or with `mlflow` MLflow.
        KeyError: if a trial failed.
    """
    import ray
    from ray import tune
    from ray.air.integrations.mlflow import MLflowLoggerCallback

    def trainable(config: dict[str, Any]) -> None:
        tune.report({"loss": train(config["seed"])})

    logger = MLflowLoggerCallback(tracking_uri="sqlite:///mlflow.db", experiment_name="trials") if mlflow else None
    ray.init(num_cpus=CORES, include_dashboard=False, logging_level=logging.ERROR)
    tuner = tune.Tuner(
        tune.with_resources(trainable, {"cpu": 1}),
        param_space={"seed": tune.grid_search(list(range(trials)))},
        tune_config=tune.TuneConfig(reuse_actors=reuse_actors),
        run_config=tune.RunConfig(
            name="trials", storage_path=str(Path("tune").absolute()), verbose=0, callbacks=[logger] if logger else None
        ),
    )
    results = tuner.fit()
    return [(results[number].metrics or {})["loss"] for number in range(len(results))]


def optuna(train: Train, trials: int) -> list[float]:
    """Optimize in two processes that share an SQLite database, and return the losses of complete trials.

    The second process takes the kind and the seconds from this process's command line.

    Raises:
        AssertionError: if the second process fails.
        ImportError: if Optuna isn't installed.
        optuna.exceptions.DuplicatedStudyError: if the current folder has the database already.
        Exception: an error of `train` in this process.
    """
    import optuna

    storage = "sqlite:///optuna.db"
    study = optuna.create_study(study_name="trials", storage=storage)
    shares = [trials // CORES + (number < trials % CORES) for number in range(CORES)]
    script = [sys.executable, __file__, "optuna-worker", sys.argv[2]]
    others = [subprocess.Popen([*script, str(share), sys.argv[4]]) for share in shares[1:] if share]
    optimize(train, shares[0])
    assert all(process.wait() == 0 for process in others)
    return [trial.value for trial in study.get_trials() if trial.value is not None]


def optimize(train: Train, trials: int) -> None:
    """Run `trials` more trials of the shared Optuna study; a trial's number is its seed.

    Raises:
        ImportError: if Optuna isn't installed.
        KeyError: if the study doesn't exist.
        Exception: an error of `train`.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.load_study(study_name="trials", storage="sqlite:///optuna.db")
    study.optimize(lambda trial: train(trial.number), n_trials=trials)


WAYS: dict[str, Callable[[Train, int], list[float]]] = {
    "pool": pool,
    "joblib": joblib,
    "ray-tune-reuse": partial(ray_tune, reuse_actors=True),
    "ray-tune-mlflow-reuse": partial(ray_tune, reuse_actors=True, mlflow=True),
    "ray-tune-mlflow": partial(ray_tune, mlflow=True),
    "optuna": optuna,
}


def own_start_ms(times: int) -> float:
    """Return the mean milliseconds of the program, run `times` times, at least once, one process after another.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    words = ["sh", SCRIPT, "0"]
    began = time.perf_counter()
    for _ in range(times):
        subprocess.run(words, check=True)
    return (time.perf_counter() - began) / times * 1e3


def main(words: Sequence[str]) -> None:
    """Run the trials, and check that each has a loss of 0; or print the program's mean milliseconds.

    An ``optuna-worker`` runs its trials without the check.

    Raises:
        AssertionError: if a loss is missing or isn't 0.
        KeyError: if there is no such way, or a trial of Ray Tune failed.
        ImportError: if the way's library isn't installed.
        subprocess.CalledProcessError: if the program fails.
    """
    way, kind, trials, seconds = words[0], words[1], int(words[2]), float(words[3])
    if way == "start":
        print(own_start_ms(trials))
        return
    train = train_program if kind == "program" else partial(train_function, seconds=seconds)
    if way == "optuna-worker":
        optimize(train, trials)
        return
    losses = WAYS[way](train, trials)
    assert losses == [0.0] * trials, f"{len(losses)} of {trials} trials have a loss"


if __name__ == "__main__":
    main(sys.argv[1:])

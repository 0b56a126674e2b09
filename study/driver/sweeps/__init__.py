"""Sweeps of other tools as study files.

sweep    a sweep in the terms of a study file, and the file's text
wandb    W&B's sweep.yaml
optuna   studies in Optuna's storages
hydra    folders of Hydra's multirun
tune     Ray Tune's param_space as JSON
"""

from study.driver.sweeps.hydra import sweep_of_hydra
from study.driver.sweeps.optuna import sweep_of_optuna
from study.driver.sweeps.sweep import Sweep, study_of_sweep
from study.driver.sweeps.tune import sweep_of_tune
from study.driver.sweeps.wandb import sweep_of_wandb

__all__ = ["Sweep", "study_of_sweep", "sweep_of_hydra", "sweep_of_optuna", "sweep_of_tune", "sweep_of_wandb"]

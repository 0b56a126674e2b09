"""Stored trials as plain Python files that repeat a trial's training with torch alone.

`write` fills the templates `trial.py.j2` and `unit.py.j2` with the output of `task`, `layers` and `training`.
"""

from tasks.arithmetic.script.write import trial_script

__all__ = ["trial_script"]

"""One stored trial as one plain Python file, which trains it again with torch alone.

`write` fills the templates, `trial.py.j2` and `unit.py.j2`, with what `task`, `layers` and `training` say of the trial.
"""

from study.reports.script.write import TrialScript, trial_script

__all__ = ["TrialScript", "trial_script"]

"""One stored trial as one plain Python file, which trains it again with torch alone.

`write` fills the templates, `trial.py.j2` and `unit.py.j2`, with what `task`, `layers` and `training` say of the trial.
"""

from tasks.arithmetic.script.write import trial_script

__all__ = ["trial_script"]

"""Plug-ins: tasks, engines, presets and other objects that installed packages offer by name (docs/guides/plugins.md).

import_string  `package.module:object`
offers         listing and import of entry points
families       families of tasks, and the family of a cell
packed_tasks   stable tasks, and the networks of model sets
vocabulary     display names of hyperparameters, models and values
presets        study files
scripts        trials as plain Python files
"""

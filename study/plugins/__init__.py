"""Plug-ins: tasks, engines, presets and more that installed packages offer by name (docs/guides/plugins.md).

import_string  `package.module:object`
offers         entry points: found, listed, imported
families       families of tasks, and the family of a cell
packed_tasks   stable tasks, and the networks of model sets
vocabulary     how reports name hyperparameters, models and values
presets        study files
scripts        trials as plain Python files
"""

"""Callbacks that report to a `study.Trial` from training libraries, one module a library (docs/guides/integrations.md).

- lightning: Lightning's Trainer
- huggingface: the Trainer of Hugging Face's transformers
- keras: Keras 3
- xgboost: XGBoost
- sklearn: scikit-learn's `partial_fit`

Each has `ReportTo(trial)`, which reports, and `last_checkpoint(trial)`, from which an interrupted trial goes on. Only
the module of a library imports it. They share reports.py (each step is reported once), checkpoints.py (checkpoints that
are whole) and needed.py (the error for a missing library).
"""

"""Callbacks of training libraries that report to a `study.Trial`, one module each (docs/guides/integrations.md).

- lightning: Lightning's Trainer
- huggingface: the Trainer of Hugging Face's transformers
- keras: Keras 3
- xgboost: XGBoost
- sklearn: scikit-learn's `partial_fit`

Each module has a callback `ReportTo(trial)`, and `last_checkpoint(trial)` to resume an interrupted trial. A library is
imported by its own module only. Shared code: reports.py (each step reported once), checkpoints.py (atomic checkpoints),
needed.py (error for a missing library).
"""

"""Conversion of records to Arrow tables and back. The store, MLflow, CSV files and reports share their columns.

- kinds: kinds of values, and their column types
- columns: columns of tables, and their roles
- results: results as tables
- curves: learning curves as tables
- checks: validation of results from outside this process
- weights: trained weights as tables
- unify: concatenation of tables with different columns
"""

from study.arrow.checks import complaint, names_complaint, with_short_errors
from study.arrow.columns import (
    EMPTY_CURVES,
    EMPTY_RESULTS,
    RESERVED_NAMES,
    RESULT_COLUMNS,
    cell_columns,
    column_names,
    hyperparameters_of,
    metric_columns,
    metrics_of,
    with_labels,
    with_metrics,
)
from study.arrow.curves import curves_table, table_curves
from study.arrow.kinds import encoded, kind_of
from study.arrow.results import kinds_of, results_table, table_cells, table_results, trials_table
from study.arrow.unify import unified
from study.arrow.weights import WEIGHTS_SCHEMA, stacked_weights, table_weights, weights_table

__all__ = [
    "EMPTY_CURVES",
    "EMPTY_RESULTS",
    "RESERVED_NAMES",
    "RESULT_COLUMNS",
    "WEIGHTS_SCHEMA",
    "cell_columns",
    "column_names",
    "complaint",
    "curves_table",
    "encoded",
    "hyperparameters_of",
    "kind_of",
    "kinds_of",
    "metric_columns",
    "metrics_of",
    "names_complaint",
    "results_table",
    "stacked_weights",
    "table_cells",
    "table_curves",
    "table_results",
    "table_weights",
    "trials_table",
    "unified",
    "weights_table",
    "with_labels",
    "with_metrics",
    "with_short_errors",
]

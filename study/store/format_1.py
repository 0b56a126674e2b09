"""Schema version 1 of the store's files, with the columns of the arithmetic tasks in every file."""

from __future__ import annotations

import pyarrow as pa

_TEXT, _INTEGER, _NUMBER = pa.string(), pa.int64(), pa.float64()

RESULTS = pa.schema(
    [
        *[("trial_id", _TEXT), ("cell_id", _TEXT), ("seed", _INTEGER)],
        *[("task", _TEXT), ("operation", _TEXT), ("input_size", _INTEGER)],
        *[("subset_ratio", _NUMBER), ("overlap_ratio", _NUMBER), ("subsets", _INTEGER)],
        *[("interpolation_range", _TEXT), ("extrapolation_range", _TEXT)],
        *[("model", _TEXT), ("hidden_size", _INTEGER), ("init_variance", _NUMBER)],
        *[("bounds", _TEXT), ("out_of_bounds_strength", _NUMBER), ("out_of_bounds_shape", _TEXT)],
        *[("sparsity_strength", _NUMBER), ("sparsity_start", _INTEGER), ("sparsity_end", _INTEGER)],
        *[("sparsity_shape", _TEXT), ("sparsity_scaling", _TEXT)],
        *[("optimizer", _TEXT), ("learning_rate", _NUMBER), ("momentum", _NUMBER), ("batch_size", _INTEGER)],
        *[("iterations", _INTEGER), ("evaluate_every", _INTEGER), ("best_step_window", _INTEGER)],
        *[("evaluation_rows", _INTEGER), ("stop", _TEXT)],
        *[("success_epsilon", _NUMBER), ("success_threshold", _NUMBER)],
        *[("outcome", _TEXT), ("threshold", _NUMBER), ("best_iteration", _INTEGER)],
        *[("validation_mse", _NUMBER), ("test_mse", _NUMBER), ("sparsity_error", _NUMBER)],
        *[("solved_at_iteration", _INTEGER), ("trained_iterations", _INTEGER), ("stopped_early", pa.bool_())],
        *[("training_s", _NUMBER), ("engine", _TEXT), ("device", _TEXT), ("error", _TEXT)],
    ]
)
CURVES = pa.schema(
    [
        ("trial_id", _TEXT),
        ("iteration", pa.list_(pa.int64())),
        ("validation_mse", pa.list_(pa.float32())),
        ("test_mse", pa.list_(pa.float32())),
        ("sparsity_error", pa.list_(pa.float32())),
    ]
)
WEIGHTS = pa.schema(
    [
        ("trial_id", _TEXT),
        ("iteration", _INTEGER),
        ("name", pa.list_(_TEXT)),
        ("shape", pa.list_(pa.list_(pa.int32()))),
        ("value", pa.list_(pa.float32())),
    ]
)

_METRICS = ("validation_mse", "test_mse", "sparsity_error")
_RANGES = ("interpolation_range", "extrapolation_range")
_KINDS = {_TEXT: "text", _INTEGER: "whole", _NUMBER: "number"}


def upgraded_results(results: pa.Table) -> pa.Table:
    """Convert results to version 2: add each column's role, and a null `criterion`."""
    criterion = pa.chunked_array([pa.nulls(len(results), _TEXT)])
    return pa.table([*results.columns[:_CRITERION], criterion, *results.columns[_CRITERION:]], schema=_NEXT_RESULTS)


def upgraded_curves(curves: pa.Table) -> pa.Table:
    """Convert curves to version 2: add the role of the metric columns."""
    return pa.table(curves.columns, schema=_NEXT_CURVES)


def _described(field: pa.Field) -> pa.Field:
    """Return a field with its role and kind, if it is a metric or a hyperparameter."""
    if field.name in _METRICS:
        kind_entry = {} if pa.types.is_list(field.type) else {"study.kind": "number"}
        return field.with_metadata({"study.role": "metric", **kind_entry})
    if field.name not in _HYPERPARAMETERS:
        return field
    kind = "range" if field.name in _RANGES else _KINDS[field.type]
    return field.with_metadata({"study.role": "hyperparameter", "study.kind": kind})


_HYPERPARAMETERS = set(RESULTS.names[RESULTS.names.index("task") : RESULTS.names.index("outcome")]) - {"task", "model"}
_CRITERION = RESULTS.names.index("threshold") + 1
_NEXT_RESULTS = pa.schema(map(_described, RESULTS)).insert(_CRITERION, pa.field("criterion", _TEXT))
_NEXT_CURVES = pa.schema(map(_described, CURVES))

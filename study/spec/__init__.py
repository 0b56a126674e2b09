"""The study as the user writes it: the only door that validates.

- document: reads YAML text into plain data that knows its lines
- tables: the shape of the file, as pydantic models, with the hyperparameters that a family of tasks declares
- function_tables: the same for a study that names a training function; function: what the function declares
- references: success that references set
- grid: the points that fixed values, grids and zips span
- cells: makes a canonical `Cell` of a point's values
- checks: rules between values
- search_checks: rules for ranges and searches
- overrides: values that stand in for those of a file
- load: applies all of these in order, and reports every mistake in one error
"""

from study.spec.cells import canonical_cell
from study.spec.grid import check_limits, check_size, model_level
from study.spec.load import load_spec, parse_spec, schema
from study.spec.overrides import dump, parse_overrides
from study.spec.tables import Spec

__all__ = [
    "Spec",
    "canonical_cell",
    "check_limits",
    "check_size",
    "dump",
    "load_spec",
    "model_level",
    "parse_overrides",
    "parse_spec",
    "schema",
]

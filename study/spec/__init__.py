"""Study files: parsing and validation.

- document: YAML text as plain data with line numbers
- tables: schema of the file, as pydantic models, with the hyperparameters that a family of tasks declares
- function_tables: schema of studies of training functions; function: import of the function's declarations
- references: success criteria set by references
- grid: points of fixed values, grids and zips
- cells: canonical cells of points
- checks: rules between values
- search_checks: rules for ranges and searches
- overrides: overrides of a file's values
- load: all steps in order, with every mistake in one error
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

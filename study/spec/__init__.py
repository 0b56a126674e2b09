"""The study as the user writes it: the only door that validates.

- document: YAML text to plain data that knows its lines
- hyperparameters: what can be fixed or swept, each with its type and limits
- tables: the shape of the file, as pydantic models
- grid: the points that fixed values, grids and zips span
- cells: a point's values to a canonical `Cell`
- checks: what must hold between values
- search_checks: what must hold of ranges, and of a search
- load: all of these, in order; every mistake in one error
"""

from study.spec.cells import canonical_cell
from study.spec.checks import impossible
from study.spec.grid import check_size, model_level
from study.spec.load import load_spec, parse_spec
from study.spec.tables import Spec, schema

__all__ = [
    "Spec",
    "canonical_cell",
    "check_size",
    "impossible",
    "load_spec",
    "model_level",
    "parse_spec",
    "schema",
]

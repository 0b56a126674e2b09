"""How the phases are compiled: in parts, which are inlined as machine code.

numba's own inlining, of Python code, analyses a function again wherever it is called, which takes twice as long.
"""

from __future__ import annotations

from typing import Any

import numba as nb

_njit: Any = nb.njit

inline = _njit(error_model="numpy", forceinline=True, no_cfunc_wrapper=True, no_cpython_wrapper=True, _nrt=False)
"""Compile a function that becomes part of those that call it, on the CPU and in kernels."""

"""Compilation of phases in parts, inlined as machine code.

numba's own inlining, of Python code, analyses a function again at every call, which takes twice as long.
"""

from __future__ import annotations

from typing import Any

import numba as nb

_njit: Any = nb.njit

inline = _njit(error_model="numpy", forceinline=True, no_cfunc_wrapper=True, no_cpython_wrapper=True, _nrt=False)
"""Compile a function that is inlined into its callers, on the CPU and in kernels."""

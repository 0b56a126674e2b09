"""What a unit computes: layers of neural arithmetic, for one trial or for many at once.

Each file holds one concept, the pure function first, then its module: `linear`, `nac`, `nalu`, `nau`, `nmu`,
`gated`. What they share: `unit` (what every unit is), `initialize`, `regularize`, `sparsity`, `kernels`,
`product`.
"""

from __future__ import annotations

from units.gated import GatedNAUNMU
from units.linear import ELU, SELU, Linear, ReLU, ReLU6, Sigmoid, Softsign, Tanh
from units.nac import NACAdd, NACMul, NACMulNMU, NACMulSigma
from units.nalu import NALU, SeparateNALU
from units.nau import NAU
from units.nmu import NMU, NormalizedNMU
from units.unit import Unit

UNITS: dict[str, type[Unit]] = {
    "NAC-add": NACAdd,
    "NAC-mul": NACMul,
    "NAC-mul-sigma": NACMulSigma,
    "NAC-mul-NMU": NACMulNMU,
    "NALU": NALU,
    "NALU-separate": SeparateNALU,
    "NAU": NAU,
    "NMU": NMU,
    "NMU-normalized": NormalizedNMU,
    "gated-NAU-NMU": GatedNAUNMU,
    "linear": Linear,
    "ReLU": ReLU,
    "ReLU6": ReLU6,
    "tanh": Tanh,
    "sigmoid": Sigmoid,
    "softsign": Softsign,
    "SELU": SELU,
    "ELU": ELU,
}

__all__ = ["UNITS", "Unit"]

"""Units by the names that models use."""

from __future__ import annotations

from units.gated import GatedNAUNMU
from units.golden import GNALU
from units.inalu import INALU, PrimerINALU
from units.linear import ELU, SELU, Linear, ReLU, ReLU6, Sigmoid, Softsign, Tanh
from units.nac import NACAdd, NACMul, NACMulNMU, NACMulSigma
from units.nalu import NALU, SeparateNALU
from units.nau import NAU
from units.nmu import NMU, NormalizedNMU
from units.npu import NPU, ModifiedRealNPU, RealNPU
from units.reciprocal import NMRU, NRU
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
    "NPU": NPU,
    "RealNPU": RealNPU,
    "RealNPU-modified": ModifiedRealNPU,
    "NRU": NRU,
    "NMRU": NMRU,
    "iNALU": INALU,
    "iNALU-Primer": PrimerINALU,
    "G-NALU": GNALU,
    "linear": Linear,
    "ReLU": ReLU,
    "ReLU6": ReLU6,
    "tanh": Tanh,
    "sigmoid": Sigmoid,
    "softsign": Softsign,
    "SELU": SELU,
    "ELU": ELU,
}

"""How reports name the parts of the arithmetic family: titles, symbols and their LaTeX.

Names and texts only: reports of files need them, and importing the declarations themselves, or torch, takes longer than
making a table of a million trials. Tests compare this with the declarations.
"""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {
    "hidden_size": "hidden units",
    "input_size": "inputs",
    "interpolation_range": "trained on",
    "extrapolation_range": "tested on",
    "interpolation_mean": "trained around",
    "extrapolation_mean": "tested around",
    "init_variance": "init variance",
    "sparsity_strength": "λ̂",
    "sparsity_start": "λ start",
    "sparsity_end": "λ end",
    "l1_strength": "L1 strength",
    "l1_first_strength": "first L1 strength",
    "clip_norm": "gradient norm",
    "clip_value": "gradient size",
    "batch_size": "batch",
}
"""Names of hyperparameters for readers, where they aren't the names in study files with spaces."""

NONES: Mapping[str, str] = {
    "distribution": "uniform",
    "init_variance": "default",
    "sparsity_strength": "off",
    "l1_strength": "off",
    "outward_strength": "off",
    "restart_memory": "never",
    "clip_norm": "unlimited",
    "clip_value": "unlimited",
}
"""How None is written, where it isn't a dash."""

UNITS: Mapping[str, str] = {"sparsity_start": "iterations", "sparsity_end": "iterations"}
"""Units of hyperparameters."""

METHODS = (
    "model", "init_variance", "bounds", "out_of_bounds_strength", "out_of_bounds_shape", "sparsity_strength",
    "sparsity_start", "sparsity_end", "sparsity_shape", "sparsity_scaling", "l1_strength", "l1_first_strength",
    "outward_strength", "outward_start", "restart_memory", "clip_norm", "clip_value", "optimizer", "learning_rate",
    "momentum", "batch_size",
)  # fmt: skip
"""The hyperparameters that say how a question is answered; all others belong to the question."""

SWEPT_FIRST = ("hidden_size",)
"""What the x axis of a figure shows if it varies, and a row's name says after the model."""

SHORT: Mapping[str, str] = {"hidden_size": "h", "init_variance": "v"}
"""Letters for hyperparameters that are often swept, for names that must be short."""

NAMED_FIRST = ("hidden_size", "operation")
"""The hyperparameters that tell rows apart before any other does, after the model and axes of the grid."""

TO_SCALE = ("hidden_size", "input_size")
"""Sizes, which stand on an axis as far apart as they are."""

SELF_EXPLANATORY = ("model", "operation", "interpolation_range", "extrapolation_range")
"""Those whose values need no title before them."""

MODEL_SYMBOLS: Mapping[str, str] = {
    "NAC-add": "NAC₊",
    "NAC-mul": "NAC•",
    "NAC-mul-sigma": "NAC•,σ",
    "NAC-mul-NMU": "NAC•,NMU",
    "NALU-separate": "NALU (separate)",
    "NMU-normalized": "NMU (normalised)",
    "gated-NAU-NMU": "Gated NAU/NMU",
    "RealNPU-modified": "RealNPU (modified)",
    "iNALU-Primer": "iNALU (Primer)",
    "linear": "Linear",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "softsign": "Softsign",
}
"""The field's symbols of models, if they differ from the names in study files."""

MODEL_NAMES: Mapping[str, str] = {
    "NAC+": "NAC-add",
    "NAC•": "NAC-mul",
    "NAC•,σ": "NAC-mul-sigma",
    "NAC•,NMU": "NAC-mul-NMU",
    "NALU": "NALU",
    "NAU": "NAU",
    "NMU": "NMU",
    "Linear": "linear",
    "ReLU": "ReLU",
    "ReLU6": "ReLU6",
}
"""The names that study files use, by the symbols that the published tables use."""

VALUE_SYMBOLS: Mapping[str, Mapping[str, str]] = {
    "operation": {"add": "+", "sub": "−", "mul": "×", "div": "÷", "squared": "a²", "root": "√a", "reciprocal": "1/a"}
}
"""Symbols of the values of hyperparameters."""

LATEX_TITLES: Mapping[str, str] = {
    "operation": "Op",
    "sparsity_strength": r"$\hat{\lambda}$",
    "sparsity_start": r"$\lambda$ start",
    "sparsity_end": r"$\lambda$ end",
}
"""Titles of hyperparameters in LaTeX, where they aren't those of other tables."""

LATEX_SYMBOLS: Mapping[str, Mapping[str, str]] = {
    "operation": {
        "add": "$+$",
        "sub": "$-$",
        "mul": r"$\times$",
        "div": r"$\div$",
        "squared": "$a^2$",
        "root": r"$\sqrt{a}$",
        "reciprocal": "$1/a$",
    },
    "model": {
        "NAC-add": r"$\mathrm{NAC}_{+}$",
        "NAC-mul": r"$\mathrm{NAC}_{\bullet}$",
        "NAC-mul-sigma": r"$\mathrm{NAC}_{\bullet,\sigma}$",
        "NAC-mul-NMU": r"$\mathrm{NAC}_{\bullet,\mathrm{NMU}}$",
    },
}
"""Symbols of values in LaTeX, where they aren't those of other tables."""

"""Vector code of the compiled engine's loops for arm64: inspected, not run."""

from __future__ import annotations

import re

import pytest

from tasks.arithmetic.engine.cpu.loop import train
from tests.engines import ENGINES
from tests.study.builders import small_pack
from tests.tasks.arithmetic.engine.arm64 import FORMULAS, PRODUCTS, Code, calls, code_of, innermost_loops, kernels

# Scalar arithmetic, except for moves.
_SCALAR = re.compile(r"(f(?!mov)\w+|[su]cvtf)\t[sdh]\d")
# A vector register that is written to the stack.
_SPILL = re.compile(r"st[pru]+\t[qdsv]\d.*\[sp")
_OWN = ("_ZN5study", "_ZN5tasks")


@pytest.fixture(scope="module")
def compiled() -> dict[str, Code]:
    return kernels()


def with_instruction(pattern: str, code: Code) -> list[list[str]]:
    """Return the innermost loops with an instruction that matches a pattern; at least one must exist."""
    loops = [loop for loop in innermost_loops(code.assembly) if any(re.match(pattern, line) for line in loop)]
    assert loops, f"no loop has {pattern}"
    return loops


def assert_of_no_processor(code: Code) -> None:
    assert "llvm.x86" not in code.llvm
    assert "target-cpu" not in code.llvm
    assert "target-features" not in code.llvm


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_whole_vectors(compiled, name):
    """Sums of products are fused multiply-adds of four lanes, without other arithmetic, calls or many spills."""
    code = compiled[name]
    assert_of_no_processor(code)
    assert not re.search(r"\tfn?m(add|sub)\t", code.assembly)
    assert not any("fma" in callee for callee in calls([line.strip() for line in code.assembly.splitlines()]))
    for loop in with_instruction(r"fmla\t", code):
        products = [line for line in loop if line.startswith("fmla")]
        assert all(re.match(r"fmla\tv\d+\.4s, v\d+\.4s, v\d+\.(4s|s\[\d\])$", line) for line in products)
        assert sum(len(re.findall(r"q\d+", line)) for line in loop if line.startswith("ld")) >= 4
        assert not [line for line in loop if _SCALAR.match(line)]
        assert 16 * sum(bool(_SPILL.match(line)) for line in loop) <= len(products)
        assert not calls(loop)


def test_the_stream_is_whole_vectors(compiled):
    """Words of the stream are multiplied in pairs; mixing, conversion and stores use vectors of four."""
    code = compiled["draw"]
    assert_of_no_processor(code)
    for loop in with_instruction(r"umull\tv", code):
        products = [line for line in loop if re.match(r"umull2?\tv\d+\.2d", line)]
        # Values that are equal in all lanes are computed once.
        single = [line for line in loop if re.match(r"(umull|umulh|mul|madd)\t[xw]", line)]
        assert len(products) >= 10 * len(single)
        assert all(re.match(r"[su]cvtf\tv\d+\.4s", line) for line in loop if "cvtf" in line)
        assert any(re.match(r"st[pr]\tq", line) for line in loop)
        assert not [line for line in loop if _SCALAR.match(line)]
        assert not calls(loop)


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_vectorised(compiled, name):
    """A loop over a formula computes four numbers at a time, without calls even in its remainder."""
    code = compiled[name]
    assert_of_no_processor(code)
    (loop,) = with_instruction(r"fmla\tv\d+\.4s", code)
    assert any(re.match(r"ld[pru]+\tq", line) for line in loop)
    assert not [line for line in loop if _SCALAR.match(line) or _SPILL.match(line)]
    assert not calls([line.strip() for line in code.assembly.splitlines()])


def test_training_calls_no_library_for_a_number():
    """All of training compiles for arm64; its inner loops call library functions only to clear memory.

    One call per iteration is allowed, for the exponential schedule of a regulariser.
    """
    training = ENGINES["fused"].start(small_pack(0), device="cpu")
    training.advance(0.0)
    arguments = train.signatures[0]
    code = code_of(train, arguments)
    assert_of_no_processor(code)
    everywhere = calls([line.strip() for line in code.assembly.splitlines()])
    assert {callee for callee in everywhere if not callee.startswith(_OWN)} == {"memset", "expm1"}
    for loop in innermost_loops(code.assembly):
        assert {callee for callee in calls(loop) if not callee.startswith(_OWN)} <= {"memset"}

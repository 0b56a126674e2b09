"""Runs of the GPU's benchmark on its emulation, with and without failures; no test asserts a speed."""

from __future__ import annotations

import csv
import json
import math
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from benchmarks import tables
from benchmarks.gpu import count, floor, machine, operations, sizes, speed, warp
from benchmarks.gpu.__main__ import PARTS, main
from benchmarks.gpu.checks import different
from benchmarks.gpu.machine import Machine
from benchmarks.measure import published_cell
from tasks.arithmetic.engine.gpu.arrays import Devices
from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks
from tasks.arithmetic.engine.gpu.engine import GpuEngine, _layout

SHORT = ("--emulated", "--rounds", "1", "--seconds", "0.01")
NUMBERS = {
    "models": ("million_per_s", "fused_one_core_million_per_s", "million_per_s_without_evaluation"),
    "packs": ("million_per_s", "us_per_iteration"),
    "groups": ("million_per_s", "times_blocks_of_one"),
    "floor": ("million_per_s",),
    "registers": ("million_per_s", "of_the_best"),
}


def read(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_the_reason_is_one_line(tmp_path, capfd):
    """Without a GPU, nothing is written, the reason is one line, and the exit code is 2."""
    assert main(["--out", str(tmp_path / "out")]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "torch sees no GPU here" in captured.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_every_part_is_measured_in_the_emulation(tmp_path):
    """Each part writes its table with its provenance; rates are numbers, and checks pass."""
    assert main([*SHORT, "--out", str(tmp_path)]) == 0
    for part in PARTS:
        rows, source = read(tmp_path / f"{part}.csv"), json.loads((tmp_path / f"{part}.json").read_text())
        assert source["packages"]
        assert source["gpu"] == "emulated on the CPU"
        assert "out" not in source["settings"]
        assert tables.whole_table(rows).count("\n") == 1 + len(rows)
        for name in NUMBERS.get(part, ()):
            assert all(math.isfinite(float(row[name])) for row in rows), (part, name)
    checks = read(tmp_path / "checks.csv")
    assert [row["check"] for row in checks] == ["bits", "bits", "alone", "distribution"]
    assert {row["passed"] for row in checks} == {"yes"}
    models = read(tmp_path / "models.csv")
    assert [(row["model"], row["pack"]) for row in models] == [
        ("NMU", "2"), ("NMU", "4"), ("NALU", "2"), ("NALU", "4"),
    ]  # fmt: skip
    assert all(math.isfinite(float(row["evaluation_share"])) for row in models)
    assert [bool(row["torch_million_per_s"]) for row in models] == [True, True, False, False]


class Wrong(EmulatedBlocks):
    """Blocks with one wrong bit in one weight."""

    def read(self) -> list[npt.NDArray[np.float32]]:
        arrays = super().read()
        arrays[0].view(np.uint32)[-1, -1] ^= 1
        return arrays


@pytest.mark.slow
def test_one_wrong_bit_is_found(tmp_path, monkeypatch):
    """One wrong bit fails the check; the array is named, and the exit code is 1."""
    less = replace(sizes.tiny(), bits=(("NMU", 4, 2),), alone=())
    monkeypatch.setattr(sizes, "tiny", lambda: less)

    def blocks(self: Machine, registers: int | None = None, most: int | None = None) -> Devices:
        return partial(Wrong)

    monkeypatch.setattr(Machine, "blocks", blocks)
    assert main([*SHORT, "--only", "checks", "--out", str(tmp_path)]) == 1
    first = read(tmp_path / "checks.csv")[0]
    assert first["passed"] == "no"
    assert len(first["found"].split()) == 2  # "differ:" and the name of the second layer's weights


def test_all_nans_are_equal_and_zeros_have_signs():
    """Arrays are compared bit by bit, except that all NaNs are equal."""
    first, second = np.array([np.nan, 0], np.float32), np.array([-np.nan, 0], np.float32)
    assert different({"a": first}, {"a": second}) == []
    assert different({"a": first}, {"a": np.array([np.nan, -0.0], np.float32)}) == ["a"]
    assert different({"a": first}, {"a": first[:1]}) == ["a"]
    assert different({"a": first}, {}) == ["a"]


@pytest.mark.slow
def test_a_failing_part_does_not_stop_the_others(tmp_path, monkeypatch, capfd):
    """Rows from before a failure are kept, the next part is measured, and the exit code is 1."""
    less = replace(sizes.tiny(), packs=(("NMU", 0, 2), ("NMU", 4, 2)))
    monkeypatch.setattr(sizes, "tiny", lambda: less)
    assert main([*SHORT, "--only", "packs", "registers", "--out", str(tmp_path)]) == 1
    assert {row["input_size"] for row in read(tmp_path / "packs.csv")} == {"4"}
    assert read(tmp_path / "registers.csv")
    assert "packs FAILED" in capfd.readouterr().err


@pytest.mark.slow
def test_models_are_left_out_when_time_is_up(tmp_path, capfd):
    """A part without measurements fails, and names the models that it left out."""
    assert main([*SHORT, "--only", "models", "--models-s", "-1", "--out", str(tmp_path)]) == 1
    errors = capfd.readouterr().err
    assert "left out, since -1 s are up: NMU 4 2" in errors
    assert "nothing was measured" in errors


@pytest.mark.slow
def test_parts_run_in_processes_of_their_own(tmp_path):
    """As on a GPU, kernels compile in processes, and each part is a process with the command's options."""
    words = [*SHORT, "--apart", "--workers", "2", "--only", "packs", "--out", str(tmp_path)]
    assert main(words) == 0
    assert len(read(tmp_path / "packs.csv")) == 3
    assert json.loads((tmp_path / "packs.json").read_text())["settings"]["workers"] == 2


@pytest.mark.slow
def test_the_figure_is_a_study_run_and_its_report(tmp_path):
    """The report's files are copied with their provenance."""
    file, results = tmp_path / "tiny.yaml", tmp_path / "results"
    file.write_text(
        "{study: tiny, question: 'Does it run?', task: {name: simple}, models: [NMU], seeds: 2, "
        "protocol: {iterations: 200, evaluate_every: 100, evaluation_rows: 100}}"
    )
    words = ["--only", "figure", "--study", str(file), "--results", str(results), "--run-option=--local"]
    assert main([*SHORT, *words, "--out", str(tmp_path / "out")]) == 0
    assert {path.name for path in results.iterdir()} == {"cells.csv", "figure.png", "source.json"}
    assert json.loads((results / "source.json").read_text())["run_s"] >= 0


def test_the_engine_accepts_all_measured_shapes():
    """The engine accepts every shape of a full run; models of the hidden-size figure come first."""
    full, engine = sizes.full(), GpuEngine(emulated=True)
    shapes = {*full.bits, *full.alone, *full.speed, *full.torch, *full.packs, *full.registers, *full.floor}
    cells = [published_cell(*shape) for shape in shapes] + [full.distribution]
    cells += [full.checked(shape) for shape in full.bits] + [full.evaluated(shape) for shape in full.speed]
    assert [engine.refuses(cell) for cell in cells] == [None] * len(cells)
    assert sizes.models()[: len(sizes.PUBLISHED)] == list(sizes.PUBLISHED)
    assert set(full.torch) <= set(full.speed)
    assert full.speed[0] == ("NMU", 100, 2)


def test_estimates_are_issue_slots_over_instructions():
    """132 multiprocessors at 1.98 GHz issue 4 instructions a cycle: 83.6 million iterations/s of 12,500 each."""
    h200 = Machine("H200", "cuda", 132, 1.98e9, emulated=False)
    assert h200.estimate(12_500) == pytest.approx(83.6e6, rel=1e-3)
    assert h200.estimate(12_500, 0.7) == pytest.approx(58.5e6, rel=1e-3)
    assert len(speed.estimates(h200)) == len(machine.SLOTS)


@pytest.mark.parametrize(("goal", "reached"), [("24", "not reached"), ("25.1", "reached")])
def test_goals_are_reported_as_reached_or_not(goal, reached):
    """The best pack of the NMU with 100 inputs and 2 hidden units decides on a goal."""
    row: dict[str, Any] = {"model": "NMU", "input_size": 100, "hidden_size": 2, "million_per_s": goal}
    goals = speed.wanted([row | {"million_per_s": "1"}, row, row | {"input_size": 4, "million_per_s": "99"}])
    assert goals["25 million/s"] == reached
    assert goals["60 million/s"] == "not reached"
    assert speed.wanted([]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [2, 10])
def test_the_kernel_that_only_draws_has_all_its_instructions(hidden, monkeypatch):
    """The kernel's code has the stream's products, the stores to shared memory, the sums, and a barrier."""
    current_device = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: current_device)
    layout = _layout(published_cell("NMU", 100, hidden))
    ptx = floor.draws_ptx(layout, (9, 0), 64)
    assert ".entry draws(" in ptx
    assert ptx.count("mul.wide.u32") >= 20
    assert "st.shared.v4.f32" in ptx
    assert ptx.count("fma.rn.f32") >= 4 * layout.input_sums
    assert "bar.sync" in ptx
    assert ".f64" not in ptx


_LOOP = """
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   LOP3.LUT R1, R0, 0x3, RZ, 0xc0, !PT ;
        /*0020*/                   IMAD.MOV.U32 R2, RZ, RZ, RZ ;
        /*0030*/                   BSSY B0, `(.L_x_1) ;
.L_x_0:
        /*0040*/                   IADD3 R2, R2, 0x1, RZ ;
        /*0050*/                   ISETP.GE.U32.AND P0, PT, R2, R1, PT ;
        /*0060*/              @!P0 BRA `(.L_x_0) ;
        /*0070*/                   BSYNC B0 ;
.L_x_1:
        /*0080*/                   LEA R3, R0, 0x400, 0x2 ;
        /*0090*/                   STS [R3], R2 ;
        /*00a0*/                   EXIT ;
"""


def test_a_warp_issues_a_loop_as_often_as_its_slowest_thread_needs():
    """Threads of a warp that loop once, twice or three times diverge and meet again; both warps' counts add up."""
    code = warp.parse(_LOOP)
    words = np.zeros(warp.SHARED_FROM // 4 + 64, np.uint32)
    memory = warp.Memory(np.zeros(64, np.uint32), np.zeros(1, np.uint32), words)
    issued = warp.run_block(code, operations.steps(code), memory, 64)
    assert issued.tolist() == [2, 2, 2, 2, 6, 6, 6, 2, 2, 2, 2]
    assert words[warp.SHARED_FROM // 4 :].tolist() == [max(1, thread % 4) for thread in range(64)]


def test_an_instruction_that_is_not_known_is_named():
    """An unknown instruction is an error that names it, and nothing is counted."""
    with pytest.raises(ValueError, match=r"HMMA\.16816\.F32"):
        operations.steps(warp.parse("/*0000*/ HMMA.16816.F32 R4, R8, R12, R4 ;"))


def test_without_a_disassembler_its_package_is_named(capsys):
    """Without a disassembler, the exit code is 2, and the message names the package."""
    assert count.main(["--nvdisasm", "/nowhere/nvdisasm"]) == 2
    assert "nvidia-cuda-nvdisasm" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvdisasm") is None, reason="there is no nvdisasm on the PATH")
@pytest.mark.parametrize(("hidden", "most", "most_alone"), [(2, 6_500, 12_500), (10, 21_000, 27_500)])
def test_machine_code_has_few_instructions(hidden, most, most_alone):
    """A block of four trials, or of one, issues at most the given number of instructions an iteration."""
    block, _ = count.block_of(published_cell("NMU", 100, hidden), 1)
    code = count.machine_code(block.layout, block.choices, "nvdisasm")
    assert count.count(hidden, 4, code).instructions <= most
    assert count.count(hidden, 1, code).instructions <= most_alone

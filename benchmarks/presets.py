"""Microseconds per trial-iteration of the packed tasks: packs of a preset against one trial at a time.

    python -m benchmarks.presets [--presets digits-product recurrent] [--out benchmarks/results/presets.csv]
    python -m benchmarks.presets --device cuda --pack 512 --out presets-gpu.csv

One or two models of each preset are trained as its file says, on one core, without evaluation. Packs are measured in
torch and compiled by XLA. One trial at a time is measured twice: by the same engine in packs of one, and in a plain
loop of torch. The loop draws the same batches and uses `torch.optim.Adam`, without regularisers and clipping. With
`--device cuda`, the engine trains on the GPU, and the plain loop stays on the core. Prints a row for each model, and
writes it with `--out`: median times, and speed-ups.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import yaml

from benchmarks.measure import Measure, finish, in_turns, new_pack, one_core, parser, ratio, training
from benchmarks.packed import timed
from study.driver.own_engine import own_engine
from study.engine.packed.engine import PackedEngine
from study.interface.signature import arguments_of
from study.interface.task import Task
from study.plan.plan import make_plan
from study.plugins.packed_tasks import builder_of, packed_task
from study.plugins.presets import preset_text
from study.records import Cell
from study.spec import parse_spec
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, noise_from

PRESETS: Mapping[str, Sequence[str]] = {
    "digits-product": ("NMU", "LSTM"),
    "digits-sum": ("NAU",),
    "digits-counting": ("NAC-add", "GRU"),
    "identity": ("tanh", "NAU"),
    "language": ("linear",),
    "recurrent": ("NAC-add", "LSTM"),
    "tabular": ("mlp", "NALU"),
    "time-tracking": ("NAU",),
}
"""Presets, and their measured models."""

GOAL = 8
_MOST_IN_PACK = 50
_LONG = 10_000_000


def preset_cell(preset: str, model: str) -> tuple[PackedEngine, Cell, int]:
    """Read a preset's first cell of one of its models, with changes so that only the start is evaluated.

    Returns:
        The preset's engine, the cell, and the number of its trials in a pack of the study.

    Raises:
        ValueError: if the preset doesn't train in packs.
        InputError: if there is no such preset, or it has no such model.
    """
    file: dict[str, Any] = yaml.safe_load(preset_text(preset))
    file["models"] = [
        entry for entry in file["models"] if model in (entry, entry["name"] if isinstance(entry, dict) else entry)
    ]
    file["protocol"] = {"iterations": _LONG, "evaluate_every": _LONG}
    for name in ("success", "references"):
        file.pop(name, None)
    plan = make_plan(parse_spec(yaml.safe_dump(file), source=preset))
    engine, cell = own_engine(plan.spec), plan.cells[0]
    if not isinstance(engine, PackedEngine):
        raise ValueError(f"preset {preset} doesn't train in packs")
    return engine, cell, min(len(list(plan.seeds(cell))), _MOST_IN_PACK)


def plain_loop(engine: PackedEngine, cell: Cell) -> Measure:
    """Warm a plain loop up, and return a function that measures its microseconds per iteration of one trial.

    It uses `torch.optim.Adam`, without regularisers and clipping.

    Args:
        engine: the cell's engine, as from `preset_cell`.
        cell: the cell.
    """
    task: Task = packed_task(cell.task)(**arguments_of(packed_task(cell.task), _values(cell, engine.fields)))
    builder = builder_of(task, cell.model)
    network = builder(**arguments_of(builder, _values(cell, engine.models[cell.model])))
    optimizer = torch.optim.Adam(network.parameters(), lr=cell.value("learning_rate"))
    setup = (task.setup(Stream([0], 0, Purpose.SETUP)),) if task.has_setup else ()
    iteration = 0

    def update() -> None:
        nonlocal iteration
        batch = task.draw(Stream([0], iteration, Purpose.TRAIN), *setup)
        optimizer.zero_grad()
        with noise_from(Stream([0], iteration, Purpose.NOISE)):
            task.loss(task.predict(network, batch), batch).backward()
        optimizer.step()
        iteration += 1

    return timed(update, 1)


def _values(cell: Cell, names: Sequence[str]) -> dict[str, Any]:
    return {name: cell.values.get(name) for name in names}


def main(words: Sequence[str] | None = None) -> None:
    """Measure the models of each preset; print the table, and write it with `--out`.

    Raises:
        DeviceError: if there is no GPU for ``--device cuda``.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=5, seconds=1.0)
    options.add_argument("--presets", nargs="+", default=list(PRESETS), choices=list(PRESETS), metavar="PRESET")
    options.add_argument("--warm", type=float, default=3.0, help="seconds before a pack is measured", metavar="S")
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--pack", type=int, help="trials in a pack; default: as a study has them on a core")
    arguments = options.parse_args(words)
    rows, device = [], arguments.device
    with one_core():
        for preset in arguments.presets:
            for model in PRESETS[preset]:
                engine, cell, most = preset_cell(preset, model)
                trials = arguments.pack or most
                ways = {
                    "plain loop": plain_loop(engine, cell),
                    "alone": training(engine, new_pack(cell, 1), device, warm_s=arguments.warm),
                    "packed": training(engine, new_pack(cell, trials), device, warm_s=arguments.warm),
                }
                if device == "cpu":
                    compiled = engine.proven([cell], {})
                    ways["compiled"] = training(compiled, new_pack(cell, trials), warm_s=arguments.warm)
                us = in_turns(ways, rounds=arguments.rounds, seconds=arguments.seconds)
                rows.append(
                    {"preset": preset, "model": model, "pack": trials}
                    | {f"us_{way.replace(' ', '_')}": f"{statistics.median(us[way]):.0f}" for way in ways}
                    | {"times_the_plain_loop": f"{ratio(us['plain loop'], us['packed']):.1f}"}
                    | {"times_alone": f"{ratio(us['alone'], us['packed']):.1f}", "goal": GOAL}
                    | ({"times_packed": f"{ratio(us['packed'], us['compiled']):.1f}"} if "compiled" in us else {})
                )
    finish(rows, arguments)


if __name__ == "__main__":
    main()

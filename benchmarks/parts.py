"""Parts of an update's time in a pack, in microseconds per trial-iteration: torch's parts, and XLA's.

    python -m benchmarks.parts [--hidden 2 32 128] [--packs 1 16 64 512] [--out benchmarks/results/parts.csv]

It measures the network and the task of `benchmarks.packed`, on one core. Prints a row for each hidden size and pack
size, and writes it with `--out`, with a column for each part. `unrecorded` is an update before torch has recorded it:
vmap and autograd trace its operations anew. The other columns of torch are parts of later updates: draws of the
streams, the recorded operations of loss and gradient, copies of gradients into the flat array, the optimiser's step.
XLA's are the draws for 64 iterations at once, and the program with the copies to and from it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.measure import Measure, finish, in_turns, one_core, parser
from benchmarks.packed import Spirals, mlp, timed
from study.engine.packed.members import PackLayout, SideBySide
from study.engine.packed.recipe import Member, Recipe
from study.engine.packed.traced import drawn, drawn_ahead
from study.engine.packed.xla import XlaSideBySide

_AT_ONCE = 64
_RECORDED = 70


def parts(hidden: int, trials: int) -> dict[str, Measure]:
    """Return for each part, by its column without ``us_``, a function that measures its us per trial-iteration."""
    recipe = Recipe(task=Spirals(), model=mlp, hyperparameters={"hidden": hidden})
    members = [Member(seed=seed) for seed in range(trials)]
    unrecorded, pack = SideBySide(recipe, members), SideBySide(recipe, members)
    pack.update(_RECORDED)
    compiled = XlaSideBySide(recipe, members, layout=PackLayout(multiple=16, backend="xla"))
    flat = pack._flat
    numbers = drawn(pack.draws, pack._seeds, 0)
    inputs = flat.parts("weight"), pack._others, pack._strengths(), pack._setup
    assert pack._repeat is not None
    gradients = pack._repeat(*inputs, numbers)
    moments = [flat.arrays[name] for name in flat.moments]
    rates = pack._rates.at(0)

    def step() -> None:
        pack._optimizer.step(flat.arrays["weight"], flat.arrays["gradient"], moments, rates, 0)

    works: dict[str, tuple[Callable[[], object], int]] = {
        "unrecorded": (lambda: unrecorded._compute(unrecorded._stream, *inputs), 1),
        "draws": (lambda: drawn(pack.draws, pack._seeds, 0), 1),
        "gradient": (lambda: pack._repeat(*inputs, numbers), 1),  # type: ignore[misc]
        "copies": (lambda: flat.set_gradient(gradients), 1),
        "step": (step, 1),
        "update": (pack.update, 1),
        "xla_draws": (lambda: drawn_ahead(pack.draws, compiled._seeds, range(_AT_ONCE)), _AT_ONCE),
        "xla_update": (lambda: compiled.update(_AT_ONCE), _AT_ONCE),
    }
    return {name: timed(work, trials * updates) for name, (work, updates) in works.items()}


def main(words: Sequence[str] | None = None) -> None:
    """Measure the parts of an update; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=5, seconds=0.2)
    options.add_argument("--hidden", type=int, nargs="+", default=[2, 32, 128])
    options.add_argument("--packs", type=int, nargs="+", default=[1, 16, 64, 512])
    arguments = options.parse_args(words)
    rows = []
    with one_core():
        for hidden in arguments.hidden:
            for trials in arguments.packs:
                us = in_turns(parts(hidden, trials), rounds=arguments.rounds, seconds=arguments.seconds)
                rows.append(
                    {"hidden_size": hidden, "pack": trials}
                    | {f"us_{name}": f"{statistics.median(values):.1f}" for name, values in us.items()}
                )
    finish(rows, arguments)


if __name__ == "__main__":
    main()

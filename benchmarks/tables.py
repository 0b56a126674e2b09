"""Tables of the documents, made from the CSV files of benchmarks/results and tasks/docs/results.

    python -m benchmarks.tables [--write]

Prints all tables in Markdown. `--write` puts each into the documents instead, between its marks.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median, quantiles
from textwrap import fill

from benchmarks.excerpts import EXCERPTS
from benchmarks.markdown import Row, markdown, number
from benchmarks.measure import PACK
from benchmarks.theory_tables import (
    barrier_table,
    curvature_table,
    moments_table,
    near_zero_table,
    start_sizes_table,
    starts_table,
)
from study import statistics
from study.environment import labelled

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def engine_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each shape; a dash means that a way wasn't measured, in packs of `PACK` trials.

    A line has the times of the plain loop, of torch with one cell a seed, and of the fused engine for each number of
    cells a seed, with the latter's speed-ups over the plain loop.
    """
    shapes: dict[tuple[str, str, str], dict[tuple[str, str], Row]] = {}
    shared = sorted({row["cells_a_seed"] for row in rows}, key=int)
    for row in rows:
        if row["engine"] == "plain loop" or int(row["pack"]) == PACK:
            ways = shapes.setdefault((row["model"], row["input_size"], row["hidden_size"]), {})
            ways[row["engine"], row["cells_a_seed"]] = row
    none = {"us_per_trial_iteration": "", "times_the_plain_loop": "", "times_torch": ""}
    lines = []
    for shape, ways in shapes.items():
        fused = [ways.get(("fused", cells), none) for cells in shared]
        us = [ways.get(way, none)["us_per_trial_iteration"] for way in (("plain loop", "1"), ("torch", "1"))]
        us += [row["us_per_trial_iteration"] for row in fused]
        gains = [row["times_the_plain_loop"] for row in fused]
        lines.append([*shape, *(number(text) for text in us + gains)])
    cells = [f"fused, {cells} cells a seed" if cells != "1" else "fused, 1 cell a seed" for cells in shared]
    head = ["model", "inputs", "hidden", "plain loop", "torch", *cells]
    return markdown([*head, *("times the plain loop" for _ in shared)], lines, 1)


def engine_peers_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each shape, pack size and number of cells that share a seed.

    A line has the times of the plain loop, torch, JAX and the fused engine, and the latter's speed-ups.

    Raises:
        KeyError: if one of them wasn't measured.
    """
    plain = {_shape(row): row for row in rows if row["engine"] == "plain loop"}
    lines = []
    for key, ways in _packs(rows).items():
        us = [way["us_per_trial_iteration"] for way in (plain[key[:3]], *(ways[name] for name in _PEERS))]
        fused = ways["fused"]
        times = [fused["times_the_plain_loop"], fused["times_torch"], fused["times_jax"]]
        spread = f"{number(fused['times_jax_least'])} to {number(fused['times_jax_most'])}"
        lines.append([*key, *map(number, us), *map(number, times), spread])
    head = ["model", "inputs", "hidden", "trials in a pack", "cells a seed", "plain loop", *_PEERS]
    return markdown(
        [*head, *(f"fused, times {name}" for name in ("the plain loop", "torch", "JAX")), "JAX, rounds"], lines, 1
    )


_PEERS = ("torch", "JAX", "fused")


def _shape(row: Row) -> tuple[str, ...]:
    return row["model"], row["input_size"], row["hidden_size"]


def _packs(rows: Sequence[Row]) -> dict[tuple[str, ...], dict[str, Row]]:
    """Return the rows of `_PEERS` by engine, for each shape, pack size and number of cells a seed."""
    packs: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        if row["engine"] in _PEERS:
            packs.setdefault((*_shape(row), row["pack"], row["cells_a_seed"]), {})[row["engine"]] = row
    return packs


def engine_peers_sentence(rows: Sequence[Row]) -> str:
    """Return sentences on the speed-up of the fused engine over JAX, batched torch and a plain loop.

    Raises:
        KeyError: if the NMU with 100 inputs and 2 hidden units wasn't measured in packs of `PACK` trials, with 9 and
            with 1 cells a seed, or if the fused engine wasn't measured in all packs.
    """
    packs, columns = _packs(rows), ("us_per_trial_iteration", "times_jax", "times_torch", "times_the_plain_loop")
    ends = [packs["NMU", "100", "2", str(PACK), cells]["fused"] for cells in ("9", "1")]
    us, jax, torch, plain = (" and ".join(number(row[name]) for row in ends) for name in columns)
    all_jax = sorted((ways["fused"]["times_jax"] for ways in packs.values()), key=float)
    models = _listed(list(dict.fromkeys(key[0] for key in packs)))
    return fill(
        f"One core makes an iteration of the published NMU (100 inputs, 2 hidden units) in {us} µs, where nine cells "
        f"share a seed and where none do. That is {jax} times as fast as hand-written JAX. It is {torch} times as fast "
        f"as the same units in batched PyTorch, all trials as one array program. A plain loop takes {plain} times as "
        f"long. Over all measured shapes of {models} it is {number(all_jax[0])} to {number(all_jax[-1])} times as fast "
        "as JAX ([benchmarks](benchmarks/README.md#beside-jax-and-batched-pytorch)).",
        120,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def packed_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each hidden size and pack size, at least one: times, speed-ups and goal.

    Columns that the rows lack are left out, such as those of JAX on a GPU.
    """
    titles = {
        "hidden_size": "hidden", "pack": "trials in a pack", "us_plain_loop": "plain loop, us",
        "us_packed": "packed, us", "us_compiled": "compiled, us", "us_jax": "JAX, us",
        "times_the_plain_loop": "times the plain loop", "goal": "goal", "times_jax": "time, times JAX's",
    }  # fmt: skip
    return _titled(titles, rows, 0)


def larger_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each network and pack size, at least one: times and speed-ups."""
    titles = {
        "network": "network", "pack": "trials in a pack", "us_packed": "packed, us", "us_compiled": "compiled, us",
        "us_jax": "JAX, us", "times_torch": "compiled: time, times packed", "times_jax": "compiled: time, times JAX's",
    }  # fmt: skip
    return _titled(titles, rows, 1)


def parts_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each hidden size and pack size, at least one: the parts of an update."""
    titles = {
        "hidden_size": "hidden", "pack": "trials in a pack", "us_unrecorded": "gradient, unrecorded",
        "us_draws": "draws", "us_gradient": "gradient", "us_copies": "copies", "us_step": "step",
        "us_update": "update", "us_xla_draws": "XLA: draws", "us_xla_update": "XLA: update",
    }  # fmt: skip
    return _titled(titles, rows, 0)


def _titled(titles: Mapping[str, str], rows: Sequence[Row], text_columns: int) -> str:
    """Return a table of the columns that the first of the rows has, in the order of `titles`, which head them.

    There is at least one row. The first `text_columns` are left-aligned.
    """
    columns = [name for name in titles if name in rows[0]]
    as_written = ("hidden_size", "pack", "preset", "model", "network")
    lines = [[row[name] if name in as_written else number(row[name]) for name in columns] for row in rows]
    return markdown([titles[name] for name in columns], lines, text_columns)


def pruning_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each function and pruning rule, without the rule ``none``."""
    lines = [
        [
            row["function"],
            row["rule"],
            f"{float(row['saved']):.0%} ± {float(row['saved_sd']):.0%}",
            f"{row['winner_stopped']} of {row['repetitions']}",
            f"{float(row['share_better']):.1%}, at most {float(row['share_better_most']):.0%}",
        ]
        for row in rows
        if row["rule"] != "none"
    ]
    head = ["function", "rule", "steps saved", "stopped the eventual winner", "trials better than what was found"]
    return markdown(head, lines, 2)


def presets_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each model of a preset, at least one: times, speed-ups and goal.

    Columns that the rows lack are left out, such as those of compiled packs on a GPU.
    """
    titles = {
        "preset": "preset", "model": "model", "pack": "trials in a pack", "us_plain_loop": "plain loop, us",
        "us_alone": "pack of one, us", "us_packed": "packed, us", "us_compiled": "compiled, us",
        "times_the_plain_loop": "packed: times the plain loop", "times_alone": "packed: times packs of one",
        "goal": "goal", "times_packed": "compiled: times packed",
    }  # fmt: skip
    return _titled(titles, rows, 2)


def script_table(rows: Sequence[Row]) -> str:
    """Return a table with the agreements of scripts, and of the torch engine, with the fused engine's trials.

    Raises:
        ValueError: if there are no such trials.
    """
    lines, fused = [], [row for row in rows if row["engine"] == "fused"]
    ways = {way: [row for row in fused if row["what"] == way] for way in ("script", "torch")}
    count = len(ways["script"])
    for title, name in (("the same outcome", "same_outcome"), ("the same outcome and solved-at", "same_solved_at")):
        lines.append([title, *(str(sum(int(row[name]) for row in engine_rows)) for engine_rows in ways.values())])
    shares = {way: [float(row["agreement"]) for row in engine_rows] for way, engine_rows in ways.items()}
    lines.append(
        ["the whole curve agrees", *(str(sum(share == 1 for share in agreements)) for agreements in shares.values())]
    )
    means = [f"{mean(agreements):.0%}" for agreements in shares.values()]
    lines.append(["share of the evaluations up to where a curve agrees, mean", *means])
    took_s = median(float(row["s_per_10k_iterations"]) for row in ways["script"])
    lines.append(["seconds for 10,000 iterations, median", number(str(took_s)), "–"])
    solved = sum(int(row["solved"]) for row in ways["script"])
    return markdown([f"of {count} trials, {solved} of them solved", "the script", "the torch engine"], lines, 1)


def floor_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each part, the floor and the engine: its time, and the multiple of the floor's."""
    lines = [
        [row["part"], row["hidden_size"], row["cells_a_seed"] or "–", number(row["us_per_iteration"]),
         number(row["times_the_floor"])]
        for row in rows
    ]  # fmt: skip
    return markdown(["part", "hidden", "cells a seed", "us a trial-iteration", "times the floor"], lines, 1)


def scaling_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each way and number of cores: speed, efficiency and seconds."""
    columns = (
        "trial_iterations_per_s",
        "efficiency",
        "training_s",
        "fixed_s",
        "whole_s",
        "whole_trial_iterations_per_s",
    )
    lines = [[row["kind"], row["cores"], row["trials"], *(number(row[name]) for name in columns)] for row in rows]
    head = ["what", "cores", "trials", "trial-iterations/s", "efficiency", "training, s", "fixed, s", "whole, s"]
    return markdown([*head, "trial-iterations/s, whole"], lines, 1)


def aggregate_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each file and number of cells: seconds and peak memory of a report."""
    lines = [
        [row["file"], f"{int(row['trials']):,}", f"{int(row['cells']):,}"]
        + [number(row[name]) for name in ("whole_s", "user_s", "start_s", "peak_mib")]
        for row in rows
    ]
    head = ["file", "trials", "cells", "whole, s", "CPU, s", "start alone, s", "most memory, MiB"]
    return markdown(head, lines, 1)


def commands_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each command: its times, and multiples of both baseline processes."""
    columns = ("whole_s", "cpu_s", "times_nothing", "times_arrays")
    lines = [[row["command"], *(number(row[name]) for name in columns)] for row in rows]
    head = ["command", "whole, s", "CPU, s", "times an empty process", "times `import numpy, pyarrow`"]
    return markdown(head, lines, 1)


def publishing_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each way to publish.

    A line has the CPU time of each process, and the total as a multiple of the minimum.
    """
    lines = []
    for row in rows:
        least, ours = (
            [float(row[f"{process}_{figure}"] or 0) for process in ("client", "server")]
            for figure in ("minimum_ms", "ms")
        )
        figures = [row[name] for name in ("client_minimum_ms", "client_ms", "server_minimum_ms", "server_ms")]
        known = [row["kind"], row["points"], row["pack"], row["packs_per_s"] or "–"]
        lines.append([*known, *map(number, figures), f"{sum(ours) / sum(least):.2f}"])
    head = ["to", "points", "trials a pack", "packs a second", "client: minimum, ms", "client, ms"]
    return markdown([*head, "server: minimum, ms", "server, ms", "times the minimum, both"], lines, 1)


def first_use_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each command and state of the compile cache: its seconds."""
    lines = [[row["command"], row["machine"] or "–", _spread(row, "whole_s")] for row in rows]
    return markdown(["command", "machine", "seconds, median and range"], lines, 2)


def function_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each way to run the function: its milliseconds."""
    lines = [
        [row["what"], f"{int(row['times']):,}", *(f"{float(row[name]):.3g}" for name in ("ms", "least_ms"))]
        for row in rows
    ]
    return markdown(["what", "times a round", "ms each, median of rounds", "of the quickest round"], lines, 1)


def trial_peers_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each way to run trials and each duration: seconds, overhead and target."""
    lines = []
    for row in rows:
        spreads = [_spread(row, name) if row[name] else "–" for name in ("total_s", "ms_a_trial")]
        known = [row["trial_s"], row["trials"], number(row["start_s"])]
        lines.append([_way(row["way"]), *known, *spreads, number(row["target_ms"])])
    head = ["by", "a trial, s", "trials", "1 empty trial, s", "total, s", "overhead, ms a trial", "target, ms"]
    return markdown(head, lines, 1)


def _spread(row: Row, name: str) -> str:
    """Write a median with the least and the greatest value."""
    return f"{number(row[name])} ({number(row[f'{name}_least'])} to {number(row[f'{name}_most'])})"


def peers_excerpt(rows: Sequence[Row]) -> str:
    """Return a table with a line for each of five ways, `_EXCERPT`.

    A line has the time of the start, the overhead of short trials, and the time of a whole run of the longest ones,
    which are the last in the rows.

    Raises:
        KeyError: if one of the ways wasn't measured at one of the durations, or at 0.
        ValueError: if there are no rows.
    """
    found = {(row["way"], row["trial_s"]): row for row in rows}
    *short, longest = dict.fromkeys(row["trial_s"] for row in rows)
    trials = next(row["trials"] for row in rows if row["trial_s"] == longest)
    lines = []
    for way in _EXCERPT:
        overheads = [number(found[way, trial_s]["ms_a_trial"]) for trial_s in short]
        lines.append(
            [_way(way), number(found[way, "0"]["start_s"]), *overheads, number(found[way, longest]["total_s"])]
        )
    head = ["by", "start, s", *(f"{float(trial_s) * 1e3:g} ms, ms a trial" for trial_s in short)]
    return markdown([*head, f"{trials} of {longest} s, s"], lines, 1)


_EXCERPT = ("study run FILE", "study run FILE --local", "Ray Tune, MLflow, reuse_actors", "Optuna, SQLite", "joblib")


def _way(name: str) -> str:
    return f"`{name}`" if name.startswith("study ") else name


def report_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each set of formats: seconds and peak memory of a report."""
    lines = [
        [row["asked"], f"{int(row['trials']):,}", f"{int(row['cells']):,}"]
        + [number(row[name]) for name in ("whole_s", "user_s", "peak_mib")]
        for row in rows
    ]
    return markdown(["formats", "trials", "cells", "whole, s", "CPU, s", "most memory, MiB"], lines, 1)


def scale_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each run of the driver: packs, seconds and memory."""
    lines = [
        [row["what"], f"{int(row['trials']):,}", f"{int(row['packs']):,}"]
        + [number(row[name]) for name in ("whole_s", "first_pack_s", "ms_a_pack")]
        + [number(row[name]) for name in ("memory_at_the_start_mib", "memory_at_the_end_mib", "memory_with_report_mib")]
        for row in rows
    ]
    head = ["run", "trials", "packs stored", "whole, s", "until the first pack, s", "ms a pack"]
    return markdown([*head, "driver at the first pack, MiB", "until the last pack", "with the report"], lines, 1)


def queue_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each number of workers: requests a second, and CPU time for each."""
    lines = [
        [f"{int(row['workers']):,}", f"{int(row['packs']):,}"]
        + [number(row[name]) for name in ("requests_a_second", "requests_a_second_least", "requests_a_second_most")]
        + [number(row["us_a_request"])]
        for row in rows
    ]
    return markdown(["workers", "packs", "requests/s, median", "least", "most", "CPU of the queue, µs each"], lines, 0)


def nodes_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each study: packs, seconds and lost trials."""
    lines = [
        [row["study"], row["nodes"], f"{int(row['trials']):,}", f"{int(row['packs']):,}"]
        + [number(row[name]) for name in ("whole_s", "first_pack_s", "packs_a_second")]
        + [row["lost"]]
        for row in rows
    ]
    head = ["study", "nodes", "trials", "packs", "whole, s", "until the first pack, s", "then packs/s"]
    return markdown([*head, "trials lost"], lines, 1)


def tracking_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each kind of MLflow: cost of publishing, and response times."""
    counts = ("published", "there")
    seconds = (
        "runs_per_s", "publisher_cpu_ms", "training_slower", "rerun_s", "sync_s",
        "list_s", "by_cell_s", "by_outcome_s", "by_metric_s", "page_s", "page_filtered_s",
    )  # fmt: skip
    lines = [
        [row["kind"], *(f"{int(row[name]):,}" for name in counts), *(number(row[name]) for name in seconds)]
        for row in rows
    ]
    head = [
        "kind",
        "published",
        "runs there",
        "runs/s",
        "publisher's CPU, ms a run",
        "training, times slower",
        "rerun, s",
        "sync, s",
    ]
    asked = ["first page, s", "of a cell, s", "by outcome, s", "ordered by metric, s"]
    return markdown([*head, *asked, "browser, s", "browser, filtered, s"], lines, 1)


def whole_table(rows: Sequence[Row]) -> str:
    """Return a table of every column as it is, for at least one row; the first is text, the others are numbers.

    Empty cells become dashes.
    """
    head = [name.replace("_", " ") for name in rows[0]]
    return markdown(head, [[text or "–" for text in row.values()] for row in rows], 1)


def coverage_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each interval and distribution: its coverage for each number of seeds."""
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        lines.setdefault((row["interval"], row["distribution"]), []).append(_coverage(row))
    head = ["interval", "distribution", *(f"{n} seeds" for n in sizes)]
    return markdown(head, [[f"`{name}`", distribution, *shares] for (name, distribution), shares in lines.items()], 2)


def _coverage(row: Row) -> str:
    if not row["coverage"]:
        return "–"
    share, known = 100 * float(row["coverage"]), 100 * float(row["with_interval"])
    return f"{share:.1f}" if round(known) == 100 else f"{share:.1f} (of {known:.0f}%)"


def restricted_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each distribution and interval.

    A line has the interval's coverage for each number of seeds, at least two, and its width at the second and the last.
    """
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["distribution"], row["interval"]), []).append(row)
    texts = [
        [
            distribution,
            _as_code(interval),
            *map(_coverage, cells),
            *(number(cells[place]["width"]) for place in (1, -1)),
        ]
        for (distribution, interval), cells in lines.items()
    ]
    head = ["distribution", "interval", *(f"{n} seeds" for n in sizes), f"width, {sizes[1]}", f"width, {sizes[-1]}"]
    return markdown(head, texts, 2)


def robust_table(rows: Sequence[Row]) -> str:
    """Return a table of the least coverage and greatest width over distributions, by interval and sample size.

    Widths are those at the second size and the last. The first row's interval has a line for each number of cells and
    kind of seeds; each other one has a single line.

    Raises:
        IndexError: if there are fewer than two sizes.
        ValueError: if a line has no coverage at one of the sizes.
    """
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    own = rows[0]["interval"]
    lines: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        key = (row["cells"], row["seeds"] or "–") if row["interval"] == own else ("all", "all")
        lines.setdefault((row["interval"], *key), []).append(row)
    texts = []
    for (interval, cells, seeds), group in sorted(lines.items(), key=lambda line: line[0][0] != own):
        by_size = {n: [row for row in group if row["n"] == n and row["coverage"]] for n in sizes}
        least = [_coverage(min(by_size[n], key=_share)) for n in sizes]
        widest = [_widest(by_size[n]) for n in (sizes[1], sizes[-1])]
        texts.append([_as_code(interval), cells, seeds, *least, *widest])
    head = ["interval", "cells", "seeds", *(f"{n} seeds" for n in sizes)]
    return markdown([*head, f"width, {sizes[1]}", f"width, {sizes[-1]}"], texts, 3)


def _share(row: Row) -> float:
    return float(row["coverage"])


def _widest(rows: Sequence[Row]) -> str:
    return number(max((row["width"] for row in rows), key=float))


def tests_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each distribution and test: its rejection rate, by the number of seeds."""
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    lines: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        key = row["distribution"], row["truth"], _as_code(row["test"])
        lines.setdefault(key, []).append(f"{100 * float(row['rejected']):.1f}")
    head = ["distribution", "methods", "test", *(f"{n} seeds" for n in sizes)]
    return markdown(head, [[*key, *shares] for key, shares in lines.items()], 3)


def tuned_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each law and truth, in percent.

    A line has the rates of winners that the first two ways name, right ones if the methods differ, else false ones, and
    the first way's coverage.
    """
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    ways = list(dict.fromkeys(row["way"] for row in rows))[:2]
    lines: dict[tuple[str, str], dict[tuple[str, str], Row]] = {}
    for row in rows:
        lines.setdefault((row["distribution"], row["truth"]), {})[row["way"], row["n"]] = row
    texts = [
        [
            *key,
            *(f"{100 * float(line[way, n]['found'] or line[way, n]['false']):.1f}" for way in ways for n in sizes),
            *(f"{100 * float(line[ways[0], n]['coverage']):.1f}" for n in sizes),
        ]
        for key, line in lines.items()
    ]
    named = [f"{'winner, ' if place == 0 else 'same seeds, '}{n} seeds" for place in range(2) for n in sizes]
    return markdown(["distribution", "methods", *named, *(f"interval holds, {n}" for n in sizes)], texts, 2)


def tuned_ways_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each way to compare tuned methods, over all laws, in percent.

    A line has the greatest rate of false winners, the least coverage, and the mean rate of right winners, by seeds.
    """
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    measures = {"most_false": "most false", "least_coverage": "least coverage", "mean_found": "found, mean"}
    lines = []
    for way in dict.fromkeys(row["way"] for row in rows):
        own = {row["n"]: row for row in rows if row["way"] == way}
        values = [own[n][measure] for measure in measures for n in sizes]
        lines.append([_as_code(way), *(f"{100 * float(value):.1f}" if value else "–" for value in values)])
    return markdown(["way", *(f"{text}, {n} seeds" for text in measures.values() for n in sizes)], lines, 1)


def looks_table(rows: Sequence[Row]) -> str:
    """Return two tables, with a line for each rate and for each pair of rates.

    A line has a share and the mean number of seeds of each way.
    """
    return "\n\n".join(
        _ways(title, [row for row in rows if (" and " in row["of"]) == is_pair], measure)
        for title, is_pair, measure in (("rate", False, "coverage, %"), ("rates", True, "told apart, %"))
    )


def precision_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each distribution and half-width.

    A line has the coverage and the seeds used by each rule.
    """
    return _ways("distribution, half-width", rows, "coverage, %")


def _ways(title: str, rows: Sequence[Row], measure: str) -> str:
    ways = list(dict.fromkeys(row["way"] for row in rows))
    found = {(row["of"], row["way"]): row for row in rows}
    lines = []
    for case in dict.fromkeys(row["of"] for row in rows):
        line = [case]
        for way in ways:
            row = found.get((case, way), {"share": "", "mean_seeds": ""})
            line += [f"{100 * float(row['share']):.1f}" if row["share"] else "–", number(row["mean_seeds"])]
        lines.append(line)
    named = [text for way in ways for text in (f"{_as_code(way)}: {measure}", "seeds")]
    return markdown([title, *named], lines, 1)


def _as_code(way: str) -> str:
    """Format the text up to the first comma as code, if it names a function of `study.statistics`."""
    name, comma, details = way.partition(",")
    return f"`{name}`{comma}{details}" if hasattr(statistics, name) else way


def errors_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each law.

    A line has the rate of studies with a wrong verdict, the share of decided claims, and the mean seeds of a cell.
    """
    lines = [
        [row["law"], row["claims"], _percent(row["wrong"], 2), _percent(row["decided"], 2), number(row["mean_seeds"])]
        for row in rows
    ]
    return markdown(["cells", "claims", "any wrong, %", "decided, %", "seeds a cell"], lines, 1)


def power_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each law, with the rate of shown claims and the seeds used by each rule."""
    renamed = [{"of": row["law"], "way": row["rule"], "share": row["shown"]} | row for row in rows]
    return _ways("cells", renamed, "shown, %")


def raised_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each law and way.

    A line has the rate of wrongly shown claims, with and without one error for all looks, and the bound of that error.
    """
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row["law"], row["way"]), {})[row["rule"]] = row
    texts = [
        [law, way, *(_percent(rules[rule]["wrong"], 2) for rule in rules), _percent(rules["shared"]["error"], 2)]
        for (law, way), rules in lines.items()
    ]
    head = ["a claim at its bound", "seeds", "wrong, %", "each look at 5%: wrong, %", "said: at most, %"]
    return markdown(head, texts, 2)


def peers_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each law and way: its decisions on the first of two rates, and the seeds used."""
    words = ("greater", "not greater")
    lines = [
        [row["law"], row["way"], *(_percent(row[f"says {word}"], 1) for word in words), number(row["mean_seeds"])]
        for row in rows
    ]
    head = ["rates", "by", "the first is greater, %", "it is not, %", "seeds"]
    return markdown(head, lines, 2)


def components_table(rows: Sequence[Row]) -> str:
    """Return a table of the least coverage of all shares by size.

    The first row's interval has a line for each distribution; each other one has a line for all of them. There is at
    least one row.

    Raises:
        ValueError: if a line has no coverage at one of the sizes.
    """
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    own = rows[0]["interval"]
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["interval"], row["distribution"] if row["interval"] == own else "all"), []).append(row)
    texts = []
    for (interval, distribution), group in sorted(lines.items(), key=lambda line: line[0][0] != own):
        least = [min(_least_part(row) for row in group if row["n"] == n) for n in sizes]
        texts.append([_as_code(interval), distribution, *(f"{100 * share:.1f}" for share in least)])
    return markdown(["interval", "distribution", *(f"{n} seeds of each" for n in sizes)], texts, 2)


def shared_rates_table(rows: Sequence[Row]) -> str:
    """Return a table of the least coverage over shares by design and rate, and greatest width at rates 0.05 and 0.5.

    Raises:
        KeyError: if one of these two rates wasn't measured.
        ValueError: if a design lacks a rate of another one.
    """
    rates = list(dict.fromkeys(row["rate"] for row in rows))
    texts = []
    for design in dict.fromkeys(row["seeds"] for row in rows):
        by_rate = {rate: [row for row in rows if (row["seeds"], row["rate"]) == (design, rate)] for rate in rates}
        least = [100 * min(map(_share, group)) for group in by_rate.values()]
        widest = [_widest(by_rate[rate]) for rate in ("0.05", "0.5")]
        texts.append([design, *(f"{coverage:.0f}" for coverage in least), *widest])
    head = ["seeds", *(f"rate {rate}" for rate in rates), "width, 0.05", "width, 0.5"]
    return markdown(head, texts, 1)


def standardised_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each law of the levels' rates.

    A line has coverage and mean width of the standardised and of the raw rate's interval, by seeds.
    """
    seeds = list(dict.fromkeys(row["seeds"] for row in rows))
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        both = (
            f"{_percent(row[f'{name}_coverage'], 1)}, {number(row[f'{name}_width'])}"
            for name in ("standardised", "raw")
        )
        lines.setdefault((row["law"], row["rate"]), []).append("; ".join(both))
    head = ["rates of the levels", "rate", *(f"{count} seeds" for count in seeds)]
    return markdown(head, [[*key, *texts] for key, texts in lines.items()], 2)


def standardised_more_table(rows: Sequence[Row]) -> str:
    """Return a table with three lines for each law: the rate with drawn starts, a difference, and a raw difference.

    A line has coverage and mean width of the interval, by seeds.
    """
    seeds = list(dict.fromkeys(row["seeds"] for row in rows))
    kinds = {"drawn": "rate, starts drawn", "difference": "difference", "raw_difference": "raw difference"}
    lines = [
        [law, text, *(f"{_percent(row[f'{kind}_coverage'], 1)}, {number(row[f'{kind}_width'])}" for row in own)]
        for law in dict.fromkeys(row["law"] for row in rows)
        for kind, text in kinds.items()
        if (own := [row for row in rows if row["law"] == law])
    ]
    return markdown(["rates of the levels", "interval of", *(f"{count} seeds" for count in seeds)], lines, 2)


def designs_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each distribution and test: its rejection rate, by design."""
    designs = list(dict.fromkeys(row["design"] for row in rows))
    lines: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        key = row["distribution"], row["truth"], _as_code(row["test"])
        lines.setdefault(key, []).append(_percent(row["rejected"], 1))
    return markdown(["distribution", "methods", "test", *designs], [[*key, *line] for key, line in lines.items()], 3)


def _least_part(row: Row) -> float:
    return min(float(row[name]) for name in ("coverage_first", "coverage_second", "coverage_rest") if row[name])


def _percent(share: str, digits: int) -> str:
    return f"{100 * float(share):.{digits}f}"


def narrow_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each cell: its rate by all seeds, and by the rule's; it adds columns to `rows`."""
    for row in rows:
        row["all"], row["some"] = (_of(row, name) for name in ("fixed_", ""))
        row["fixed"], row["until"] = (_rate(row, name) for name in ("fixed", "until"))
    head = ["cell", "all seeds", "rate, Wilson's interval", "expected after a batch", "until sure"]
    more = ["rate, calibrated interval", "narrow enough", "agrees"]
    names = ("cell", "all", "fixed", "expected", "some", "until", "is_sure", "agrees")
    return markdown([*head, *more], [[row[name] for name in names] for row in rows], 1)


def apart_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each pair of cells: the verdicts of all seeds, and of the seeds of the rule."""
    names = (
        "pair", "fixed_solved", "fixed_solved_other", "fixed_p", "fixed_verdict",
        "expected", "seeds", "it_alone", "the_other_alone", "p", "verdict", "agrees",
    )  # fmt: skip
    head = ["pair", "solved of all seeds", "the other", "p, Fisher", "verdict", "expected after a batch"]
    more = ["seeds until sure", "it alone solved", "the other alone", "p, at any time", "verdict", "agrees"]
    return markdown([*head, *more], [[row[name] for name in names] for row in rows], 1)


def _of(row: Row, which: str) -> str:
    return f"{row[f'{which}solved']}/{row[f'{which}seeds']}"


def _rate(row: Row, name: str) -> str:
    rate, low, high, width = (float(row[f"{name}_{what}"]) for what in ("rate", "low", "high", "half_width"))
    return f"{rate:.3f} [{low:.3f}, {high:.3f}], ±{width:.3f}"


def search_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each question and method: true and seen rates of its picks, and the comparison.

    The comparison with the search by TPE is Mann and Whitney's permutation test, with Holm's p-values over a question's
    methods, and the probability that a pick of the method is better. It is empty for the search by TPE itself, for a
    method with a single pick or with the same rate at all picks of both, and without a search by TPE.

    Raises:
        ValueError: if a rate isn't a number.
    """
    lines = []
    for question in dict.fromkeys(row["question"] for row in rows):
        of_question = [row for row in rows if row["question"] == question]
        by_method = {
            method: [row for row in of_question if row["method"] == method]
            for method in dict.fromkeys(row["method"] for row in of_question)
        }
        losses = {method: [1 - float(row["rate"]) for row in group] for method, group in by_method.items()}
        tests = {
            method: test
            for method, group in losses.items()
            if method != SEARCH and len(group) > 1 and SEARCH in losses
            if (test := statistics.partly_paired_ranks([], [], group, losses[SEARCH])) is not None
        }
        p_values = dict(zip(tests, statistics.holm([test.p_value for test in tests.values()]), strict=True))
        for method, group in by_method.items():
            rates, seen = ([float(row[name]) for row in group] for name in ("rate", "rate_seen"))
            ends = quantiles(rates, n=4, method="inclusive")[::2] if len(rates) > 1 else []
            test = tests.get(method)
            better = "" if test is None else f"{test.estimate:.2f} [{test.interval[0]:.2f}, {test.interval[1]:.2f}]"
            lines.append([
                question, method, f"{int(group[0]['trials']):,}", f"{len(group)}", f"{median(rates):.3f}",
                "–".join(f"{end:.3f}" for end in ends), f"{min(rates):.3f}", f"{median(seen):.3f}",
                better, "" if test is None else "< 0.001" if p_values[method] < 0.001 else f"{p_values[method]:.3f}",
            ])  # fmt: skip
    head = [
        "question", "method", "trials", "repetitions", "success rate of its picks, median", "quartiles", "worst",
        "as it saw them, median", "better than the search by TPE", "p",
    ]  # fmt: skip
    return markdown(head, lines, 2)


SEARCH = "search, TPE"
TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "engine": engine_table, "engine_peers": engine_peers_table, "engine_peers:sentence": engine_peers_sentence,
    "floor": floor_table, "scaling": scaling_table,
    "packed": packed_table, "larger": larger_table, "parts": parts_table, "presets": presets_table,
    "coverage": coverage_table, "restricted": restricted_table, "centres": restricted_table, "looks": looks_table,
    "precision": precision_table,
    "robust/interquartile-mean": robust_table, "robust/profile": robust_table, "robust/improvement": robust_table,
    "components": components_table, "shared_rates": shared_rates_table,
    "standardised": standardised_table, "standardised:more": standardised_more_table,
    "winners": whole_table,
    "overlap/partial": designs_table, "overlap/crossed": designs_table,
    "claims/errors": errors_table, "claims/power": power_table, "claims/peers": peers_table,
    "claims/raised": raised_table,
    "pairing/intervals": restricted_table, "pairing/tests": tests_table, "pairing/studies": whole_table,
    "tuned/laws": tuned_table, "tuned/ways": tuned_ways_table,
    "aggregate": aggregate_table,
    "commands": commands_table,
    "first_use": first_use_table,
    "function": function_table,
    "peers": trial_peers_table, "peers_programs": trial_peers_table, "peers:excerpt": peers_excerpt,
    "pruning": pruning_table,
    "report": report_table,
    "scale": scale_table, "queue": queue_table, "nodes": nodes_table,
    "script": script_table,
    "publishing": publishing_table,
    "tracking": tracking_table,
    "moments": moments_table, "curvature": curvature_table, "barrier": barrier_table, "near_zero": near_zero_table,
    "starts": starts_table, "starts:sizes": start_sizes_table,
    "search/methods": search_table,
    "until/half-width": narrow_table, "until/different-from": apart_table,
    **{f"gpu/{part}": whole_table for part in ("checks", "models", "packs", "groups", "floor", "registers")},
    "gpu/packed": packed_table,
}  # fmt: skip
DOCS = HERE.parent / "docs"
STATISTICS = DOCS / "explanation" / "statistics"
FIELD = HERE.parent / "tasks" / "docs"
PUBLISHED_RESULTS = FIELD / "results"
PAGES = (
    HERE.parent / "README.md", HERE / "README.md", *sorted(STATISTICS.glob("*.md")), FIELD / "theory.md",
    DOCS / "guides" / "claims.md", DOCS / "guides" / "deploy.md", DOCS / "guides" / "one-machine.md",
    *(PUBLISHED_RESULTS / folder / "README.md" for folder in (".", "until", "search", "hidden-size")),
)  # fmt: skip


def source(note: Path) -> str:
    """Describe the origin of results, from their JSON file, in a sentence; for `until` with the trials saved.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it isn't JSON.
        KeyError: if it lacks an entry.
    """
    found = labelled(json.loads(note.read_text()))
    versions = found["packages"] | ({"jax": found["jax"]} if found.get("jax") else {})
    packages = ", ".join(
        f"{name} {versions[name]}" for name in ("torch", "numpy", "numba", "ray", "jax") if name in versions
    )
    shown = (
        "rounds", "seconds", "study_rounds", "study_seconds", "studies", "samples", "grid", "seed", "half_width", "max",
        "batch",
    )  # fmt: skip
    settings = ", ".join(f"{name} {found['settings'][name]:g}" for name in shown if name in found["settings"])
    changed = " with changes" if found["service_git_dirty"] else ""
    trials = ""
    if "fixed_trials" in found:
        fewer = 1 - found["trials"] / found["fixed_trials"]
        trials = f"{found['trials']:,} trials instead of {found['fixed_trials']:,}: {fewer:.1%} fewer. "
    return trials + (
        f"Measured {found['created_at'][:10]} on {found['device']} ({found['processor']}), {packages}; "
        f"commit {(found['service_git_commit'] or 'unknown')[:12]}{changed}{'; ' if settings else ''}{settings}."
    )


def table(name: str) -> str:
    """Return a benchmark's table in Markdown with its origin, or a note that it hasn't been measured.

    A name with a suffix after a colon, such as ``peers:excerpt``, gives another table of the same file, without the
    origin. Of a table in `EXCERPTS`, only the rows chosen there are shown.

    Raises:
        KeyError: if the file exists, but `TABLES` lacks the name, the file a column or, for some tables, a row, or the
            JSON file an entry.
        FileNotFoundError: if the JSON file with the origin is missing.
        IndexError: if the file has no rows, for some tables.
        ValueError: the same for other tables, or if a text isn't a number.
    """
    stem, _, excerpt = name.partition(":")
    file = (PUBLISHED_RESULTS if stem.startswith(("until/", "search/")) else RESULTS) / f"{stem}.csv"
    if not file.exists():
        return "Not measured yet."
    with file.open(newline="") as lines:
        chosen = EXCERPTS.get(name, {}).items()
        rows = [row for row in csv.DictReader(lines) if all(row[column] in values for column, values in chosen)]
    made = TABLES[name](rows)
    return made if excerpt else f"{made}\n\n{source(file.with_suffix('.json'))}"


def written(page: str) -> str:
    """Return the page with each table between its marks, ``<!-- figures: NAME -->`` and an end, replaced by `table`.

    Raises:
        KeyError: as for `table`.
        FileNotFoundError: as for `table`.
        IndexError: as for `table`.
        ValueError: as for `table`.
    """
    return re.sub(r"(<!-- figures: (\S+) -->\n).*?(<!-- end -->)", _filled, page, flags=re.DOTALL)


def _filled(marks: re.Match[str]) -> str:
    return f"{marks[1]}\n{table(marks[2])}\n\n{marks[3]}"


def main() -> None:
    """Print the tables, or with `--write` put them into the documents.

    Raises:
        KeyError: if a page names an unknown table, or a file lacks a column.
        FileNotFoundError: if a page, or a table's JSON file, is missing.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into the documents")
    if parser.parse_args().write:
        for page in PAGES:
            page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print("\n\n".join(table(name) for name in TABLES))


if __name__ == "__main__":
    main()

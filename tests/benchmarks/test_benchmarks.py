"""Short runs of the benchmarks, and their results in documents; no test asserts a speed."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks import (
    aggregate,
    centres,
    claims,
    commands,
    components,
    coverage,
    engine,
    first_use,
    floor,
    function,
    looks,
    overlap,
    packed,
    peers,
    precision,
    presets,
    publishing,
    report,
    restricted,
    robust,
    scale,
    scaling,
    script,
    shared_rates,
    standardised,
    tables,
    tracking,
    until,
)
from benchmarks.excerpts import EXCERPTS
from benchmarks.measure import published_cell
from benchmarks.plain import KNOWN, output, penalty
from study import statistics
from study.console import Console
from study.driver.options import Options
from study.plan.plan import make_plan
from study.plan.until import Verdict
from study.run import Ending, run
from study.spec import parse_spec
from study.store import Store
from study.summaries.aggregate import CellSummary
from tasks.arithmetic import MODELS
from tasks.arithmetic.networks import Network
from tests.servers import postgres_programs
from units.regularize import LIMITS

TEXTS = {"model", "preset", "engine", "part", "kind", "file", "asked", "what", "command", "machine"}
MAY_BE_NONE = {"packs"}


def measured(main: Callable[[list[str]], None], folder: Path, *words: str) -> list[dict[str, str]]:
    """Run a benchmark and return its rows, after checking that every number is finite and not negative.

    The time of a trial is a difference of two runs, and on a busy machine may be anything.
    """
    out = folder / "out.csv"
    main([*words, "--out", str(out)])
    assert json.loads(out.with_suffix(".json").read_text())["packages"]
    with out.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    timed = [row for row in rows if row.get("what") != function.RUN]
    numbers = [text for row in timed for name, text in row.items() if name not in TEXTS | MAY_BE_NONE and text]
    assert numbers
    assert min(float(text) for text in numbers) >= 0  # speed and load of the machine aren't tested
    return rows


@pytest.mark.long
def test_scripts_are_measured_beside_the_torch_engine(tmp_path):
    """Each trial is compared by its script and by the torch engine, whose curves equal its stored ones."""
    rows = measured(script.main, tmp_path, "--models", "linear", "NMU-normalized", "--seeds", "1")
    assert [(row["model"], row["engine"], row["what"]) for row in rows] == [
        (model, engine, way)
        for model, engine in (("linear", "fused"), ("NMU-normalized", "torch"))  # the fused engine refuses the latter
        for way in ("script", "torch")
    ]
    assert rows[-1]["agreement"] == "1.0000"
    assert tables.script_table(rows).count("\n") == 6


@pytest.mark.slow
def test_the_engines_are_measured_beside_the_plain_loop(tmp_path):
    """Each shape has rows of the plain loop and of both engines by cells per seed; the CPU affinity is restored."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    words = "--models NAC-mul NMU-normalized --inputs 4 --hidden 2 --packs 64 --cells 1 4 --rounds 2 --seconds 0.01"
    rows = measured(engine.main, tmp_path, *words.split())
    assert [(row["model"], row["engine"], row["pack"], row["cells_a_seed"]) for row in rows] == [
        ("NAC-mul", "plain loop", "1", "1"),
        ("NAC-mul", "fused", "64", "1"),
        ("NAC-mul", "fused", "64", "4"),
        ("NAC-mul", "torch", "64", "1"),
        ("NAC-mul", "torch", "64", "4"),
        ("NMU-normalized", "plain loop", "1", "1"),  # the fused engine refuses it
        ("NMU-normalized", "torch", "64", "1"),
        ("NMU-normalized", "torch", "64", "4"),
    ]
    assert [row["times_torch"] for row in rows if row["engine"] == "torch"] == ["1.00"] * 4
    assert tables.engine_table(rows).count("\n") == 3
    assert before == (os.sched_getaffinity(0) if before else None)


@pytest.mark.long
def test_the_engines_are_measured_beside_jax(tmp_path):
    """Each pack has rows of torch, JAX and the fused engine, with ratios from the same rounds."""
    pytest.importorskip("jax")
    words = "--models NMU --inputs 100 --hidden 2 --packs 5 64 --cells 1 9 --rounds 1 --seconds 0.01"
    rows = measured(engine.main, tmp_path, *words.split())
    us = {(row["engine"], row["pack"], row["cells_a_seed"]): float(row["us_per_trial_iteration"]) for row in rows}
    assert len(us) == 1 + 3 * 4
    for row in rows[1:]:
        expected = us["JAX", row["pack"], row["cells_a_seed"]] / float(row["us_per_trial_iteration"])
        assert [float(row[name]) for name in ("times_jax", "times_jax_least", "times_jax_most")] == pytest.approx(
            [expected] * 3, rel=0.03, abs=0.01
        )
    assert tables.engine_peers_table(rows).count("\n") == 5
    assert f"{tables.number(fused_times_jax(rows, '9'))} and" in " ".join(tables.engine_peers_sentence(rows).split())


def fused_times_jax(rows: list[dict[str, str]], cells: str) -> str:
    """Return the speed-up of the fused engine over JAX in a full pack."""
    (row,) = [row for row in rows if (row["engine"], row["pack"], row["cells_a_seed"]) == ("fused", "64", cells)]
    return row["times_jax"]


@pytest.mark.parametrize("model", ["NMU", "NAC-add", "NALU"])
def test_networks_in_jax_make_the_plain_loops_update(model):
    """Loss, regulariser, Adam and clipping change the weights as torch's autograd and optimiser do."""
    pytest.importorskip("jax")
    from jax import numpy as jnp
    from jax import tree

    from benchmarks import jax_networks

    torch.manual_seed(1)
    cell = published_cell(model, 10, 3)
    strength = cell.value("sparsity_strength")
    cell = cell.replace(sparsity_end=2) if strength else cell
    network, x, target = Network(MODELS[model], 10, 3), torch.empty(16, 10).uniform_(1, 2), torch.rand(16, 1)
    layers = tuple(
        {name: jnp.asarray(p.detach().numpy().copy()) for name, p in u.named_parameters()} for u in network.layers
    )
    state = (layers, *(tree.map(jnp.zeros_like, layers) for _ in range(2)))
    update, optimizer = jax_networks.update_of_cell(cell), torch.optim.Adam(network.parameters(), lr=1.0)
    for iteration, ramp in enumerate((0.0, 0.5, 1.0, 1.0)):
        state = update(state, 1.0, iteration, x.numpy(), target.numpy())
        loss = torch.nn.functional.mse_loss(output(network, x), target)
        loss = loss + strength * ramp * penalty(network) if strength else loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for layer in network.layers:
            for name, kind in layer.traits.bounded.items():
                getattr(layer, name).data.clamp_(*LIMITS[kind])
    for layer, ours in zip(network.layers, state[0], strict=True):
        for name, weight in layer.named_parameters():
            np.testing.assert_allclose(ours[name], weight.detach().numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.long
def test_packs_are_measured_beside_a_plain_loop(tmp_path):
    """Each width of the network has a line for each pack size, with the speed-ups of compiled packs."""
    rows = measured(
        packed.main, tmp_path, *["--hidden", "2", "5", "--packs", "4", "--rounds", "1", "--seconds", "0.01"]
    )
    assert [(row["hidden_size"], row["pack"], row["goal"]) for row in rows] == [("2", "4", "20"), ("5", "4", "")]
    for row in rows:
        compiled = float(row["us_compiled"])
        assert float(row["times_the_plain_loop"]) == pytest.approx(float(row["us_plain_loop"]) / compiled, rel=0.05)
        assert float(row["times_jax"]) == pytest.approx(compiled / float(row["us_jax"]), rel=0.05)
    assert tables.packed_table(rows).count("\n") == 3


@pytest.mark.long
def test_packs_of_presets_are_measured_beside_one_trial_at_a_time(tmp_path):
    """Each model of its preset has a line with both ratios."""
    words = "--presets digits-sum identity --rounds 1 --seconds 0.01 --warm 0"
    rows = measured(presets.main, tmp_path, *words.split())
    measured_packs = [(row["preset"], row["model"], row["pack"]) for row in rows]
    assert measured_packs == [("digits-sum", "NAU", "10"), ("identity", "tanh", "50"), ("identity", "NAU", "50")]
    for row in rows:
        for way, ratio in (("plain_loop", "times_the_plain_loop"), ("alone", "times_alone")):
            times = float(row[f"us_{way}"]) / float(row["us_packed"])
            assert float(row[ratio]) == pytest.approx(times, rel=0.1, abs=0.06)
    assert tables.presets_table(rows).count("\n") == 4
    for preset, models in presets.PRESETS.items():
        assert all(presets.preset_cell(preset, model)[1].model == model for model in models)


@pytest.mark.slow
def test_the_floor_is_stream_and_multiply_adds(tmp_path):
    """All parts are measured beside the engine, and the floor is the sum of two of them."""
    rows = measured(floor.main, tmp_path, *["--hidden", "2", "--cells", "1", "4", "--rounds", "1", "--seconds", "0.01"])
    us = {(row["part"], row["cells_a_seed"]): float(row["us_per_iteration"]) for row in rows}
    assert len(us) == len(rows) == 8
    stream, products = us[floor.STREAM, ""], us[floor.PRODUCTS, ""]
    assert us[floor.FLOOR, "1"] == pytest.approx(stream + products, abs=0.002)
    needed = [128 * (2 * 100 * 2 + 50 / cells + 3 * 2) for cells in (1, 4)]
    assert us[floor.FLOOR, "4"] == pytest.approx(stream / 4 + products * needed[1] / needed[0], abs=0.002)
    assert [row["times_the_floor"] for row in rows if row["part"] == floor.FLOOR] == ["1.00"] * 2
    assert {row["multiply_adds"] for row in rows} == {"", *(str(round(count)) for count in needed)}
    assert tables.floor_table(rows).count("\n") == 9
    assert next(tmp_path.glob("*.png")).stat().st_size > 1000


# Warnings of Ray and its dependencies are theirs to fix.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_threads_and_packs_are_measured(tmp_path):
    """Threads have a rate; a study with or without Ray also has its parts, and they add up to the total."""
    words = "--cores 1 --trials 2 --rounds 1 --seconds 0.01 --study-rounds 1 --study-seconds 0.01"
    rows = measured(scaling.main, tmp_path, *words.split())
    assert [row["kind"] for row in rows] == [scaling.THREADS, scaling.LOCAL, scaling.RAY]
    for row in rows[1:]:
        parts = float(row["training_s"]) + float(row["fixed_s"])
        assert float(row["whole_s"]) == pytest.approx(parts, abs=0.011)
    assert tables.scaling_table(rows).count("\n") == 4


@pytest.mark.slow
def test_tables_of_many_outcomes_are_measured(tmp_path):
    """Each kind of file has rows for each number of cells, with seconds and memory."""
    rows = measured(aggregate.main, tmp_path, *["--trials", "400", "--cells", "4", "--rounds", "1"])
    assert [(row["file"], row["cells"]) for row in rows] == [(aggregate.FEW, "4"), (aggregate.ALL, "4")]
    assert tables.aggregate_table(rows).count("\n") == 3


@pytest.mark.slow
def test_commands_are_measured(tmp_path, monkeypatch):
    """Every command runs as a process of its own, beside an empty process."""
    few = ("study --help", "study list")
    monkeypatch.setattr(commands, "COMMANDS", {name: commands.COMMANDS[name] for name in few})
    rows = measured(commands.main, tmp_path, "--rounds", "1")
    assert [row["command"] for row in rows] == [commands.NOTHING, commands.ARRAYS, *few]
    assert [rows[0]["times_nothing"], rows[1]["times_arrays"]] == ["1.0", "1.00"]
    assert tables.commands_table(rows).count("\n") == len(rows) + 1


@pytest.mark.slow
def test_a_first_study_is_measured(tmp_path, monkeypatch):
    """Each command runs in a new folder, and has a median time with its spread."""
    task = ("ray.init and a task", "")
    monkeypatch.setattr(first_use, "COMMANDS", {task: first_use.COMMANDS[task]})
    (row,) = measured(first_use.main, tmp_path, "--rounds", "1")
    assert (row["command"], row["machine"]) == task
    assert float(row["whole_s"]) > 0
    assert task[0] in tables.first_use_table([row])


@pytest.mark.slow
def test_trials_of_functions_are_measured(tmp_path):
    """A call, a trial in this process, a trial in its own process and a step have times in milliseconds."""
    rows = measured(function.main, tmp_path, *["--trials", "3", "--isolated", "1", "--run", "4", "--rounds", "1"])
    names = [
        function.BY_HAND,
        function.HERE,
        function.EMPTY,
        function.ARRAYS,
        function.ISOLATED,
        function.STEP,
        function.RUN,
    ]
    assert [row["what"] for row in rows] == names
    assert tables.function_table(rows).count("\n") == len(rows) + 1


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "durations"), [("function", ["0", "0.01"]), ("program", ["0"])])
def test_other_libraries_are_measured(tmp_path, kind, durations):
    """The overhead of a trial, for the service and a peer, is the difference of two runs, without the start-up."""
    ways = [peers.LOCAL_OFF, "multiprocessing.Pool"]
    rows = peers_measured(tmp_path, "--kind", kind, "--seconds-a-trial", "0", "0.01", "--only", *ways)
    expected = [(way, s) for s in durations for way in ways if s == "0" or way not in peers.EMPTY_ONLY]
    assert [(row["way"], row["trial_s"]) for row in rows] == [*expected, *[(peers.ALONE, "0")] * (kind == "program")]
    assert all(0 < float(row["total_s_least"]) <= float(row["total_s_most"]) for row in rows if row["total_s"])
    assert tables.trial_peers_table(rows).count("\n") == len(rows) + 1


def peers_measured(folder: Path, *words: str) -> list[dict[str, str]]:
    """Measure runs of three trials once, and return the table."""
    out = folder / "out.csv"
    peers.main([*words, "--trials", "3", "--rounds", "1", "--starts", "2", "--out", str(out)])
    with out.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.long
@pytest.mark.parametrize("way", peers.PEERS)
def test_each_peer_trains_every_seed(tmp_path, way):
    """A peer's script exits with 0 only if each trial has its loss; with MLflow each trial has a run with it."""
    if not peers.is_installed(way):
        pytest.skip(f"{way} isn't installed")
    peers.write_files("function", tmp_path)
    words = [sys.executable, *peers.script_words(peers.PEERS[way], peers.Key("function", way, 3, 0.01))]
    subprocess.run(words, cwd=tmp_path, check=True)
    database = tmp_path / "mlflow.db"
    assert database.exists() == ("MLflow" in way)
    if database.exists():
        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("SELECT count(*) FROM latest_metrics WHERE key = 'loss'").fetchone() == (3,)


def test_the_overhead_of_a_trial_excludes_start_and_training():
    """The overhead subtracts a run's start-up time of the same round, and the training time of a process's trials."""
    of_two, of_one = (peers.Key("function", way, 41, 1.0) for way in (peers.RUN, peers.LOCAL))
    assert peers.ms_a_trial(of_two, [30.0, 25.0], [6.0, 5.0]) == pytest.approx([100, 0])
    assert peers.ms_a_trial(of_one, [50.0], [6.0]) == pytest.approx([100])
    row = peers.row(of_two, {of_two: [30, 25, 27], of_two._replace(trials=1, trial_s=0.0): [6, 5, 5]}, [])
    assert [row[f"total_s{end}"] for end in ("", "_least", "_most")] == ["27.000", "25.000", "30.000"]
    assert (row["ms_a_trial_most"], row["trial_s"], row["target_ms"]) == ("100.000", "1", "")


def test_runs_of_long_trials_have_fewer_trials():
    """Trials of a run compute for at most 20 s in total; slow peers get fewer trials, and some only empty ones."""
    runs = peers.keys(
        "function", [peers.RUN, peers.RUN_OFF, peers.TUNE_MLFLOW, peers.TUNE_DEFAULT], [0.0, 0.01, 1.0], 500
    )
    assert [(key.way, key.trials, key.trial_s) for key in runs] == [
        (peers.RUN, 500, 0), (peers.RUN_OFF, 500, 0), (peers.TUNE_MLFLOW, 100, 0), (peers.TUNE_DEFAULT, 10, 0),
        (peers.RUN, 500, 0.01), (peers.TUNE_MLFLOW, 100, 0.01), (peers.RUN, 20, 1), (peers.TUNE_MLFLOW, 20, 1),
    ]  # fmt: skip
    assert {key.trial_s for key in peers.keys("program", [peers.RUN], [0.0, 1.0], 500)} == {0}


@pytest.mark.slow
def test_reports_of_large_studies_are_measured(tmp_path):
    """A made-up study is stored and reported in each way, with seconds and memory."""
    rows = measured(report.main, tmp_path, *["--cells", "4", "--seeds", "3", "--rounds", "1"])
    assert [(row["asked"], row["trials"]) for row in rows] == [(part, "12") for part in report.PARTS]
    assert tables.report_table(rows).count("\n") == len(report.PARTS) + 1


# Warnings of Ray and its dependencies are theirs to fix.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_service_alone_is_measured(tmp_path):
    """A driver is killed half-way, run again, and run once more with nothing to do; every trial is stored once."""
    rows = measured(scale.main, tmp_path, *["--trials", "800", "--pack-size", "20"])
    assert [row["what"] for row in rows] == ["killed at half", "run again", "nothing left"]
    assert int(rows[0]["packs"]) >= 20
    assert sum(int(row["packs"]) for row in rows) == 40
    assert rows[2]["ms_a_pack"] == ""
    assert float(rows[0]["memory_at_the_end_mib"]) > 100
    assert tables.scale_table(rows).count("\n") == 4


# Deprecations of MLflow and its dependencies are theirs to fix.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(postgres_programs() is None, reason="PostgreSQL isn't installed")
def test_publishing_is_measured(tmp_path, monkeypatch):
    """Each kind of MLflow is published to during training, and queried with more runs than were published."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "PGPASSFILE"):
        monkeypatch.setenv(name, "")  # so that monkeypatch restores it
        monkeypatch.delenv(name)
    words = ["--runs", "200", "--http", "50", "--there", "400", "--rounds", "1", "--seconds", "0.05"]
    rows = measured(tracking.main, tmp_path, *words)
    assert [(row["kind"], row["published"], row["there"]) for row in rows] == [
        ("sqlite", "200", "400"),
        ("postgresql", "150", "300"),
        ("http", "50", "350"),
    ]
    assert tables.tracking_table(rows).count("\n") == 4


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_publishing_is_compared_with_mlflows_minimum(tmp_path):
    """Each kind of MLflow, curve length and pack size has a line; a server's CPU time is measured if there is one."""
    rows = measured(publishing.main, tmp_path, "--trials", "5", "--rounds", "1")
    assert [(row["kind"], row["points"], row["pack"]) for row in rows] == [
        (kind, points, pack)
        for kind in ("sqlite", "http")
        for points, packs in (("0", "1 5"), ("10", "1 5 1"), ("100", "1 5"))
        for pack in packs.split()
    ]
    assert all(float(row["client_ratio"]) > 0 for row in rows)
    assert [bool(row["server_ratio"]) for row in rows] == [False] * 7 + [True] * 7


def test_numbers_of_cores_end_with_all():
    """The counts are powers of two, then all cores."""
    assert [scaling.counts(most) for most in (1, 2, 6, 8)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]


@pytest.mark.parametrize("model", KNOWN)
def test_the_plain_loop_computes_the_networks_numbers(model):
    """Plain layers and regulariser give the numbers and gradients of the project's units."""
    torch.manual_seed(1)
    network, x = Network(MODELS[model], 100, 3), torch.empty(16, 100).uniform_(1, 2)
    outputs_and_gradients = []
    for y in (output(network, x), network(x)):
        gradients = torch.autograd.grad(y.log().mean(), list(network.parameters()), allow_unused=True)
        outputs_and_gradients.append((y.detach(), gradients))
    (ours, our_gradients), (theirs, their_gradients) = outputs_and_gradients
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    for actual, reference in zip(our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(actual, reference, rtol=1e-3, atol=1e-3, equal_nan=True)
    terms = [term for layer in network.layers if (term := layer.sparsity()) is not None]
    expected, computed = (sum(terms) if terms else None), penalty(network)
    assert (computed is None) == (expected is None)
    if computed is not None:
        torch.testing.assert_close(computed, expected)


@pytest.mark.slow
def test_coverage_is_reproducible(tmp_path):
    """Each interval has a line for each number of seeds; equal seeds give equal files, other seeds other files."""
    rows = simulated_thrice(coverage.main, tmp_path)
    assert len(rows) == len(coverage.SIZES) * len(list(coverage.cases()))
    assert {row["interval"].split(",")[0] for row in rows} <= set(statistics.__all__)
    for row in rows:
        if row["coverage"]:
            shares = [float(row[name]) for name in ("coverage", "all_below", "all_above")]
            assert sum(shares) == pytest.approx(1, abs=2e-4)
            assert min(shares) >= 0


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_misses_of_intervals_are_counted(rate):
    """Misses are counted at their known rate, and studies without an interval are left out."""

    def study(rng, n):
        return None if rng.random() < 0.5 else (0.0, 1.0) if rng.random() < rate else (2.0, 3.0)

    row = coverage.measured(study, 0.5, np.random.default_rng(1), 10, 4000)
    assert float(row["with_interval"]) == pytest.approx(0.5, abs=0.03)
    assert float(row["coverage"]) == pytest.approx(rate, abs=0.04)
    assert float(row["all_above"]) == pytest.approx(1 - rate, abs=0.04)
    assert float(row["all_below"]) == 0


def simulated_thrice(main, folder):
    """Run a simulation three times, and check that equal seeds give equal files, and another seed another file."""
    files = []
    for number, seed in enumerate("778"):
        out = folder / f"{number}.csv"
        main(["--studies", "8", "--seed", seed, "--out", str(out)])
        files.append(out.read_text())
    assert files[0] == files[1] != files[2]
    return list(csv.DictReader(files[0].splitlines()))


@pytest.mark.slow
def test_restricted_means_are_reproducible(tmp_path, monkeypatch):
    """Each distribution has a row for each interval and size; equal seeds give equal files, other seeds other files."""
    monkeypatch.setattr(restricted, "SIZES", (5, 10))
    rows = simulated_thrice(restricted.main, tmp_path)
    distributions, sizes, intervals = [*restricted.cases(), restricted.LEAST], restricted.SIZES, restricted.INTERVALS
    assert len(rows) == len(distributions) * len(sizes) * len(intervals)
    assert all(0 <= float(row["coverage"]) <= 1 for row in rows if row["coverage"])
    assert tables.restricted_table(rows).count("\n") == 1 + len(distributions) * len(intervals)


@pytest.mark.slow
def test_centres_are_reproducible(tmp_path, monkeypatch):
    """Each distribution has a row for each interval and size; constant values have neither BCa nor t intervals."""
    monkeypatch.setattr(centres, "SIZES", (5, 10))
    rows = simulated_thrice(centres.main, tmp_path)
    assert len(rows) == len(centres.DISTRIBUTIONS) * len(centres.SIZES) * len(centres.INTERVALS)
    assert all(0 <= float(row["coverage"]) <= 1 for row in rows if row["coverage"])


def test_centres_of_known_distributions_are_true():
    """The truths are the distribution's mean, median and interquartile mean."""
    normal = centres.truths(centres.DISTRIBUTIONS["normal"])
    assert normal == pytest.approx({"mean": 0, "interquartile mean": 0, "median": 0, "deviation": 1}, abs=1e-4)
    skewed, z = centres.truths(centres.DISTRIBUTIONS["log-normal, σ 1"]), stats.norm.ppf(0.75)
    middle = 2 * np.exp(0.5) * (stats.norm.cdf(z - 1) - stats.norm.cdf(-z - 1))
    assert skewed["mean"] == pytest.approx(np.exp(0.5), rel=1e-4)
    assert skewed["interquartile mean"] == pytest.approx(middle, rel=1e-6)
    tied = centres.truths(centres.DISTRIBUTIONS["30% are 0.5, 70% are 1"])
    assert (tied["mean"], tied["interquartile mean"], tied["median"]) == pytest.approx((0.85, 0.95, 1.0))


def test_compared_intervals_of_centres_are_the_textbooks():
    """Student's interval and trimmed means equal SciPy's; interquartile means and medians equal their definitions."""
    rows = np.random.default_rng(0).lognormal(size=(4, 11))
    expected = np.transpose(stats.ttest_1samp(rows, 0, axis=1).confidence_interval())
    assert centres.trimmed_t(rows, 0.0) == pytest.approx(expected)
    assert centres.trimmed_t(rows, 0.2).mean(axis=1) == pytest.approx(stats.trim_mean(rows, 0.2, axis=1))
    assert centres.middle_mean(rows) == pytest.approx(statistics.interquartile_means(rows.ravel(), [11] * 4))
    assert centres.middle(rows) == pytest.approx(np.median(rows, axis=1))


@pytest.mark.slow
def test_robust_summaries_are_reproducible(tmp_path, monkeypatch):
    """Each distribution has a row for each interval, kind of seeds and size, with shares between 0 and 1."""
    monkeypatch.setattr(robust, "SIZES", (5,))
    rows = simulated_thrice(robust.main, tmp_path)
    for name in ("profile", "improvement"):
        rows += csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines())
    assert {row["distribution"] for row in rows} == {law.name for laws, _ in robust.OF.values() for law in laws}
    names = {name for ways in (robust.MIDDLES, robust.BANDS, robust.IMPROVEMENTS) for name in ways}
    assert {row["interval"] for row in rows} == names
    assert all(0 <= float(row["coverage"]) <= 1 for row in rows if row["coverage"])


@pytest.mark.parametrize("apart", [0.0, 1.5])
def test_the_distance_of_a_profile_is_the_greatest_at_any_threshold(apart):
    """The greatest distance equals that on a fine grid of thresholds."""
    law = robust.Law("", stats.norm.ppf, apart=apart)
    values = np.random.default_rng(0).normal(size=(9, 3)) + apart * np.arange(3)
    at = np.sort(np.concatenate([np.linspace(-4, 9, 20_001), values.ravel(), values.ravel() - 1e-9]))
    true = np.mean([stats.norm.cdf(at - shift) for shift in apart * np.arange(3)], axis=0)
    empirical = np.mean(values.ravel()[:, None] <= at, axis=0)
    assert robust.greatest_distance(law, values) == pytest.approx(np.abs(empirical - true).max(), abs=1e-3)


def test_seeds_of_synthetic_studies_are_shared_or_not():
    """Shared seeds link all cells and both methods; their values are correlated, others aren't."""
    law = robust.IMPROVEMENT_LAWS[0]
    for are_shared, rho in ((True, 0.5), (False, 0.0)):
        first, second = robust.drawn(np.random.default_rng(0), law, (1, 40_000, 2), are_shared=are_shared)
        assert np.corrcoef(first[0, :, 0], second[0, :, 1])[0, 1] == pytest.approx(rho, abs=0.02)
        first_method, second_method = (
            robust.seed_values_of(values[0, :5], are_shared=are_shared, method=m)
            for m, values in enumerate((first, second))
        )
        assert len(
            {seed for values in (first_method, second_method) for sample in values.samples for seed in sample}
        ) == (5 if are_shared else 20)


@pytest.mark.parametrize("name", restricted.DISTRIBUTIONS)
def test_distributions_have_their_declared_means(name):
    """The mean of min(time, 1) over a million draws is within five standard errors of the declared mean."""
    distribution, truth = restricted.DISTRIBUTIONS[name]
    times = np.minimum(distribution(np.random.default_rng(1), (1000, 1000)), 1.0)
    assert abs(times.mean() - truth) <= 5e-3 * times.std() + 1e-9


def test_the_least_coverage_is_that_of_the_hardest_distribution():
    """An interval that misses equal values is worst where one value comes in 99.8% of trials."""

    def bound(times, solved):
        return np.where(np.ptp(times, axis=1)[:, None] > 0, [[0.0, 1.0]], [[2.0, 2.0]])

    assert restricted.least_coverage(bound, 5) == pytest.approx(1 - 0.998**5 - 0.002**5)


@pytest.mark.parametrize("solved", [0, 3, 20])
def test_the_score_interval_is_wilsons_for_immediate_success(solved):
    """If trials succeed at once or never, the interval of the time saved equals Wilson's of the success rate."""
    times = np.array([[0.0] * solved + [1.0] * (20 - solved)])
    bounds = 1 - restricted.score(times, times < 1)[0, ::-1]
    assert bounds == pytest.approx(statistics.wilson(solved, 20), abs=1e-12)


def test_precision_follows_the_rule_of_studies(tmp_path):
    """The sequential rule is that of `statistics.MeanPrecision`; equal seeds give equal files."""
    draws = np.random.default_rng(3).lognormal(size=(20, precision.MOST))
    sampling = statistics.MeanPrecision(0.3, precision.BATCH, precision.MOST)
    n, reach = precision.sequential(precision.Studies(draws, 1.0), 0.3, 40)
    for values, stop, wide in zip(draws, n, reach, strict=True):
        assert stop == next((look for look in sampling.looks if sampling.is_narrow(values[:look])), precision.MOST)
        low, high = sampling.interval(values[:stop])
        assert (high - low) / 2 == pytest.approx(wide)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for out in files:
        precision.main(["--studies", "5", "--out", str(out)])
    assert files[0].read_text() == files[1].read_text()
    assert "Stein's" in tables.precision_table(list(csv.DictReader(files[0].read_text().splitlines())))


@pytest.mark.slow
def test_looks_are_reproducible(tmp_path, monkeypatch):
    """Each stopping rule has a row for each rate; equal seeds give equal files, other seeds other files."""
    monkeypatch.setattr(looks, "FINE", np.array([0.1, 0.4]))
    rows = simulated_thrice(looks.main, tmp_path)
    assert len(rows) == 4 * len(looks.RATES) + 3 + 4 * len(looks.PAIRS)
    assert all(0 <= float(row["share"]) <= 1 for row in rows)
    assert all(20 <= float(row["mean_seeds"]) <= 400 for row in rows if row["mean_seeds"])
    assert tables.looks_table(rows).count("\n") == 1 + len(looks.RATES) + 1 + 2 + 1 + len(looks.PAIRS)


@pytest.mark.long
def test_claims_are_reproducible(tmp_path, monkeypatch):
    """Each distribution has its rows; claims at their bounds are rarely decided, even with raised seeds."""
    monkeypatch.setattr(claims, "PEERS", dict(list(claims.PEERS.items())[-2:]))  # AdaStop takes seconds a study
    tabled = []
    only_errors = ("--only", "errors")  # the other tables get their generators from the same function
    for number, (seed, only) in enumerate([("7", ()), ("7", only_errors), ("8", only_errors)]):
        (tmp_path / str(number)).mkdir()
        out = tmp_path / str(number) / "errors.csv"
        claims.main(["--studies", "8", "--peer-studies", "1", "--seed", seed, *only, "--out", str(out)])
        tabled.append({path.stem: path.read_text() for path in out.parent.glob("*.csv")})
    assert list(tabled[1]) == list(tabled[2]) == ["errors"]
    assert tabled[0]["errors"] == tabled[1]["errors"] != tabled[2]["errors"]
    names = ("errors", "power", "raised", "peers")
    errors, power, raised, peers = (list(csv.DictReader(tabled[0][name].splitlines())) for name in names)
    assert [row["law"] for row in errors] == list(claims.ERRORS)
    assert all(float(row["wrong"]) <= 0.25 for row in errors)
    assert len(power) == len(claims.POWER) * len(claims.RULES)
    assert len(peers) == len(claims.PEERS) * 2
    assert len(raised) == len(claims.RAISED) * len(claims.WAYS) * 2
    assert all(float(row["wrong"]) <= 0.25 for row in raised if row["rule"] == "shared")
    assert tables.errors_table(errors).count("\n") == 1 + len(errors)
    assert tables.power_table(power).count("\n") == 1 + len(claims.POWER)
    assert tables.raised_table(raised).count("\n") == 1 + len(claims.RAISED) * len(claims.WAYS)
    assert tables.peers_table(peers).count("\n") == 1 + len(peers)


@pytest.mark.parametrize("name", ["times with 20% unsolved, at their bound", "0.6 and 0.5, by 0.1"])
def test_claims_of_the_benchmark_are_at_their_bounds(name):
    """The mean of the draws is the bound, within four standard errors."""
    (claim,), rng = claims.ERRORS[name], np.random.default_rng(0)
    drawn = [claim.cells[0](rng) for _ in range(500)]
    values = np.concatenate([sample.values for sample in drawn])
    assert abs(values.mean() - drawn[0].bound) <= 4 * values.std() / np.sqrt(values.size)


@pytest.mark.slow
def test_shares_are_reproducible(tmp_path, monkeypatch):
    """Each distribution has a row for each interval, size and share; equal seeds give equal files."""
    monkeypatch.setattr(components, "SIZES", (5, 6))
    rows = simulated_thrice(components.main, tmp_path)
    kinds = sum(3 if law.rate is None else 1 for law in components.LAWS.values())
    assert len(rows) == kinds * len(components.SHARES) * 2
    assert all(0 <= float(row["coverage_first"]) <= 1 for row in rows)
    intervals = {row["interval"] for row in rows}
    assert tables.components_table(rows).count("\n") == len(components.LAWS) + len(intervals)


@pytest.mark.slow
def test_rates_of_shared_seeds_are_reproducible(tmp_path, monkeypatch):
    """Each design has a row for each kind of shares and each rate; equal seeds give equal files."""
    monkeypatch.setattr(shared_rates, "DESIGNS", ((5, 5), (6, 4)))
    monkeypatch.setattr(shared_rates, "RATES", (0.05, 0.5))
    rows = simulated_thrice(shared_rates.main, tmp_path)
    kinds = len(shared_rates.SHARES) + len(shared_rates.NESTED_SHARES)
    assert len(rows) == 2 * 2 * kinds
    assert all(0.5 <= float(row["coverage"]) <= 1 for row in rows)
    assert tables.shared_rates_table(rows).count("\n") == 1 + 2 * len(shared_rates.DESIGNS)


def test_standardised_rates_are_reproducible(tmp_path, monkeypatch):
    """The table has a row for each distribution and a column for each number of seeds; equal seeds give equal files."""
    monkeypatch.setattr(standardised, "SEEDS", (12, 25))
    rows = simulated_thrice(standardised.main, tmp_path)
    assert len(rows) == 2 * len(standardised.LAWS)
    kinds = ("standardised", "drawn", "difference")
    assert all(0.6 <= float(row[f"{kind}_coverage"]) <= 1 for row in rows for kind in kinds)
    assert tables.standardised_table(rows).count("\n") == 1 + len(standardised.LAWS)
    assert tables.standardised_more_table(rows).count("\n") == 1 + 3 * len(standardised.LAWS)


@pytest.mark.slow
def test_overlaps_are_reproducible(tmp_path, monkeypatch):
    """Both tables have a row for each distribution, test and design; equal seeds give equal files."""
    monkeypatch.setattr(overlap, "SHARED", (12, 1))
    monkeypatch.setattr(overlap, "DESIGNS", ((8, 8), (6, 3)))
    rows = simulated_thrice(lambda words: overlap.main([*words, "--partial-studies", "20"]), tmp_path)
    assert len(rows) == len(overlap.PARTIAL_LAWS) * 3 * 2
    assert tables.designs_table(rows).count("\n") == 1 + len(overlap.PARTIAL_LAWS) * 3
    crossed = list(csv.DictReader((tmp_path / "crossed.csv").read_text().splitlines()))
    assert len(crossed) == len(overlap.CROSSED_LAWS) * len(overlap.SHARES) * 3 * 2
    assert all(0 <= float(row["rejected"]) <= 1 for row in [*rows, *crossed])


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.09, 0.5])
def test_simulated_studies_agree_with_the_exact_computation(rate):
    """Simulation and exact computation give the same coverage and mean number of seeds."""
    drawn = looks.narrowed(looks.remembered(statistics.wilsons), rate, np.random.default_rng(1), 4000)
    assert drawn == pytest.approx(looks.exactly(statistics.wilsons, rate), rel=0.02)


def test_detected_differences_are_counted():
    """A test that always rejects ends every study at the first look; one that never does ends none."""
    rng = np.random.default_rng(1)
    assert looks.told_apart(lambda *counts: 0.0, (0.5, 0.5), rng, 10) == (1.0, 20.0)
    assert looks.told_apart(lambda *counts: 1.0, (0.5, 0.5), rng, 10) == (0.0, 400.0)
    trials_seen = []
    looks.told_apart(lambda *counts: trials_seen.append(counts) or 1.0, (1.0, 0.0), rng, 1)
    assert trials_seen == [(n, 0, n, 0, n) for n in looks.LOOKS]


SMALL = """
study: {name}
task: {{name: simple}}
models: [NMU, linear]
fixed: {{batch_size: 16, learning_rate: 0.01}}
seeds: {seeds}
protocol: {{iterations: 4000, evaluate_every: 100, evaluation_rows: 50}}
success: {{threshold: 0.1}}
"""


def run_small(name: str, seeds: str, root: Path) -> set[str]:
    """Run a study whose NMU solves only a part of its seeds, and return the ids of its stored trials."""
    plan = make_plan(parse_spec(SMALL.format(name=name, seeds=seeds), source="test"))
    options = Options(root=root, tracking_uri=None, local=True)
    assert run(plan, options, Console(file=io.StringIO())) == Ending.FINISHED
    return Store(root).study(name).done()


@pytest.mark.slow
def test_a_replayed_study_requests_the_trials_of_a_run(tmp_path):
    """Under both rules, the revealed trials are those that `study run` trains, and their number is reported."""
    every = run_small("every", "24", tmp_path / "every")
    words = ["--store", str(tmp_path / "every"), "--study", "every", "--batch", "6", "--half-width", "0.2"]
    until.main([*words, "--different-from", "linear", "--out", str(tmp_path)])
    rules = {until.NARROW: "half_width: 0.2", until.APART: "different_from: linear"}
    for name, rule in rules.items():
        trained = run_small("sure", f"{{until: {{{rule}, max: 24, batch: 6}}}}", tmp_path / name)
        with (tmp_path / f"{name}.csv").open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        noted = json.loads((tmp_path / f"{name}.json").read_text())
        assert (noted["trials"], noted["fixed_trials"]) == (len(trained), len(every))
        assert trained < every
        assert str(tmp_path) not in json.dumps(noted)  # the path of the store isn't a result
        seeds = [int(row["seeds"]) for row in rows]
        assert sum(seeds) == len(trained) if name == until.NARROW else 2 * seeds[0] == len(trained)
        table = tables.TABLES[f"until/{name}"](rows)
        assert table.count("\n") == len(rows) + 1


def test_different_verdicts_are_detected():
    """An interval without the rate of all seeds is a disagreement, and so is a difference with the other sign."""
    cell = published_cell("NMU", 4, 2)
    fixed = CellSummary(cell=cell, seeds=400, solved=200, unsolved=200, success_rate=0.5)
    near, far = (Verdict(cell, None, 20, True, interval=interval) for interval in ((0.4, 0.6), (0.51, 0.7)))
    assert [until.narrow_row("", fixed, v, 10)["agrees"] for v in (near, far)] == ["yes", "no"]
    other = replace(fixed, solved=100, unsolved=300)
    better, worse = (Verdict(cell, cell, 20, True, p_value=0.01, wins=w, losses=20 - w) for w in (18, 2))
    unsure = Verdict(cell, cell, 20, False, p_value=0.2, wins=3, losses=0)
    rows = [until.apart_row("", fixed, other, v) for v in (better, worse, unsure)]
    assert [(row["verdict"], row["agrees"]) for row in rows] == [
        ("better", "yes"),
        ("worse", "no"),
        ("not told apart", "no"),
    ]
    assert until.apart_row("", fixed, fixed, unsure)["agrees"] == "yes"


def test_documents_show_the_measured_tables():
    """The documents' tables equal those made from the CSV files, and each table occurs once."""
    texts = [page.read_text(encoding="utf-8") for page in tables.PAGES]
    assert [tables.written(text) for text in texts] == texts
    shown = re.findall(r"<!-- figures: (\S+) -->", "".join(texts))
    assert sorted(shown) == sorted(tables.TABLES)


def test_excerpts_are_of_their_files():
    """Each value of an excerpt is in the table's CSV file, so that the document shows it."""
    for name, chosen in EXCERPTS.items():
        with (tables.RESULTS / f"{name.partition(':')[0]}.csv").open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        for column, values in chosen.items():
            assert set(values) <= {row[column] for row in rows}, name

"""The published hidden-size study on the GPU: its table, its figure, and each cell beside the published one."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import tell
from study.environment import provenance
from study.spec import load_spec

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tasks" / "docs" / "results" / "hidden-size"
FILES = ("cells.csv", "comparison.csv", "figure.png")


def run(study: str, engine: str, device: str, store: Path, options: Sequence[str]) -> tuple[Path, float]:
    """Run a study, and return its report's folder and the command's seconds.

    It reuses results in the store, so the same command continues an interrupted study. The seconds are those of this
    command alone.

    Args:
        study: a preset or a file.
        engine: the engine's name.
        device: ``cpu`` or ``cuda``.
        store: the store's folder, an absolute path.
        options: further options of `study run`.

    Raises:
        subprocess.CalledProcessError: if it failed, for example because `study` is neither a preset nor a file. Its
            output is on the terminal.
    """
    if Path(study).is_file():  # the command starts in `ROOT`
        study = str(Path(study).resolve())
    words = ["run", study, "--store", str(store), "--engine", engine, "--device", device]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "study", *words, "--tracking-uri", "off", *options], cwd=ROOT, check=True)
    took_s = time.perf_counter() - began
    return store / load_spec(study).study / "report", took_s


def keep(report: Path, to: Path, device: str, took_s: float, **more: Any) -> list[dict[str, str]]:
    """Copy those of `FILES` that a report has to a folder, made if missing, with their provenance in source.json.

    Args:
        report: the report's folder.
        to: the folder to copy to.
        device: the device that trained the study, for the provenance.
        took_s: seconds of the run, for the provenance.
        more: further entries of the provenance.

    Returns:
        The rows of the comparison with published cells; empty if the study repeats none of them, which is printed.

    Raises:
        OSError: if a file can't be read or written.
    """
    to.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (report / name).exists():
            shutil.copyfile(report / name, to / name)
    source = provenance(device) | more | {"run_s": round(took_s, 1)}
    (to / "source.json").write_text(json.dumps(source, indent=2) + "\n")
    compared = report / "comparison.csv"
    if not compared.exists():
        tell("  no cell of this study repeats a published one")
        return []
    with compared.open(newline="") as lines:
        return list(csv.DictReader(lines))


def markdown(rows: Sequence[dict[str, str]]) -> str:
    """Return the comparison in Markdown for tasks/docs/results: p is Fisher's exact test, before Holm's correction.

    A missing p-value is shown as –.

    Raises:
        KeyError: if a row lacks a column.
        ValueError: if a p-value isn't a number.

    Example:
        >>> row = {"model": "NMU", "hidden_size": "2", "solved": "50", "trials": "50", "published_solved": "49",
        ...        "published_seeds": "50", "p_value": "1.0", "p_adjusted": "1.0", "verdict": "agrees"}
        >>> print(markdown([row]))
        | model | hidden units | solved here | published | p | p, Holm | verdict |
        | --- | --: | --: | --: | --: | --: | --- |
        | NMU | 2 | 50/50 | 49/50 | 1 | 1 | agrees |
    """
    lines = [
        "| model | hidden units | solved here | published | p | p, Holm | verdict |",
        "| --- | --: | --: | --: | --: | --: | --- |",
    ]
    for row in rows:
        here, there = (f"{row['solved']}/{row['trials']}", f"{row['published_solved']}/{row['published_seeds']}")
        p, adjusted = (f"{float(row[name]):.2g}" if row[name] else "–" for name in ("p_value", "p_adjusted"))
        lines.append(
            f"| {row['model']} | {row['hidden_size']} | {here} | {there} | {p} | {adjusted} | {row['verdict']} |"
        )
    return "\n".join(lines)

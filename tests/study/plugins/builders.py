"""An installed package `theirlab` with a plug-in of each kind."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.study.lab import MODELS, TASKS
from tests.study.source.builders import installed, write

OFFERS = """
[seeded_study.families]
coins = theirlab.coins:COINS
[seeded_study.tasks]
spirals = theirlab.tasks:Spirals
products = theirlab.tasks:Products
[seeded_study.models]
little = theirlab.models:mlp
[seeded_study.units]
shifted = theirlab.models:Shifted
[seeded_study.engines]
thrower = theirlab.coins:Thrower
other = theirlab.coins:Thrower
wrong = theirlab.coins:coin_script
[seeded_study.presets]
theirlab = theirlab.presets
[seeded_study.published]
theirlab = theirlab.published
[seeded_study.scripts]
coins = theirlab.coins:coin_script
[seeded_study.vocabularies]
theirlab = theirlab.coins:NAMES
"""
TOSSES = """\
study: tosses
task: {name: coins}
models: [euro, krona]
grid: {bias: [0.2, 0.8]}
seeds: 20
"""
PUBLISHED = "source,task,model,bias,solved,seeds\nDoe 2025,coins,krona,0.8,49,50\n"


def install_theirlab(site: Path) -> Path:
    """Write the package into a folder of installed packages, and return that folder."""
    write(site, theirlab__="", theirlab__tasks=TASKS, theirlab__models=MODELS)
    write(site, theirlab__presets__="", theirlab__published__="")
    shutil.copy(Path(__file__).with_name("coins.py"), site / "theirlab" / "coins.py")
    (site / "theirlab" / "presets" / "tosses.yaml").write_text(TOSSES)
    (site / "theirlab" / "published" / "coins.csv").write_text(PUBLISHED)
    return installed(site, entry_points=OFFERS, name="theirlab")

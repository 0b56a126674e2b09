"""Agreement of the layers in docs/architecture.md with the import rule."""

from __future__ import annotations

import re
import tomllib

from docs.marks import ROOT


def test_the_layers_are_those_of_the_import_rule() -> None:
    """The table lists the modules of each layer from top to bottom, as in the import rule."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    rules = settings["importlinter"]["contracts"]
    [layers] = [rule["layers"] for rule in rules if rule.get("containers") == ["study"]]
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("\n## Layers of study/\n")[2].partition("\n| library |")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [set(re.findall(r"`(\w+)(?:/|\.py)`", row)) for row in rows]
    assert named == [set(layer.replace(" ", "").split("|")) for layer in layers]

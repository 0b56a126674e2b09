"""Screenshots of pages by `docs.pictures`."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pictures import SCHEMES, SIZES, browser_path

ROOT = Path(__file__).resolve().parents[2]

PAGE = """<meta name=color-scheme content="light dark"><p style="height: 3000px">Long."""


def size(png: bytes) -> tuple[int, int]:
    """Read a picture's width and height."""
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.slow
@pytest.mark.skipif(browser_path() is None, reason="no browser on PATH")
@pytest.mark.parametrize("full_page", [False, True])
def test_a_picture_of_each_width_and_scheme(tmp_path: Path, full_page: bool) -> None:
    """Each picture has the width of its name and the height of the screen or the page; dark differs from light."""
    page = tmp_path / "a page.html"
    page.write_text(PAGE)
    command = [sys.executable, "-m", "docs.pictures", str(page), "--out", str(tmp_path / "new")]
    result = subprocess.run(
        [*command, *["--whole"] * full_page], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    pictures = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert set(pictures) == {f"a page-{width}-{scheme}.png" for width in SIZES for scheme in SCHEMES}
    assert all(name in result for name in pictures)
    for width, height in SIZES.items():
        light, dark = (pictures[f"a page-{width}-{scheme}.png"] for scheme in SCHEMES)
        assert light != dark
        assert size(light)[0] == width
        assert size(light)[1] > 3000 if full_page else size(light)[1] == height

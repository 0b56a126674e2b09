"""The README of a package: without dead links, although a package index has no other files."""

from __future__ import annotations

import re
import shutil
from email import message_from_bytes
from pathlib import Path
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^()\s]+)\)")


def readme_of_wheel(folder: Path, urls: str) -> str:
    """Build a wheel from the project's metadata with additional URLs, and return its README."""
    for name in ("README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, folder)
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8") + urls)
    for package in ("study", "units", "tasks"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").touch()
    [wheel] = WheelBuilder(str(folder)).build(directory=str(folder / "dist"), versions=["standard"])
    with ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return str(message_from_bytes(archive.read(metadata)).get_payload(decode=True).decode())  # type: ignore[union-attr]


def test_without_a_repository_links_to_files_are_texts(tmp_path: Path) -> None:
    """Links to files become plain texts; links to other sites stay links."""
    text, packaged = (ROOT / "README.md").read_text(encoding="utf-8"), readme_of_wheel(tmp_path, "")
    assert {urlsplit(link).scheme for link in LINK.findall(packaged)} == {"https"}
    assert set(LINK.findall(packaged)) == {link for link in LINK.findall(text) if "://" in link}
    assert "ends with the same bits." in packaged
    assert "The report of the demo: the finding" in packaged


@pytest.mark.parametrize("name", ["Repository", "source"])
def test_with_a_repository_links_name_its_files(tmp_path: Path, name: str) -> None:
    """Each link to a file points to the repository, pictures to their raw content."""
    address = "https://host.example/me/it"
    packaged = readme_of_wheel(tmp_path, f'\n[project.urls]\n{name} = "{address}/"\n')
    links = [link for link in LINK.findall(packaged) if link.startswith(address)]
    assert len(links) > 20
    for link in links:
        kind, _, path = link.removeprefix(f"{address}/").partition("/HEAD/")
        assert kind == ("raw" if path.endswith(".png") else "blob")
        assert (ROOT / path.partition("#")[0]).exists()
    assert all("://" in link for link in LINK.findall(packaged))

"""Settings of the documentation site: `make docs` builds it from the Markdown files of the repository.

The source folder is the repository's root, so that a link works on the site as it does in the repository.
"""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _PROJECT["name"]
author = f"the authors of {project}"
release = version = _PROJECT["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "tasks/**", "examples/**", "benchmarks/*.md", "deploy/*.md"]
exclude_patterns = ["**/__pycache__", "build", ".*", "studies", "tests"]

html_theme = "furo"
html_title = f"{project} {release}"
html_show_sphinx = False
html_show_copyright = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Anchors of headings as on the repository's host, so that links to headings work in both places.
myst_heading_anchors = 4
myst_links_external_new_tab = True
suppress_warnings = ["myst.header"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False


def _cut_description(app: Any, command: Any, lines: list[str]) -> None:
    """Cut a command's description at its form feed, as click does: the text behind it is for readers of the code."""
    shown = inspect.cleandoc(command.command.help or "").partition("\f")[0]
    del lines[shown.count("\n") + 1 :]
    lines.append("")


def setup(app: Any) -> None:
    """Register the handler with Sphinx."""
    app.connect("sphinx-click-process-description", _cut_description)

"""Templates of self-contained pages: style and script are embedded, and all other inserted text is escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from study import words


def template(
    name: str, *, style: str, script: str, filters: Mapping[str, Callable[..., Any]], **more: object
) -> Template:
    """Load a template of this folder with the names that all pages share, and those of this page.

    Args:
        name: the template's file.
        style: the page's style.
        script: the page's script, the only one that a browser runs on it.
        filters: filters for the template, besides those of all pages.
        more: other names for the template.

    Raises:
        jinja2.TemplateNotFound: if the folder has no such template.
    """
    environment = Environment(
        loader=PackageLoader("study.reports", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= {
        "anchor": lambda title: re.sub(r"[^a-z]+", "-", title.lower()).strip("-"),
        "count_of": words.count_of,
        **filters,
    }
    environment.globals |= {
        "none_shown": words.NONE,
        "script": script,
        "script_digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "style": style,
        **more,
    }
    return environment.get_template(name)


def asset(name: str) -> str:
    """Read a style sheet or a script of this folder; raises FileNotFoundError if there is none of this name."""
    return resources.files("study.reports").joinpath(name).read_text(encoding="utf-8")

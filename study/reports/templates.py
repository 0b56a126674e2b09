"""Templates of pages that are one file: style and script are in them, and whatever else is put in is escaped."""

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
    """Load a template of this folder with what every page needs, and with what this one calls.

    Args:
        name: the template's file.
        style: the page's style.
        script: its script, the only one that a browser runs on it.
        filters: functions that the template calls, besides those that every page may call.
        more: other names that the template knows.
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
    """Read a style or a script of this folder."""
    return resources.files("study.reports").joinpath(name).read_text(encoding="utf-8")

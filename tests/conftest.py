"""A real browser, for tests of pages; where there is none, they are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from docs.pictures import BROWSERS, SIZES, browser_path, opened


@dataclass
class Visit:
    """A page in the browser, and what it did there.

    Args:
        page: to act on and to ask.
        complaints: warnings and errors of the console, and exceptions that nobody caught.
        requests: addresses asked for, over the network or from the disk, but for the page's own.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser: one a module, since asyncio can't be used while it is open, and it opens in a second."""
    executable = browser_path()
    if executable is None:
        pytest.skip(f"no browser on PATH: one of {', '.join(BROWSERS)} is needed")
    with opened(executable) as found:
        yield found


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a file or an address, each time as if for the first time: ``visit(path, width=390, scheme="dark")``."""
    contexts = []

    def open_page(page: Path | str, width: int = 1280, scheme: str = "light") -> Visit:
        viewport = {"width": width, "height": SIZES[width]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        contexts.append(context)
        found = Visit(context.new_page())
        address = page.resolve().as_uri() if isinstance(page, Path) else page

        def on_console(message: ConsoleMessage) -> None:
            if message.type in ("warning", "error"):
                found.complaints.append(message.text)

        def on_request(request: Request) -> None:
            if request.url != address:
                found.requests.append(request.url)

        context.on("console", on_console)
        context.on("weberror", lambda event: found.complaints.append(str(event.error)))
        context.on("request", on_request)
        found.page.goto(address)
        return found

    yield open_page
    for context in contexts:
        context.close()

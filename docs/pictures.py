"""Screenshots of a page: wide and on a phone, light and dark; and the browser for the tests.

python -m docs.pictures studies/demo/report/report.html --out pictures
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZES = {1280: 900, 390: 844}
"""Widths of a laptop and a phone, each with its height, in CSS pixels."""
SCHEMES = ("light", "dark")

# No sandbox: it doesn't work as root, as in a container, and the pages are our own. The browser sends no requests
# of its own.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def browser_path() -> str | None:
    """Return the path of Chromium or Chrome; None if neither is installed."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@contextmanager
def opened(executable: str) -> Iterator[Browser]:
    """Open a headless browser within the context.

    While it is open, asyncio can't be used in the same thread.

    Args:
        executable: path of the browser, such as from `browser_path`.

    Raises:
        playwright.sync_api.Error: if the browser doesn't start.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def pictures(page: Path, folder: Path, *, full_page: bool = False) -> list[Path]:
    """Write screenshots of a page, wide and narrow, light and dark, named like page-1280-light.png.

    Args:
        page: an HTML file.
        folder: folder of the pictures; created if missing.
        full_page: True to show the page to its end, False for the first screen.

    Returns:
        The paths of the pictures.

    Raises:
        SystemExit: if no supported browser is found; the message names them.
        playwright.sync_api.Error: if the browser doesn't start, or the page doesn't exist.
    """
    executable = browser_path()
    if executable is None:
        raise SystemExit(f"there is no browser here: install one of {', '.join(BROWSERS)}")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with opened(executable) as browser:
        for width, height in SIZES.items():
            for scheme in SCHEMES:
                tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                tab.goto(page.resolve().as_uri())
                path = folder / f"{page.stem}-{width}-{scheme}.png"
                tab.screenshot(path=path, full_page=full_page)
                written.append(path)
                tab.close()
    return written


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pictures, and print their names and sizes.

    Raises:
        SystemExit: if no supported browser is found, or for wrong arguments.
        playwright.sync_api.Error: if the browser doesn't start, or the page doesn't exist.
    """
    parser = argparse.ArgumentParser(prog="docs.pictures", description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    parser.add_argument("--whole", action="store_true", help="the page to its end")
    options = parser.parse_args(arguments)
    for path in pictures(options.page, options.out, full_page=options.whole):
        print(f"{path}  {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()

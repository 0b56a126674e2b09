"""The README for packages, with absolute links: relative links to files would be dead on a package index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

README = "README.md"
_REPOSITORY = ("repository", "source", "source code")
# A target that is neither an address nor an anchor of the page itself.
_BESIDE = r"\((?![a-z]+:|#)([^()\s]+)\)"


def packaged(readme: str, repository: str | None) -> str:
    """Return the README with links that work anywhere.

    Args:
        readme: text of the README.
        repository: address of the repository, for links to its files; None to keep only the links' texts.

    Example:
        >>> packaged("[a](docs/a.md), [b](#b) and [c](https://c.org)", None)
        'a, [b](#b) and [c](https://c.org)'
        >>> packaged("[![a](docs/a.png)](docs/a.md#b)", "https://host/me/it")
        '[![a](https://host/me/it/raw/HEAD/docs/a.png)](https://host/me/it/blob/HEAD/docs/a.md#b)'
    """
    if repository is None:
        without_images = re.sub(rf"!\[([^\]]*)\]{_BESIDE}", r"\1", readme)
        return re.sub(rf"\[([^\[\]]*)\]{_BESIDE}", r"\1", without_images)
    address = repository.rstrip("/")
    with_images = re.sub(rf"(!\[[^\]]*\]){_BESIDE}", rf"\1({address}/raw/HEAD/\2)", readme)
    return re.sub(rf"\]{_BESIDE}", rf"]({address}/blob/HEAD/\1)", with_images)


class ReadmeHook(MetadataHookInterface):
    """A build hook that sets the package's README, with the repository's address from `[project.urls]`, if any."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the project's README."""
        urls = {name.lower(): address for name, address in metadata.get("urls", {}).items()}
        repository = next((urls[name] for name in _REPOSITORY if name in urls), None)
        text = packaged(Path(self.root, README).read_text(encoding="utf-8"), repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}

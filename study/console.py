"""The console that everything is printed to: no text is taken for markup, and none steers the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from study.visible import visible


class Console(console.Console):
    r"""A console that prints texts as they are.

    Questions, labels, paths and errors come from outside: a bracket in them is printed as a bracket, and an escape
    sequence is escaped. Our own texts are styled with `style=` and `rich.text.Text`.

    Args:
        options: the options of rich's console.

    Example:
        >>> Console(width=60).print("Is x in [/a/b] [bold]larger? :smile: \x1b[2J")
        Is x in [/a/b] [bold]larger? :smile: \x1b[2J
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text of a printed string, or of a table's title or cell."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render anything; everything that is printed passes through here."""
        if isinstance(renderable, Text) and (escaped := visible(renderable.plain)) != renderable.plain:
            renderable = renderable.copy()
            renderable.plain = escaped
        return super().render(renderable, options)

"""Console for all output: texts have no markup and no control characters, and tables fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from rich import console
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from study.visible import visible

_READABLE = 24
"""Width to which a column of text may be folded, if its words allow it; less is hard to read."""
_ENDLESS = 100_000


class Console(console.Console):
    r"""A console that prints texts as they are.

    Questions, labels, paths and errors come from users: a bracket in them is printed as a bracket, and escape sequences
    are escaped. The service's own texts are styled with `style=` and `rich.text.Text`.

    Args:
        has_own_width: True if `width` limits the output. If False, as for a pipe, texts are folded at `width`, but
            tables have all columns.
        options: the options of rich's console.

    Example:
        >>> Console(width=60).print("Is x in [/a/b] [bold]larger? :smile: \x1b[2J")
        Is x in [/a/b] [bold]larger? :smile: \x1b[2J
    """

    def __init__(self, *, has_own_width: bool = True, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **options)
        self.has_own_width = has_own_width

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects of any type; lines are cropped only if the console has its own width."""
        super().print(*objects, **({"crop": self.has_own_width} | options))

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as rich's text, with control characters escaped; rich also calls this for cells of tables."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render text or another renderable of rich, with control characters in texts escaped.

        Each text of the output passes through this method.

        Raises:
            rich.errors.NotRenderableError: if rich can't render the object.
        """
        if isinstance(renderable, Text) and (escaped := visible(renderable.plain)) != renderable.plain:
            renderable = renderable.copy()
            renderable.plain = escaped
        return super().render(renderable, options)


@dataclass(frozen=True)
class _Size:
    """Widths of a column: folded as far as its words allow, folded but readable, and unfolded."""

    word: int
    least: int
    natural: int


class ConsoleTable(Table):
    """A table that fits its console.

    In a narrow console, titles and texts are folded at words first. Then columns are left out, the least important
    first, and a line below names them. If even the required columns are too wide, each row becomes a block with one
    line per column. Right-aligned columns hold numbers, which are never folded. A console without an own width, such as
    a pipe, gets all columns: texts are folded, numbers and their titles aren't.

    Args:
        elsewhere: name of a file with all columns, shown in the line below the table; empty without one.
        options: the options of rich's table.

    Example:
        >>> table = ConsoleTable(box=None, pad_edge=False, elsewhere="cells.csv")
        >>> table.add_column("model")
        >>> table.add_column("success rate", justify="right", rank=1)
        >>> table.add_column("seconds", justify="right", rank=2)
        >>> table.add_row("NMU", "0.90 [0.83, 0.94]", "1.25")
        >>> Console(width=40, color_system=None).print(table)
        model       success rate  seconds
        NMU    0.90 [0.83, 0.94]     1.25
        >>> Console(width=30, color_system=None).print(table)
        model       success rate
        NMU    0.90 [0.83, 0.94]
        left out: seconds; all columns
        need a width of 33, and
        cells.csv has them
    """

    def __init__(self, *, elsewhere: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._elsewhere, self._ranks = elsewhere, list[int]()

    def add_column(self, *parts: Any, rank: int = 0, **options: Any) -> None:
        """Add a column.

        Args:
            parts: its title, and optionally its footer; spaces around them are removed.
            rank: 0 for a column that is never left out. Other columns are left out by descending rank; among equal
                ranks, the last column goes first.
            options: the options of rich's columns.
        """
        # rich doesn't measure a space before a word, but prints it in a narrow column
        super().add_column(*(part.strip() if isinstance(part, str) else part for part in parts), **options)
        self._ranks.append(rank)

    def __rich_console__(self, console: Any, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or its parts as the class describes if it is too wide."""
        extra = [self._extra(count, console, options) for count in range(len(self.columns) + 1)]
        sizes = [self._size_of(place, console, options.update(width=_ENDLESS)) for place in range(len(self.columns))]
        room = options.max_width
        if extra[-1] + sum(size.natural for size in sizes) <= room or not sizes:
            yield from super().__rich_console__(console, options)
            return
        if isinstance(console, Console) and not console.has_own_width:
            sizes = [
                replace(size, least=size.natural) if self._is_unfolded(i) else size for i, size in enumerate(sizes)
            ]
            room = max(room, extra[-1] + sum(size.least for size in sizes))
        chosen = self._choose(sizes, room, extra)
        least, free = [sizes[i].least for i in chosen], room - extra[len(chosen)]
        if sum(least) > free:
            least = [sizes[i].word for i in chosen]
        if sum(least) > free:
            yield from self._blocks(console, options)
            return
        widths = _shares(least, [sizes[i].natural for i in chosen], free)
        yield from self._part(chosen, widths, console, options.update(width=room))
        titles = [str(column.header) for i, column in enumerate(self.columns) if i not in chosen]
        if titles:
            needed = extra[-1] + sum(size.least for size in sizes)
            also = f", and {self._elsewhere} has them" if self._elsewhere else ""
            yield Text(f"left out: {'; '.join(titles)}; all columns need a width of {needed}{also}", style="dim")

    def _choose(self, sizes: Sequence[_Size], room: int, extra: Sequence[int]) -> list[int]:
        """Return the places of the columns to show: columns are left out until the others fit or are all required."""
        chosen = list(range(len(sizes)))
        while extra[len(chosen)] + sum(sizes[i].least for i in chosen) > room:
            droppable = [i for i in chosen if self._ranks[i]]
            if not droppable:
                break
            chosen.remove(max(droppable, key=lambda i: (self._ranks[i], i)))
        return chosen

    def _size_of(self, place: int, console: Any, endless: ConsoleOptions) -> _Size:
        """Return the widths of a column, as `_Size` describes them."""
        column = self.columns[place]
        cells = [Measurement.get(console, endless, cell) for cell in column.cells] or [Measurement(0, 0)]
        head = Measurement.get(console, endless, column.header) if self.show_header else Measurement(0, 0)
        widest = max(cell.maximum for cell in cells)
        natural = max(head.maximum, widest)
        if self._is_unfolded(place):
            return _Size(max(head.minimum, widest), max(head.minimum, widest), natural)
        word = max(head.minimum, *(cell.minimum for cell in cells))
        if column.overflow == "fold":
            word = min(word, _READABLE)
        return _Size(word, max(word, min(natural, _READABLE)), natural)

    def _is_unfolded(self, place: int) -> bool:
        """Return True if the cells of a column are never folded."""
        return self.columns[place].no_wrap or self.columns[place].justify == "right"

    def _extra(self, count: int, console: Any, options: ConsoleOptions) -> int:
        """Return the width of the borders and gaps of a table with `count` columns."""
        empty = self._empty_copy()
        for _ in range(count):
            empty.add_column(width=1)
        return Measurement.get(console, options.update(width=_ENDLESS), empty).maximum - count

    def _part(
        self, chosen: Sequence[int], widths: Sequence[int], console: Any, options: ConsoleOptions
    ) -> RenderResult:
        """Lay out the columns at the places `chosen`, each at its width of `widths`."""
        part = self._empty_copy()
        for i, width in zip(chosen, widths, strict=True):
            column = self.columns[i]
            justify, style = column.justify, column.style
            part.add_column(
                column.header, justify=justify, style=style, header_style=column.header_style, width=width,
                overflow="fold",
            )  # fmt: skip
        for row, cells in zip(self.rows, zip(*(list(self.columns[i].cells) for i in chosen), strict=True), strict=True):
            part.add_row(*cells, style=row.style, end_section=row.end_section)
        yield from Table.__rich_console__(part, console, options)

    def _blocks(self, console: Any, options: ConsoleOptions) -> RenderResult:
        """Lay out each row as lines, one per column; without titles, fold all cells at words."""
        if self.title:
            yield self.title if isinstance(self.title, Text) else console.render_str(self.title)
        titled = self.show_header
        block = Table(box=None, pad_edge=False, show_header=False)
        for style in ("bold", "") if titled else [column.style for column in self.columns]:
            block.add_column(style=style, overflow="fold")
        for row, cells in zip(self.rows, zip(*(column.cells for column in self.columns), strict=True), strict=True):
            lines = (
                [(column.header, cell) for column, cell in zip(self.columns, cells, strict=True)] if titled else [cells]
            )
            for line in lines:
                block.add_row(*line, style=row.style)
            if titled:
                block.add_row()
        yield block
        if self.caption:
            yield self.caption if isinstance(self.caption, Text) else console.render_str(self.caption)

    def _empty_copy(self) -> ConsoleTable:
        """Make an empty table that looks like this one."""
        empty = copy(self)
        empty.columns, empty.rows, empty._ranks = [], [], []
        return empty


def _shares(least: Sequence[int], natural: Sequence[int], room: int) -> list[int]:
    """Return the columns' widths: the natural ones, narrowed until their sum fits the room.

    The widest column is narrowed first, none below its least width; the least widths must fit.
    """
    widths = list(natural)
    for _ in range(sum(widths) - room):
        widest = max((i for i, width in enumerate(widths) if width > least[i]), key=lambda i: widths[i])
        widths[widest] -= 1
    return widths

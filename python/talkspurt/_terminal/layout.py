"""Tables for a terminal of any width.

A table that is too wide first wraps its headers at spaces, then drops columns, the least important
first, and states which; some of these are shown below the others instead. If the columns that are
always shown do not fit, names are shortened in the middle. If they would become too short, each row
is printed as a list. Numbers and words are never broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from talkspurt._text.escaping import encoded, visible

Cell = str | Text
GAP = 2
"""Spaces between columns."""
MIN_NAME = 12
"""Names are shortened to this width at most; below it, rows become lists."""
SEVERAL = 2
"""More names than these are listed with their headers."""
PROSE = 16
"""Prose is wrapped to this width, or to its longest word, before columns are dropped."""


Kind = Literal["number", "text", "prose", "name", "id"]
"""Contents of a column. All but numbers are aligned to the left; prose is wrapped at spaces; names
and ids identify a row, and ids are never shortened."""


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        head: its header; it may be wrapped at spaces and is wrapped at line ends.
        rank: 0 if it is always shown; of the others, the highest is dropped first.
        kind: what it contains.
        full: its name in the note on dropped columns; default: the header.
        below: whether it is shown in a further grid if there is no room beside the others.
    """

    head: str
    rank: int = 0
    kind: Kind = "number"
    full: str = ""
    below: bool = False

    @property
    def title(self) -> str:
        """Its name in a note."""
        return self.full or " ".join(self.head.split())

    @property
    def label(self) -> str:
        """Its name in a list, with the unit if that is on a line of its own."""
        first, *unit = self.head.split("\n")
        return ", ".join([self.full or first, *unit])

    @property
    def identifies(self) -> bool:
        """Whether it tells rows apart."""
        return self.kind in ("name", "id")


def name(head: str, rank: int = 0) -> Column:
    return Column(head, rank, "name")


@dataclass
class Table:
    """A table with its notes.

    Attributes:
        columns: names first.
        rows: cells in the order of the columns; numbers may have several lines.
        file: where dropped columns can be read.
        legend: explanations, each beginning with its mark; shown if the mark is in a column shown.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    file: str
    notes: Sequence[str] = field(default_factory=tuple)
    legend: Sequence[str] = field(default_factory=tuple)

    def print(self, out: Console) -> None:
        """Print it, with an empty line after it; nothing if it has no rows."""
        if not self.rows:
            return
        for line in self.lines(out.width, out.encoding):
            out.print(line, no_wrap=True, overflow="ignore", crop=False)
        out.print()

    def lines(self, width: int, encoding: str = "utf-8") -> Iterator[Text]:
        """Its lines, none wider than ``width`` unless a single number is."""
        # A replacement in ASCII may be longer: the layout is that of what will be written.
        columns = [self._encoded(column, encoding) for column in self.columns]
        rows = [
            [_safe(cell, column, encoding) for cell, column in zip(row, columns, strict=True)]
            for row in self.rows
        ]
        if self.title:
            title = encoded(visible(self.title), encoding)
            yield from (Text(line, style="bold") for line in wrapped(title, width))
        lines = list(_Layout(columns, rows, width, encoding, self.file).lines())
        yield from lines
        marked = [one for one in self.legend if any(one[0] in line.plain for line in lines)]
        for note in [*self.notes, *marked]:
            yield from map(Text, wrapped(encoded(visible(note), encoding), width))

    @staticmethod
    def _encoded(column: Column, encoding: str) -> Column:
        head = encoded(visible(column.head, lines=True), encoding)
        full = encoded(visible(column.full), encoding)
        return replace(column, head=head, full=full)


def _safe(cell: Cell, column: Column, encoding: str) -> Text:
    if isinstance(cell, Text):
        return Text(encoded(visible(cell.plain), encoding), style=cell.style)
    return Text(encoded(visible(cell, lines=not column.identifies), encoding))


@dataclass(frozen=True)
class _Layout:
    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    width: int
    encoding: str
    file: str

    def lines(self) -> Iterator[Text]:
        chosen = list(range(len(self.columns)))
        while self._total(chosen) > self.width:
            ranked = [i for i in chosen if self.columns[i].rank]
            if not ranked:
                break
            # Of equal ranks, the last one.
            chosen.remove(max(ranked, key=lambda i: (self.columns[i].rank, i)))
        fitting = self if self._total(chosen) <= self.width else self._shortened(chosen)
        if fitting is None:
            yield from self._list()
            return
        yield from fitting._grid(chosen)
        shown = set(chosen)
        for further in fitting._further(chosen):
            yield Text()
            yield from fitting._grid(further)
            shown |= set(further)
        dropped = [c.title for i, c in enumerate(self.columns) if i not in shown]
        if dropped:
            note = f"Not shown: {', '.join(dropped)} (wider terminal, or {self.file})"
            yield from (Text(line, style="dim") for line in wrapped(note, self.width))

    def _further(self, chosen: Sequence[int]) -> Iterator[list[int]]:
        """The columns of further grids: the names, and as many of the others as fit."""
        left = [i for i, column in enumerate(self.columns) if column.below and i not in chosen]
        names = [i for i, column in enumerate(self.columns) if column.identifies]
        part = names
        for i in left:
            if self._total([*part, i]) > self.width and part != names:
                yield part
                part = names
            if self._total([*part, i]) <= self.width:
                part = [*part, i]
        if part != names:
            yield part

    def _total(self, chosen: Sequence[int]) -> int:
        return sum(map(self._least, chosen)) + GAP * (len(chosen) - 1)

    def _least(self, i: int) -> int:
        """The least width of a column: its header is wrapped at every space."""
        column = self.columns[i]
        cells = [row[i].plain for row in self.rows]
        if column.kind == "prose":
            words = [cell_len(word) for cell in cells for word in cell.split(" ")]
            wide = max((min(cell_len(cell), PROSE) for cell in cells), default=0)
        else:
            words, wide = [], max(map(_width, cells), default=0)
        return max([wide, *words, *map(cell_len, _words(column.head))])

    def _shortened(self, chosen: Sequence[int]) -> _Layout | None:
        """The same table with its longest names shortened so that it fits; None if it cannot."""
        columns, rows = list(self.columns), [list(row) for row in self.rows]
        widths = {i: self._least(i) for i in chosen if columns[i].kind == "name"}
        for _ in range(self._total(chosen) - self.width):
            longest = max(widths, key=lambda i: widths[i], default=None)
            if longest is None or widths[longest] <= MIN_NAME:
                return None
            widths[longest] -= 1
        # Headers of different columns may become alike as well.
        heads = [word for i in widths for word in _words(columns[i].head)]
        for i, width in widths.items():
            short = shortened([row[i].plain for row in rows], width, self.encoding)
            words = shortened(heads, width, self.encoding)
            if short is None or words is None:
                return None
            new = dict(zip(heads, words, strict=True))
            head = " ".join(new[word] for word in _words(columns[i].head))
            columns[i] = replace(columns[i], head=head, full=columns[i].title)
            for row, text in zip(rows, short, strict=True):
                row[i] = Text(text, style=row[i].style)
        return replace(self, columns=columns, rows=rows)

    def _grid(self, chosen: Sequence[int]) -> Iterator[Text]:
        widths = {i: self._least(i) for i in chosen}
        room = self.width - sum(widths.values()) - GAP * (len(chosen) - 1)
        # Use what is left for prose, then to unwrap headers, from the left.
        for i in (i for i in chosen if self.columns[i].kind == "prose"):
            want = max((cell_len(row[i].plain) for row in self.rows), default=0) - widths[i]
            more = min(room, max(want, 0))
            widths[i], room = widths[i] + more, room - more
        for i in chosen:
            want = max(_width(self.columns[i].head) - widths[i], 0)
            if want <= room:
                widths[i], room = widths[i] + want, room - want
        heads = [wrapped(self.columns[i].head, widths[i]) for i in chosen]
        height = max(map(len, heads))
        for k in range(height):
            # Headers stand on the rule.
            parts = [head[k - height + len(head)] if k >= height - len(head) else ""
                     for head in heads]  # fmt: skip
            yield self._line(chosen, [Text(part, style="bold") for part in parts], widths)
        rule = encoded("─", self.encoding)[0]
        yield Text(rule * (sum(widths.values()) + GAP * (len(chosen) - 1)))
        for row in self.rows:
            cells = [self._cell(row[i], i, widths[i]) for i in chosen]
            for k in range(max(map(len, cells))):
                yield self._line(chosen, [c[k] if k < len(c) else Text() for c in cells], widths)

    def _cell(self, cell: Text, i: int, width: int) -> Sequence[Text]:
        if self.columns[i].kind == "prose":
            return [Text(line) for line in wrapped(cell.plain, width)]
        return list(cell.split("\n", allow_blank=True)) or [Text()]

    def _line(self, chosen: Sequence[int], cells: Sequence[Text], widths: dict[int, int]) -> Text:
        line = Text()
        for i, cell in zip(chosen, cells, strict=True):
            pad = " " * (widths[i] - cell_len(cell.plain))
            line.append(" " * GAP if i != chosen[0] else "")
            right = self.columns[i].kind == "number"
            line.append_text(Text(pad) if right else cell)
            line.append_text(cell if right else Text(pad))
        line.rstrip()
        return line

    def _list(self) -> Iterator[Text]:
        """Every row as a list of all columns, below its names."""
        indent = 2
        count = next((i for i, c in enumerate(self.columns) if not c.identifies), len(self.columns))
        listed = self.columns[count:]
        most = max((cell_len(column.label) for column in listed), default=0)
        for row in self.rows:
            # Of several names, only the last speaks for itself. An empty name is that of the row
            # above.
            heads = [f"{column.title} " if count > SEVERAL else "" for column in self.columns]
            heads[count - 1 : count] = [""]
            named = zip(heads, (cell.plain for cell in row[:count]), strict=False)
            names = ", ".join(head + cell for head, cell in named if cell)
            if names:
                yield from (Text(line, style="bold") for line in wrapped(names, self.width))
            for column, cell in zip(listed, row[count:], strict=True):
                value = " ".join(cell.plain.split("\n"))
                if not value:
                    continue
                if indent + most + GAP + cell_len(value) <= self.width:
                    pad = " " * (most - cell_len(column.label) + GAP)
                    line = Text(" " * indent + column.label + pad)
                    line.append(value, style=cell.style or None)
                    yield line
                else:
                    yield from map(Text, wrapped(column.label, self.width, indent))
                    yield from map(Text, wrapped(value, self.width, 2 * indent))


def _words(head: str) -> list[str]:
    # Not split(): a non-breaking space separates no words.
    return head.replace("\n", " ").split(" ")


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Lines of at most ``width`` cells, broken at spaces and line ends.

    Only a word that is longer than a line is broken. All lines are indented.
    """
    room = max(width - indent, 1)
    lines: list[str] = []
    for part in text.split("\n"):
        line = ""
        # Not split(): a narrow space inside a number does not separate words.
        for word in filter(None, part.split(" ")):
            if line and cell_len(line) + 1 + cell_len(word) <= room:
                line += f" {word}"
                continue
            lines += [line] if line else []
            *full, line = chop_cells(word, room) or [""]
            lines += full
        lines.append(line)
    return [" " * indent + line for line in lines]


def shortened(names: Iterable[str], width: int, encoding: str = "utf-8") -> list[str] | None:
    """The names in at most ``width`` cells, long ones with an ellipsis in the middle.

    Different names stay different; None if that is not possible.
    """
    every = list(names)
    different = dict.fromkeys(every)
    dots = encoded("…", encoding)
    room = width - cell_len(dots)
    # What differs may be at either end, so other splits are tried if the middle does not do.
    for head in sorted(range(1, room), key=lambda k: abs(k - room // 2)):
        short = {name: _cut(name, width, head, room - head, dots) for name in different}
        if len(set(short.values())) == len(different):
            return [short[name] for name in every]
    return None


def _cut(text: str, width: int, head: int, tail: int, dots: str) -> str:
    if cell_len(text) <= width:
        return text
    end = chop_cells(text[::-1], tail)[0][::-1]
    return chop_cells(text, head)[0] + dots + end

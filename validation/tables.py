"""Fills the generated parts of a page of documentation: tables, and numbers inside sentences.

The page itself holds the text. What is generated stands between ``<!-- NAME: -->`` and
``<!-- / -->``, on lines of its own or within a line; an inline part does not begin a line, because
Markdown takes a comment there for a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

PART = re.compile(r"(<!-- ([\w.-]+): -->)(.*?)(<!-- / -->)", re.DOTALL)


def table(heads: str | Iterable[str], rows: Iterable[Iterable[object]], align: str = "") -> str:
    """A Markdown table; `align` has an ``r`` for each column of numbers, the others are ``l``."""
    columns = heads.split(" | ") if isinstance(heads, str) else list(heads)
    marks = ["---:" if side == "r" else "---" for side in align.ljust(len(columns), "l")]
    lines = [f"|{'|'.join(marks)}|", *(f"| {' | '.join(map(str, row))} |" for row in rows)]
    head = f"| {' | '.join(columns)} |" if any(columns) else "|" + " |" * len(columns)
    return "\n".join([head, *lines])


def fill(page: Path, parts: Mapping[str, object], to: Path | None = None) -> None:
    """Replaces the generated parts of a page, or of its copy `to`; others stay as they are."""
    text = page.read_text(encoding="utf-8")
    if missing := parts.keys() - {found[2] for found in PART.finditer(text)}:
        raise ValueError(f"{page.name} has no place for {', '.join(sorted(missing))}")

    def filled(found: re.Match[str]) -> str:
        begin, name, old, end = found.groups()
        gap = "\n" if old.startswith("\n") else ""
        return f"{begin}{gap}{parts[name]}{gap}{end}" if name in parts else found[0]

    (to or page).write_text(PART.sub(filled, text), encoding="utf-8")

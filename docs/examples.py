"""Examples of scenario keys: the tables of ``reference/examples/*.toml``.

``reference/scenario.md`` and the pages in ``reference/scenario`` are generated from the Rust types
and have one section per table of a scenario. This module adds to each section the tables of the
example scenarios that set its keys. A test runs these scenarios and checks that they set every key.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "reference" / "examples"
HEADING = re.compile(
    r'#{1,4} (?:The scenario|`(?P<path>[^`]+)`(?: with `kind = "(?P<kind>\w+)"`)?)$'
)
ROW = re.compile(r"\| `(\w+)` \|.*\| (.*) \|$")
HEADER = re.compile(r"(\[\[?)([\w.-]+)\]\]?$")


@dataclass
class Section:
    """A table of keys in the reference.

    Attributes:
        path: where the table is in a scenario, such as ``links.NAME.queue``; empty for the whole.
        kind: the value of ``kind`` that has these keys, if any.
        occurrence: how many earlier sections have the same path and kind.
        keys: its keys, with their meaning.
        end: the line of the reference after the section's own text.
    """

    path: str
    kind: str | None
    occurrence: int
    keys: dict[str, str] = field(default_factory=dict)
    end: int = 0


@dataclass(frozen=True)
class Table:
    """A table of an example scenario.

    Attributes:
        file: the scenario.
        words: the words of its header.
        is_list: whether it is an element of a list of tables.
        text: its lines, with the header.
        values: its content.
        owner: ``kind`` of the transport above it, if any.
    """

    file: Path
    words: tuple[str, ...]
    is_list: bool
    text: str
    values: dict[str, Any]
    owner: str | None

    def is_of(self, section: Section) -> bool:
        """Whether the section describes this table."""
        path = section.path.split(".") if section.path else []
        if len(path) != len(self.words):
            return False
        if section.kind is not None and section.kind != self.values.get("kind", section.kind):
            return False
        last = f"{self.words[-1]}[]" if self.is_list else self.words[-1] if self.words else ""
        words = [*self.words[:-1], last] if self.words else []
        return all(a in ("NAME", b, f"{b}[]") for a, b in zip(path, words, strict=True))


def sections(reference: str) -> list[Section]:
    """The sections of the reference that list keys, in order."""
    found: list[Section] = []
    current: Section | None = None
    for number, line in enumerate(reference.splitlines()):
        if line.startswith("#"):
            if current:
                current.end = number
            heading = HEADING.match(line)
            current = None
            if heading:
                path, kind = heading["path"] or "", heading["kind"]
                earlier = [s for s in found if (s.path, s.kind) == (path, kind)]
                current = Section(path, kind, len(earlier))
                found.append(current)
        elif current and (row := ROW.match(line)):
            current.keys[row[1]] = row[2]
    if current:
        current.end = len(reference.splitlines())
    return [section for section in found if section.keys or section.kind]


def tables() -> list[Table]:
    """The tables of all example scenarios."""
    return [table for file in sorted(FOLDER.glob("*.toml")) for table in _of_file(file)]


def _of_file(file: Path) -> list[Table]:
    text = file.read_text(encoding="utf-8")
    scenario = tomllib.loads(text)
    found: list[Table] = []
    # A header begins a table; a comment directly above it belongs to it.
    parts = re.split(r"^(?=\[|# .*\n(?:# .*\n)*\[)", text, flags=re.MULTILINE)
    parts[0] = re.sub(r"\A(#.*\n)+\n*", "", parts[0])
    for part in parts:
        lines = part.strip().splitlines()
        header = next((m for line in lines if (m := HEADER.match(line))), None)
        words = tuple(header[2].split(".")) if header else ()
        body = "\n".join(line for line in lines if not HEADER.match(line))
        owner = None
        if words[2:3] == ("transport",):
            owner = scenario[words[0]][words[1]]["transport"]["kind"]
        is_list = header is not None and header[1] == "[["
        found.append(Table(file, words, is_list, "\n".join(lines), tomllib.loads(body), owner))
    return found


def examples(section: Section, everything: list[Table]) -> list[Table]:
    """The tables that show the section's keys: each shows a key that no earlier one does.

    Of sections with the same path, the first has the tables of the first transport, and so on.
    """
    there = [table for table in everything if table.is_of(section)]
    owners = list(dict.fromkeys(table.owner for table in there))
    if section.occurrence:
        owner = owners[section.occurrence] if section.occurrence < len(owners) else None
        there = [table for table in there if table.owner == owner]
    elif len(owners) > 1:
        there = [table for table in there if table.owner == owners[0]]
    found: list[Table] = []
    seen: set[str] = set()
    for table in there:
        if not found or (set(section.keys) & set(table.values)) - seen:
            found.append(table)
            seen |= set(table.values)
    return found


def shown(section: Section, everything: list[Table]) -> set[str]:
    """The keys of the section that the examples set, in its tables or as a table below one."""
    of = [table for table in everything if table.is_of(section)]
    below = {
        table.words[len(one.words)]
        for one in of
        for table in everything
        if len(table.words) > len(one.words) and table.words[: len(one.words)] == one.words
    }
    return {key for table in examples(section, everything) for key in table.values} | below


def insert(page: str, folder: str) -> str:
    """A page of the reference with an example, of this folder, at the end of each section."""
    everything = tables()
    lines = page.splitlines()
    for section in reversed(sections(page)):
        added: list[str] = []
        for table in examples(section, everything):
            name = table.file.name
            words = "Example" if not added else "Another"
            added += [f"{words}, from [{name}]({folder}/{name}):", ""]
            added += ["```toml", table.text, "```", ""]
        lines[section.end : section.end] = added
    return "\n".join([*lines, ""])

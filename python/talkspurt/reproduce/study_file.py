"""A study's file: printed values, statements, inferences with reasons, and bands.

One TOML file per study, in the package; it is read before any run, and no run modifies it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from talkspurt.reproduce.band import MEAN, SHARE, Band, StudyFileError
from talkspurt.reproduce.rows import Spec

T = TypeVar("T")

FILES = files("talkspurt.reproduce") / "studies"
"""Folder of the studies' files, ns-2 scripts and recorded values."""


@dataclass(frozen=True)
class Inferred:
    """A parameter omitted or contradicted in the text, with its replacement and reason."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True)
class StudyFile:
    """The content of a study's file.

    Attributes:
        name: its command-line name.
        title: the text's title.
        citation: authors, place and year.
        asks: its question, in a sentence or two.
        stated: parameters stated in the text, as used by the checks.
        inferred: parameters it does not state.
        rows: its printed values, row by row.
        how: how a row's number is computed from its runs, by prefix of its id.
        replications: number of replications, by prefix of scenario names; default 1.
    """

    name: str
    title: str
    citation: str
    asks: str
    stated: Mapping[str, Any]
    inferred: tuple[Inferred, ...]
    rows: tuple[Spec, ...]
    how: Mapping[str, str]
    replications: Mapping[str, int]

    def recipe(self, id: str) -> str:
        """How a row's number is computed."""
        return _by_beginning(self.how, id, "")

    def repeated(self, name: str) -> int:
        """The number of replications of this scenario, under consecutive seeds."""
        return _by_beginning(self.replications, name, 1)

    @property
    def facts(self) -> dict[str, Any]:
        """What the checks compute from: the stated parameters, and the printed values by row."""
        return {**self.stated, "printed": {row.id: row.paper for row in self.rows}}

    def row(self, id: str) -> Spec:
        """The row of this id."""
        return next(row for row in self.rows if row.id == id)


def _by_beginning(of: Mapping[str, T], name: str, otherwise: T) -> T:
    """The entry with the longest matching prefix of a name."""
    fitting = [start for start in of if name.startswith(start)]
    return of[max(fitting, key=len)] if fitting else otherwise


@cache
def recorded(study: str, peer: str) -> Mapping[str, Any]:
    """What was recorded of ``ns2`` or of ``linux``; empty if nothing was."""
    file = FILES / f"{study}.{peer}.json"
    found: Mapping[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found


def load(name: str) -> StudyFile:
    """The file of a study of the package."""
    return parse(name, (FILES / f"{name}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> StudyFile:
    """A study's file from its text.

    Raises:
        StudyFileError: if a row is duplicated, has no band or an unknown key.
    """
    table = tomllib.loads(text)
    tables: Mapping[str, Any] = table.get("tables", {})
    rows = [spec(row) for row in [*_expanded(tables), *table.get("row", [])]]
    rows.sort(key=_place)
    ids = [row.id for row in rows]
    twice = {id for id in ids if ids.count(id) > 1}
    if twice:
        raise StudyFileError(f"{name}: said twice: {', '.join(sorted(twice))}")
    unknown = [row.id for row in rows if row.restates and row.restates not in ids]
    if unknown:
        raise StudyFileError(f"{name}: restates no row: {', '.join(unknown)}")
    return StudyFile(
        name=name,
        title=table["title"],
        citation=table["citation"],
        asks=table["asks"],
        stated=table.get("stated", {}),
        inferred=tuple(Inferred(**entry) for entry in table.get("inferred", [])),
        rows=tuple(rows),
        how=table.get("how", {}),
        replications=table.get("replications", {}),
    )


def _place(row: Spec) -> list[tuple[int, str]]:
    """Figures and tables in order, Fig 7 before Fig 13, the rows of each as written."""
    parts = re.split(r"(\d+)", row.id.partition("/")[0])
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def _expanded(tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of printed tables, a cell each: ``cells`` holds lines of numbers, ``columns`` names.

    ``bands`` sets the band of a line or a cell; all other keys of a table apply to all its rows,
    with ``{line}`` and ``{column}`` replaced by their names. ``lines`` has further keys of a line
    or, as ``line/column``, of a cell.
    """
    rows = []
    for name, table in tables.items():
        shared = {k: v for k, v in table.items() if k not in ("columns", "cells", "bands", "lines")}
        for line, cells in table["cells"].items():
            for column, paper in zip(table["columns"], cells, strict=True):
                if paper == "":
                    continue
                words = {"line": line, "column": column}
                row = {k: _fill(v, words) for k, v in shared.items()}
                row["id"] = f"{name}/{line}/{column}".lower().replace(" ", "-")
                row["paper"] = paper
                bands = table.get("bands", {})
                own = bands.get(f"{line}/{column}") or bands.get(line)
                if own:
                    row["band"] = own
                for more in (line, f"{line}/{column}"):
                    row.update(table.get("lines", {}).get(more, {}))
                rows.append(row)
    return rows


def _fill(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return value.format(**words)
    return value


def spec(row: Mapping[str, Any]) -> Spec:
    """A row of the file."""
    known = set(Spec.__dataclass_fields__)
    unknown = set(row) - known
    if unknown:
        raise StudyFileError(f"{row.get('id')}: unknown: {', '.join(sorted(unknown))}")
    absent = {"id", "quantity", "unit", "paper", "where", "band"} - set(row)
    if absent:
        raise StudyFileError(f"{row.get('id')}: not said: {', '.join(sorted(absent))}")
    paper = row["paper"]
    lists = {name: tuple(row[name]) for name in ("missing", "checks") if name in row}
    band = Band.of(row["band"])
    if not isinstance(paper, str):
        if isinstance(paper, bool):
            raise StudyFileError(f"{row['id']}: write yes or no as words")
        paper = float(paper)
        if band == Band():
            raise StudyFileError(f"{row['id']}: a number wants a band")
    if row.get("of", MEAN) not in (MEAN, SHARE):
        raise StudyFileError(f"{row['id']}: of is {MEAN} or {SHARE}, not {row['of']}")
    if row.get("of") == SHARE and band == Band():
        raise StudyFileError(f"{row['id']}: words are a share without being told")
    return Spec(**{**row, **lists, "paper": paper, "band": band})
